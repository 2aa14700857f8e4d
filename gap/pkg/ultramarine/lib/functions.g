#############################################################################
##
##  How functions travel: by name, or as source text.
##

##  The names that a GAP has before its user has defined any: those on a PE.
BIND_GLOBAL("ULTRAMARINE_NAMES", Set(NamesGVars()));

##  What is printed of a value, on one line as long as it is.
BIND_GLOBAL("ULTRAMARINE_Printed", function(value)
    local text, stream;
    text := "";
    stream := OutputTextString(text, false);
    SetPrintFormattingStatus(stream, false);
    PrintTo(stream, value);
    CloseStream(stream);
    return text;
end);

##  A variable of a function around this part of a syntax tree, which stands in `depth` functions of
##  the tree; fail if there is none.
DeclareGlobalFunction("ULTRAMARINE_Outer");
InstallGlobalFunction(ULTRAMARINE_Outer, function(tree, depth)
    local name, part, found;
    if IsRecord(tree) then
        if IsBound(tree.hvar) and QuoInt(tree.hvar, 65536) > depth then
            return tree.hvar - depth * 65536;
        fi;
        if depth < 0 or (IsBound(tree.type) and tree.type = "EXPR_FUNC") then
            depth := depth + 1;
        fi;
        tree := List(RecNames(tree), name -> tree.(name));
    fi;
    if IsList(tree) and not IsString(tree) then
        for part in tree do
            found := ULTRAMARINE_Outer(part, depth);
            if found <> fail then
                return found;
            fi;
        od;
    fi;
    return fail;
end);

##  The name of a local variable, of a function around this one, that it uses; fail if it uses
##  none.
BIND_GLOBAL("ULTRAMARINE_Captured", function(f)
    local hvar, around, i;
    if ContentsLVars(ENVI_FUNC(f)) = fail then
        return fail;
    fi;
    hvar := ULTRAMARINE_Outer(SYNTAX_TREE(f), -1);
    if hvar = fail then
        return fail;
    fi;
    around := f;
    for i in [ 1 .. QuoInt(hvar, 65536) ] do
        around := ContentsLVars(ENVI_FUNC(around));
        if i < QuoInt(hvar, 65536) then
            around := around.func;
        fi;
    od;
    return around.names[hvar mod 65536];
end);

##  A name as GAP reads it, such as \\+ for "+".
BIND_GLOBAL("ULTRAMARINE_Identifier", function(name)
    local text, character;
    text := "";
    for character in name do
        if not (IsAlphaChar(character) or IsDigitChar(character) or character in "_@") then
            Add(text, '\\');
        fi;
        Add(text, character);
    od;
    return text;
end);

##  The source text of a function: an expression that any GAP understands.
BIND_GLOBAL("ULTRAMARINE_Source", function(caller, f)
    local name, captured;
    if not IsFunction(f) then
        ErrorNoReturn(caller, ": this should be a function: ", ULTRAMARINE_Printed(f));
    fi;
    name := NAME_FUNC(f);
    if name in ULTRAMARINE_NAMES and IsBoundGlobal(name)
       and IsIdenticalObj(ValueGlobal(name), f) then
        return ULTRAMARINE_Identifier(name);
    elif IsOperation(f) or IsKernelFunction(f) then
        ErrorNoReturn(caller, ": the function `", name, "` cannot travel: no GAP on a PE knows ",
                      "it by this name, and it has no source text");
    fi;
    captured := ULTRAMARINE_Captured(f);
    if captured <> fail then
        name := Concatenation(" `", name, "`");
        if name = " `unknown`" then
            name := ", which has no name,";
        fi;
        ErrorNoReturn(caller, ": the function", name, " cannot travel: it uses `", captured,
                      "`, a variable of the function around it (give it as the option `given`, ",
                      "the second argument of the function)");
    fi;
    return ULTRAMARINE_Printed(f);
end);
