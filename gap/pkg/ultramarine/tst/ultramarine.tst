#############################################################################
##
##  The functions of the package, in a GAP that "ultramarine gap" has started:
##  Test("gap/pkg/ultramarine/tst/ultramarine.tst");
##
gap> ParMap(x -> x^2, [ 1 .. 5 ]);
[ 1, 4, 9, 16, 25 ]
gap> ParMap({ x, n } -> x^n, [ 1 .. 5 ] : given := 3);
[ 1, 8, 27, 64, 125 ]
gap> ParMap({ x, list } -> Remove(list), [ 1 .. 4 ] : given := [ 1, 2 ], chunk := 2);
[ 2, 1, 2, 1 ]
gap> ParReduce(\+, [ 1 .. 100 ]);
5050
gap> ParDivideAndConquer(n -> n < 2, n -> n, n -> [ n - 1, n - 2 ],
>                        { n, parts } -> Sum(parts), 10);
55
gap> ParOrbit([ (1,2,3) ], 1);
[ 1, 2, 3 ]
gap> ParDeterminant([ [ 2, 1 ], [ 1, 2 ] ]);
3
gap> ParDefine("UltramarineTest := 7;");
gap> ParMap(x -> x + UltramarineTest, [ 1 ]);
[ 8 ]
gap> ParMap(IdFunc, [ Z(5), 1.5, E(3), 'c' ]);
Error, ParMap: this cannot leave GAP: ffe Z(5)
gap> ParMapLocal(0, x -> E(3), [ 1 ]);
Error, ParMapLocal: on PE 0: the result cannot leave GAP: cyclotomic E(3)
