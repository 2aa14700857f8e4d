#############################################################################
##
##  What a GAP on a PE computes for one in front of the job.
##
##  A kernel is a function that a task calls. It is made of functions that
##  have come as source text; "coordinate.g" sends them.
##

##  The definitions that this GAP has read.
BIND_GLOBAL("ULTRAMARINE_DEFINITIONS", []);

BIND_GLOBAL("ULTRAMARINE_KERNELS", rec(
    ##  The values of some items.
    map := f -> (items -> List(items, f)),

    ##  The same, of a function that needs one more value.
    map_with := f -> { items, given } -> List(items, x -> f(x, given)),

    ##  Some items, combined from left to right.
    reduce := f -> (items -> Iterated(items, f)),

    ##  The images of some points under each generator.
    images := act -> { points, generators } ->
        Concatenation(List(points, x -> List(generators, g -> act(x, g)))),

    ##  A step of divide and conquer.
    divide := { is_trivial, solve, divide, combine } -> function(step, arguments...)
        local value;
        if step = "solve" then
            return CallFuncList(solve, arguments);
        elif step = "combine" then
            return CallFuncList(combine, arguments);
        elif step = "divide" then
            value := CallFuncList(divide, arguments);
            if not IsList(value) then
                Error("what divides a problem must return a list of problems");
            fi;
            return value;
        fi;
        value := CallFuncList(is_trivial, arguments);
        if not value in [ true, false ] then
            Error("what says whether a problem is trivial must return true or false");
        fi;
        return value;
    end,
));

##  The kernel of this name, made of these functions, after these definitions.
BIND_GLOBAL("UltramarineKernel", function(name, definitions, functions)
    local text;
    for text in definitions do
        if not text in ULTRAMARINE_DEFINITIONS then
            UltramarineReadText(text);
            Add(ULTRAMARINE_DEFINITIONS, text);
        fi;
    od;
    functions := List(functions, text -> ULTRAMARINE_COMPILED[UltramarineCompile(text)]);
    return CallFuncList(ULTRAMARINE_KERNELS.(name), functions);
end);
