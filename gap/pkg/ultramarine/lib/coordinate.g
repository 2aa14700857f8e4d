#############################################################################
##
##  The parallel functions of a GAP in front of a job. These are their options,
##  as in ParMap(f, list : radius := 1/2, supervised := true):
##
##  radius       PEs within this distance of the first one compute: 0, or a
##               power of two that is at most 1; default 1, which is all
##  chunk        the number of items of a task; default: by their number
##  supervised   tasks that are lost with a PE run again
##  progress     how many tasks have ended is shown
##  given        a second argument of the function of a map, the same for all
##  length       of an orbit only the number of points is wanted
##

BIND_GLOBAL("ULTRAMARINE_OPTIONS",
    [ "radius", "chunk", "supervised", "progress", "given", "length" ]);

##  Asks the job for an operation with the options of this call.
BIND_GLOBAL("ULTRAMARINE_Call", function(caller, operation, functions, arguments)
    local options, name, value;
    options := rec();
    for name in ULTRAMARINE_OPTIONS do
        value := ValueOption(name);
        if value <> fail then
            options.(name) := value;
        fi;
    od;
    functions := List(functions, f -> ULTRAMARINE_Source(caller, f));
    return ULTRAMARINE_Ask(caller, [ operation, functions, arguments, options ]);
end);

##  The values of f for the items of a list, in their order: any PE takes the
##  next task.
BIND_GLOBAL("ParMap", function(f, list)
    return ULTRAMARINE_Call("ParMap", "map", [ f ], [ list ]);
end);

##  The same, with this number of items in a task.
BIND_GLOBAL("ParMapChunked", function(size, f, list)
    return ULTRAMARINE_Call("ParMapChunked", "map", [ f ], [ list ] : chunk := size);
end);

##  The same on the PEs within a radius, such as the first one's host.
BIND_GLOBAL("ParMapLocal", function(distance, f, list)
    return ULTRAMARINE_Call("ParMapLocal", "map", [ f ], [ list ] : radius := distance);
end);

##  The same in two steps: each part of the machine gets its share at once, and
##  its PEs take tasks of that.
BIND_GLOBAL("ParMap2Level", function(distance, f, list)
    return ULTRAMARINE_Call("ParMap2Level", "map2", [ f ], [ list ] : radius := distance);
end);

##  The same, but a part without work takes some of another's.
BIND_GLOBAL("ParMap2LevelRelaxed", function(distance, f, list)
    return ULTRAMARINE_Call("ParMap2LevelRelaxed", "map2relaxed", [ f ], [ list ]
                            : radius := distance);
end);

##  The items of a list, combined by f, which must be associative.
BIND_GLOBAL("ParReduce", function(f, list)
    return ULTRAMARINE_Call("ParReduce", "reduce", [ f ], [ list ]);
end);

##  The solution of a problem. "divide" makes a list of problems of one that is not trivial, and
##  "combine" gets the problem and the list of their solutions.
BIND_GLOBAL("ParDivideAndConquer", function(isTrivial, solve, divide, combine, problem)
    return ULTRAMARINE_Call("ParDivideAndConquer", "divide",
                            [ isTrivial, solve, divide, combine ], [ problem ]);
end);

##  The orbit of a point, in the order of "Orbit", under generators that act by OnPoints, or as the
##  third argument says.
BIND_GLOBAL("ParOrbit", function(generators, point, action...)
    if IsGroup(generators) then
        generators := GeneratorsOfGroup(generators);
    fi;
    if action = [] then
        action := [ OnPoints ];
    fi;
    return ULTRAMARINE_Call("ParOrbit", "orbit", action, [ generators, point ]);
end);

##  Evaluates a source text here and, before the next task, on all PEs.
BIND_GLOBAL("ParDefine", function(text)
    ULTRAMARINE_Ask("ParDefine", [ "define", [], [ text ], rec() ]);
    Read(InputTextString(text));
end);

##  Reads a file here and, before the next task, on all PEs.
BIND_GLOBAL("ParRead", function(file)
    local text;
    text := StringFile(file);
    if text = fail then
        ErrorNoReturn("ParRead: there is no file `", file, "` that can be read");
    fi;
    ULTRAMARINE_Ask("ParRead", [ "define", [], [ text ], rec() ]);
    Read(file);
end);
