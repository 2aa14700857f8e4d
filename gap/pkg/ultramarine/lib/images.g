#############################################################################
##
##  Multiple homomorphic images: a problem over the integers is solved modulo
##  many primes, each on any PE, and the solution follows from these by the
##  Chinese remainder theorem.
##

##  The primes are below this: a product of two residues is a small integer.
BIND_GLOBAL("ULTRAMARINE_PRIMES_BELOW", 2^28);

##  This number of them may not fit a problem.
BIND_GLOBAL("ULTRAMARINE_MISFITS_MAX", 1000);

##  The integer between -bound and bound whose images are f(p, data) modulo
##  primes p; or the list of integers, if an image is a list. Where f returns
##  fail, the prime is a bad one, and another takes its place.
BIND_GLOBAL("ParHomomorphicImages", function(f, data, bound)
    local prime, product, primes, pending, more, images, i, lift, combined, misfits;
    misfits := 0;
    prime := ULTRAMARINE_PRIMES_BELOW;
    product := 1;
    primes := [];
    images := [];
    # One image at least says what the result is: an integer, or a list.
    while product <= 2 * bound or images = [] do
        more := product;
        pending := [];
        while more <= 2 * bound or pending = [] do
            prime := PrevPrimeInt(prime);
            if prime = 2 then
                ErrorNoReturn("ParHomomorphicImages: there are no more primes below 2^28");
            fi;
            Add(pending, prime);
            more := more * prime;
        od;
        more := ParMap(f, pending : given := data);
        for i in [ 1 .. Length(pending) ] do
            if more[i] = fail then
                misfits := misfits + 1;
                if misfits > ULTRAMARINE_MISFITS_MAX then
                    ErrorNoReturn("ParHomomorphicImages: the function returned fail for more than ",
                        ULTRAMARINE_MISFITS_MAX, " primes");
                fi;
            else
                Add(primes, pending[i]);
                Add(images, more[i]);
                product := product * pending[i];
            fi;
        od;
    od;
    lift := function(remainders)
        combined := ChineseRem(primes, remainders) mod product;
        if 2 * combined > product then
            combined := combined - product;
        fi;
        if AbsInt(combined) > bound then
            ErrorNoReturn("ParHomomorphicImages: the result ", combined, " is beyond the bound ", bound);
        fi;
        return combined;
    end;
    if IsList(images[1]) then
        return List([ 1 .. Length(images[1]) ], i -> lift(List(images, image -> image[i])));
    fi;
    return lift(images);
end);

##  The determinant modulo a prime, of a list of rows: by elimination, whose steps are operations on
##  whole rows. (A finite field of this size would cost more than it saves.)
BIND_GLOBAL("ULTRAMARINE_DeterminantModP", function(p, rows)
    local determinant, place, pivot, factor;
    rows := rows mod p;
    determinant := 1;
    while rows <> [] do
        place := PositionProperty(rows, row -> row[1] <> 0);
        if place = fail then
            return 0;
        elif place > 1 then
            determinant := -determinant;
        fi;
        pivot := rows[place];
        rows[place] := rows[1];
        determinant := determinant * pivot[1] mod p;
        factor := 1 / pivot[1] mod p;
        pivot := pivot{[ 2 .. Length(pivot) ]};
        rows := List([ 2 .. Length(rows) ], i ->
            (rows[i]{[ 2 .. Length(rows[i]) ]} - (rows[i][1] * factor mod p) * pivot) mod p);
    od;
    return determinant mod p;
end);

##  The determinant of a square matrix of integers.
BIND_GLOBAL("ParDeterminant", function(matrix)
    local bound;
    if not IsMatrix(matrix)
       or not ForAll(matrix, row -> Length(row) = Length(matrix) and ForAll(row, IsInt)) then
        ErrorNoReturn("ParDeterminant: the argument must be a square matrix of integers");
    fi;
    # Hadamard's: the product of the lengths of the rows.
    bound := RootInt(Product(matrix, row -> row * row), 2) + 1;
    return ParHomomorphicImages(ULTRAMARINE_DeterminantModP, matrix, bound);
end);
