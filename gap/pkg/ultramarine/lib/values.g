#############################################################################
##
##  Values on their way between GAP and a program, as a line of tokens.
##
##  A frame is one line. In front of each token stands the separator, a byte
##  that texts hardly ever have. One call of the kernel cuts a line into its
##  tokens, and others read the numbers: a list of 10^5 integers is read in
##  5 ms, ten times as fast as GAP reads it as its own source text.
##
##  token       value
##  -12         a small integer: its decimal digits
##  x-1F        a large one: hexadecimal, which takes linear time
##  q           a rational: the tokens of numerator and denominator follow
##  "text       a string, with what a line cannot have escaped
##  t f ! n     true, false, fail, and the result of a call without one
##  [3          a list: so many values follow
##  i3          a list of small integers: so many follow
##  p3          a permutation: the images of 1, ..., 3 follow
##  r2          a record: so many names (strings) with their values follow
##

BIND_GLOBAL("ULTRAMARINE_SEPARATOR", "\037");

##  What a line cannot have in it, and what stands for it. The escape comes
##  first, so that what the others become is not escaped again.
BIND_GLOBAL("ULTRAMARINE_ESCAPES",
    [ [ "\033", 'e' ], [ "\037", 's' ], [ "\n", 'n' ], [ "\000", '0' ] ]);

##  Small integers are those from -limit to limit - 1, which need no memory.
BIND_GLOBAL("ULTRAMARINE_LIMIT", 2^60);

##  Deeper lists would end in GAP's trap for recursion.
BIND_GLOBAL("ULTRAMARINE_DEPTH_MAX", 1000);

##  What could not be encoded last, in words.
ULTRAMARINE_REFUSED := fail;

BIND_GLOBAL("ULTRAMARINE_Escaped", function(text)
    local pair, pieces, i;
    for pair in ULTRAMARINE_ESCAPES do
        if Position(text, pair[1][1]) <> fail then
            # Of what ends with the separator, no empty last piece is made.
            pieces := SplitStringInternal(Concatenation(text, "."), pair[1], "");
            text := ShallowCopy(pieces[1]);
            for i in [ 2 .. Length(pieces) ] do
                Add(text, '\033');
                Add(text, pair[2]);
                APPEND_LIST_INTR(text, pieces[i]);
            od;
            Remove(text);
        fi;
    od;
    return text;
end);

##  The string of a token, whose first byte says that it is one.
BIND_GLOBAL("ULTRAMARINE_Unescaped", function(token)
    local text, pieces, i;
    if Position(token, '\033') = fail then
        return token{[ 2 .. Length(token) ]};
    fi;
    pieces := SplitStringInternal(token, "\033", "");
    text := pieces[1]{[ 2 .. Length(pieces[1]) ]};
    for i in [ 2 .. Length(pieces) ] do
        Append(text, First(ULTRAMARINE_ESCAPES, pair -> pair[2] = pieces[i][1])[1]);
        APPEND_LIST_INTR(text, pieces[i]{[ 2 .. Length(pieces[i]) ]});
    od;
    return text;
end);

##  The next value of a frame, a record with the tokens and the place of the
##  next one.
DeclareGlobalFunction("ULTRAMARINE_Decode");
InstallGlobalFunction(ULTRAMARINE_Decode, function(frame)
    local token, kind, count, numbers, value, name, i;
    token := frame.tokens[frame.at];
    kind := token[1];
    frame.at := frame.at + 1;
    if kind = '\"' then
        return ULTRAMARINE_Unescaped(token);
    elif kind in "ip[r" then
        count := INT_STRING(token{[ 2 .. Length(token) ]});
        if kind = 'i' or kind = 'p' then
            numbers := frame.tokens{[ frame.at .. frame.at + count - 1 ]};
            frame.at := frame.at + count;
            value := List(numbers, INT_STRING);
            if kind = 'p' then
                value := PermList(value);
            fi;
            return value;
        elif kind = '[' then
            value := [];
            for i in [ 1 .. count ] do
                value[i] := ULTRAMARINE_Decode(frame);
            od;
            return value;
        fi;
        value := rec();
        for i in [ 1 .. count ] do
            name := ULTRAMARINE_Decode(frame);
            value.(name) := ULTRAMARINE_Decode(frame);
        od;
        return value;
    elif kind = 'x' then
        return IntHexString(token{[ 2 .. Length(token) ]});
    elif kind = 'q' then
        value := ULTRAMARINE_Decode(frame);
        return value / ULTRAMARINE_Decode(frame);
    elif kind = 't' then
        return true;
    elif kind = 'f' then
        return false;
    elif kind = '!' then
        return fail;
    elif kind = 'n' then
        Error("nothing cannot be an argument");
    fi;
    return INT_STRING(token);
end);

