#############################################################################
##
##  Values on their way between GAP and a program.
##
##  A frame begins with a line of three numbers: its own, and the lengths of
##  the two parts that follow. In the first part are tokens, with spaces
##  between them; in the second are the bytes of all strings, one after the
##  other, as they are. One call of the kernel reads both parts, one cuts the
##  tokens apart, others read the numbers. So a list of 10^5 integers is read
##  in 5 ms; GAP takes 40 ms to read it as source text.
##
##  token       value
##  -12         a small integer: its decimal digits
##  x-1F        a large one: hexadecimal, which takes linear time
##  q           a rational: the tokens of numerator and denominator follow
##  "3          a string: the next three bytes of the second part
##  t f ! n     true, false, fail, and the result of a call without one
##  [3          a list: this number of values follows
##  i3          a list of small integers: this number follows
##  p3          a permutation: the images of 1, ..., 3 follow
##  r2          a record: this number of names (strings) with values follows
##

##  Small integers need no memory.
BIND_GLOBAL("ULTRAMARINE_SMALLEST", -2^60);
BIND_GLOBAL("ULTRAMARINE_LARGEST", 2^60 - 1);

##  Deeper lists would end in GAP's trap for recursion.
BIND_GLOBAL("ULTRAMARINE_DEPTH_MAX", 1000);

##  What could not be encoded last, in words.
ULTRAMARINE_REFUSED := fail;

##  The next value of a frame, a record with the tokens and the bytes, and the
##  places of the next ones.
DeclareGlobalFunction("ULTRAMARINE_Decode");
InstallGlobalFunction(ULTRAMARINE_Decode, function(frame)
    local token, kind, count, value, name, i;
    token := frame.tokens[frame.at];
    kind := token[1];
    frame.at := frame.at + 1;
    if kind in "\"ip[r" then
        count := INT_STRING(token{[ 2 .. Length(token) ]});
        if kind = '\"' then
            value := frame.bytes{[ frame.byte .. frame.byte + count - 1 ]};
            frame.byte := frame.byte + count;
        elif kind = 'i' or kind = 'p' then
            value := List(frame.tokens{[ frame.at .. frame.at + count - 1 ]}, INT_STRING);
            frame.at := frame.at + count;
            if kind = 'p' then
                value := PermList(value);
            fi;
        elif kind = '[' then
            value := [];
            for i in [ 1 .. count ] do
                value[i] := ULTRAMARINE_Decode(frame);
            od;
        else
            value := rec();
            for i in [ 1 .. count ] do
                name := ULTRAMARINE_Decode(frame);
                value.(name) := ULTRAMARINE_Decode(frame);
            od;
        fi;
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

##  What is said of a value that cannot be encoded is not longer than this.
BIND_GLOBAL("ULTRAMARINE_SAID_MAX", 200);

##  Appends a value as it is printed to a text, but of a list no more than the text has room for.
DeclareGlobalFunction("ULTRAMARINE_Say");
InstallGlobalFunction(ULTRAMARINE_Say, function(text, value)
    local i, stream;
    if IsPlistRep(value) then
        Add(text, '[');
        i := 1;
        while i <= Length(value) and Length(text) <= ULTRAMARINE_SAID_MAX do
            if i > 1 then
                Add(text, ',');
            fi;
            if IsBound(value[i]) then
                Add(text, ' ');
                ULTRAMARINE_Say(text, value[i]);
            fi;
            i := i + 1;
        od;
        Append(text, " ]");
    else
        stream := OutputTextString(text, true);
        SetPrintFormattingStatus(stream, false);
        PrintTo(stream, value);
        CloseStream(stream);
    fi;
end);

##  Says that a value cannot be encoded, and ends the call.
BIND_GLOBAL("ULTRAMARINE_Refuse", function(value, reason)
    local text;
    text := ShallowCopy(reason);
    if reason = "" then
        Append(text, TNAM_OBJ(value));
        Add(text, ' ');
        ULTRAMARINE_Say(text, value);
    fi;
    if Length(text) > ULTRAMARINE_SAID_MAX then
        text := Concatenation(text{[ 1 .. ULTRAMARINE_SAID_MAX ]}, "...");
    fi;
    ULTRAMARINE_REFUSED := text;
    JUMP_TO_CATCH(0);
end);

##  Appends a value, which stands in `depth` lists, to the tokens and the bytes
##  of a frame. A space stands before each token.
DeclareGlobalFunction("ULTRAMARINE_Encode");
InstallGlobalFunction(ULTRAMARINE_Encode, function(frame, value, depth)
    local tokens, begin, name, x;
    tokens := frame.tokens;
    begin := function(kind, count)
        APPEND_LIST_INTR(tokens, kind);
        APPEND_LIST_INTR(tokens, STRING_INT(count));
        if depth >= ULTRAMARINE_DEPTH_MAX then
            ULTRAMARINE_Refuse(value, "a value in more than 1000 lists");
        fi;
    end;
    if IsInt(value) then
        if ULTRAMARINE_SMALLEST <= value and value <= ULTRAMARINE_LARGEST then
            begin(" ", value);
        else
            APPEND_LIST_INTR(tokens, " x");
            APPEND_LIST_INTR(tokens, HexStringInt(value));
        fi;
    elif IsStringRep(value) or (IsString(value) and not IsEmpty(value)) then
        begin(" \"", Length(value));
        APPEND_LIST_INTR(frame.bytes, value);
    elif IsList(value) then
        if not IsInt(Length(value)) or not IsDenseList(value) then
            ULTRAMARINE_Refuse(value, "");
        fi;
        begin(" [", Length(value));
        for x in value do
            # Most are: they are not worth a call.
            if IsInt(x) and ULTRAMARINE_SMALLEST <= x and x <= ULTRAMARINE_LARGEST then
                ADD_LIST(tokens, ' ');
                APPEND_LIST_INTR(tokens, STRING_INT(x));
            else
                ULTRAMARINE_Encode(frame, x, depth + 1);
            fi;
        od;
    elif IsPerm(value) then
        begin(" p", LargestMovedPoint(value));
        for x in ListPerm(value) do
            ADD_LIST(tokens, ' ');
            APPEND_LIST_INTR(tokens, STRING_INT(x));
        od;
    elif IsRat(value) then
        APPEND_LIST_INTR(tokens, " q");
        ULTRAMARINE_Encode(frame, NumeratorRat(value), depth);
        ULTRAMARINE_Encode(frame, DenominatorRat(value), depth);
    elif IsIdenticalObj(value, true) then
        APPEND_LIST_INTR(tokens, " t");
    elif IsIdenticalObj(value, false) then
        APPEND_LIST_INTR(tokens, " f");
    elif IsIdenticalObj(value, fail) then
        APPEND_LIST_INTR(tokens, " !");
    elif IsRecord(value) then
        begin(" r", Length(RecNames(value)));
        for name in RecNames(value) do
            ULTRAMARINE_Encode(frame, name, depth + 1);
            ULTRAMARINE_Encode(frame, value.(name), depth + 1);
        od;
    else
        ULTRAMARINE_Refuse(value, "");
    fi;
end);
