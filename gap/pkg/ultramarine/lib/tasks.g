#############################################################################
##
##  What a GAP on a PE computes for one in front of the job.
##
##  A kernel is a function that a task calls. It is made of functions that
##  have come as source text; "coordinate.g" sends them.
##

##  The values of f for some items, before which there are this many others in their list. What is
##  said of an error begins with the place of its item.
BIND_GLOBAL("ULTRAMARINE_List", function(items, before, f)
    local place, ended;
    place := before;
    ended := CALL_WITH_CATCH(List, [ items, function(x) place := place + 1; return f(x); end ]);
    if not ended[1] then
        ULTRAMARINE_ERRORS := Concatenation("item ", String(place), ": ", ULTRAMARINE_ERRORS);
        JUMP_TO_CATCH(0);
    fi;
    return ended[2];
end);

BIND_GLOBAL("ULTRAMARINE_KERNELS", rec(
    ##  The values of some items.
    map := f -> { items, before } -> ULTRAMARINE_List(items, before, f),

    ##  The same, of a function that needs one more value. It may change this for its own items.
    map_with := f -> function(items, before)
        local given;
        given := StructuralCopy(UltramarineGiven);
        return ULTRAMARINE_List(items, before, x -> f(x, given));
    end,

    ##  Some items, combined from left to right.
    reduce := f -> { items, before } -> Iterated(items, f),

    ##  Of each of some points, the images under the generators.
    images := act -> function(points, before)
        local generators;
        generators := StructuralCopy(UltramarineGiven);
        return List(points, x -> List(generators, g -> act(x, g)));
    end,

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

##  The kernel of this name, made of these functions.
BIND_GLOBAL("UltramarineKernel", function(name, functions)
    return CallFuncList(ULTRAMARINE_KERNELS.(name), List(functions, UltramarineFunction));
end);