##  Says that a value cannot be encoded, and ends the call.
BIND_GLOBAL("ULTRAMARINE_Refuse", function(value, reason)
    local text, stream;
    text := "";
    stream := OutputTextString(text, false);
    SetPrintFormattingStatus(stream, false);
    if reason = "" then
        PrintTo(stream, TNAM_OBJ(value), " ", value);
    else
        PrintTo(stream, reason);
    fi;
    CloseStream(stream);
    if Length(text) > 200 then
        text := Concatenation(text{[ 1 .. 200 ]}, "...");
    fi;
    ULTRAMARINE_REFUSED := text;
    JUMP_TO_CATCH(0);
end);

##  Appends the tokens of a value, which stands in so many lists.
DeclareGlobalFunction("ULTRAMARINE_Encode");
InstallGlobalFunction(ULTRAMARINE_Encode, function(out, value, depth)
    local start, name, x;
    start := function(kind, count)
        APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
        APPEND_LIST_INTR(out, kind);
        APPEND_LIST_INTR(out, STRING_INT(count));
        if depth >= ULTRAMARINE_DEPTH_MAX then
            ULTRAMARINE_Refuse(value, "a value in more than 1000 lists");
        fi;
    end;
    if IsInt(value) then
        APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
        if -ULTRAMARINE_LIMIT <= value and value < ULTRAMARINE_LIMIT then
            APPEND_LIST_INTR(out, STRING_INT(value));
        else
            APPEND_LIST_INTR(out, "x");
            APPEND_LIST_INTR(out, HexStringInt(value));
        fi;
    elif IsStringRep(value) or (IsString(value) and not IsEmpty(value)) then
        APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
        APPEND_LIST_INTR(out, "\"");
        APPEND_LIST_INTR(out, ULTRAMARINE_Escaped(value));
    elif IsList(value) then
        if not IsInt(Length(value)) or not IsDenseList(value) then
            ULTRAMARINE_Refuse(value, "");
        fi;
        start("[", Length(value));
        for x in value do
            # Most are: they are not worth a call.
            if IsInt(x) and -ULTRAMARINE_LIMIT <= x and x < ULTRAMARINE_LIMIT then
                APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
                APPEND_LIST_INTR(out, STRING_INT(x));
            else
                ULTRAMARINE_Encode(out, x, depth + 1);
            fi;
        od;
    elif IsPerm(value) then
        start("p", LargestMovedPoint(value));
        for x in ListPerm(value) do
            APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
            APPEND_LIST_INTR(out, STRING_INT(x));
        od;
    elif IsRat(value) then
        APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
        APPEND_LIST_INTR(out, "q");
        ULTRAMARINE_Encode(out, NumeratorRat(value), depth);
        ULTRAMARINE_Encode(out, DenominatorRat(value), depth);
    elif IsBool(value) then
        APPEND_LIST_INTR(out, ULTRAMARINE_SEPARATOR);
        if value = true then
            APPEND_LIST_INTR(out, "t");
        elif value = false then
            APPEND_LIST_INTR(out, "f");
        else
            APPEND_LIST_INTR(out, "!");
        fi;
    elif IsRecord(value) and not IsComponentObjectRep(value) then
        start("r", Length(RecNames(value)));
        for name in RecNames(value) do
            ULTRAMARINE_Encode(out, name, depth + 1);
            ULTRAMARINE_Encode(out, value.(name), depth + 1);
        od;
    else
        ULTRAMARINE_Refuse(value, "");
    fi;
end);
