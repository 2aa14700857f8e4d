#############################################################################
##
##  The loop of a GAP that computes for a program.
##
##  A request is a frame with two values: the function, and the list of its
##  arguments. The function is a string, the name of a global one, or the
##  number that "UltramarineCompile" has given it. The reply has the number of
##  the request, and one of these:
##
##  + value      the result
##  - string     what GAP said of an error
##  ? string     the result cannot be sent: what it is
##
##  The first reply, number 0, comes unasked: the version of GAP. At the end
##  of the requests GAP ends.
##

##  The functions that have been compiled.
BIND_GLOBAL("ULTRAMARINE_COMPILED", []);

##  What GAP says of errors in the call that it is in.
ULTRAMARINE_ERRORS := "";

##  GAP goes on after an error in what it reads. This ends the call, with
##  the errors so far as its own.
BIND_GLOBAL("ULTRAMARINE_FailAfterErrors", function()
    local start;
    for start in [ "Error, ", "Syntax error: " ] do
        if StartsWith(ULTRAMARINE_ERRORS, start)
           or PositionSublist(ULTRAMARINE_ERRORS, Concatenation("\n", start)) <> fail then
            JUMP_TO_CATCH(0);
        fi;
    od;
end);

##  Reads a file.
BIND_GLOBAL("UltramarineRead", function(file)
    Read(file);
    ULTRAMARINE_FailAfterErrors();
end);

##  Reads a source text.
BIND_GLOBAL("UltramarineReadText", function(text)
    Read(InputTextString(text));
    ULTRAMARINE_FailAfterErrors();
end);

##  A value that many calls need, until they need another.
UltramarineGiven := fail;

##  Keeps such a value.
BIND_GLOBAL("UltramarineGive", function(value)
    UltramarineGiven := value;
end);

##  The function with this source text.
BIND_GLOBAL("UltramarineFunction", function(text)
    local function_of_text, compiled;
    function_of_text := ReadAsFunction(InputTextString(Concatenation("return ", text, "\n;")));
    ULTRAMARINE_FailAfterErrors();
    compiled := function_of_text();
    if not IsFunction(compiled) then
        Error("this is no function: ", text);
    fi;
    return compiled;
end);

##  Compiles the source text of a function, and gives it a number.
BIND_GLOBAL("UltramarineCompile", function(text)
    Add(ULTRAMARINE_COMPILED, UltramarineFunction(text));
    return Length(ULTRAMARINE_COMPILED);
end);

##  The function and the arguments in the frame of a request.
BIND_GLOBAL("ULTRAMARINE_Request", function(frame)
    local called, arguments;
    called := ULTRAMARINE_Decode(frame);
    if IsInt(called) then
        called := ULTRAMARINE_COMPILED[called];
    else
        called := ValueGlobal(called);
    fi;
    arguments := ULTRAMARINE_Decode(frame);
    if frame.at <> Length(frame.tokens) + 1 then
        Error("the request does not end where it should");
    fi;
    return [ called, arguments ];
end);

##  The frame of a reply of this kind.
BIND_GLOBAL("ULTRAMARINE_Reply", function(kind, value)
    local reply;
    reply := rec(tokens := ShallowCopy(kind), bytes := "");
    ULTRAMARINE_Encode(reply, value, 0);
    return reply;
end);

##  Carries out a request, and returns the reply.
BIND_GLOBAL("ULTRAMARINE_Serve", function(request)
    local ended;
    if ULTRAMARINE_ERRORS <> "" then
        ULTRAMARINE_ERRORS := "";
        ERROR_OUTPUT := OutputTextString(ULTRAMARINE_ERRORS, true);
        SetPrintFormattingStatus(ERROR_OUTPUT, false);
    fi;
    ULTRAMARINE_REFUSED := fail;
    ended := CALL_WITH_CATCH(ULTRAMARINE_Request, [ request ]);
    if ended[1] then
        ended := CALL_WITH_CATCH(CallFuncList, ended[2]);
    fi;
    if ended[1] and Length(ended) = 1 then
        ended := [ true, rec(tokens := "+ n", bytes := "") ];
    elif ended[1] then
        ended := CALL_WITH_CATCH(ULTRAMARINE_Reply, [ "+", ended[2] ]);
    fi;
    if ended[1] then
        if ULTRAMARINE_ERRORS <> "" then
            # These are warnings.
            PrintTo("*errout*", ULTRAMARINE_ERRORS);
        fi;
        return ended[2];
    fi;
    # Options that were set on the way to the error would be seen by later calls.
    while not IsEmpty(OptionsStack) do
        PopOptions();
    od;
    if ULTRAMARINE_REFUSED <> fail then
        return ULTRAMARINE_Reply("?", ULTRAMARINE_REFUSED);
    fi;
    return ULTRAMARINE_Reply("-", ULTRAMARINE_ERRORS);
end);

##  The parts of a frame, which begins with these numbers; fail if it ends too
##  soon.
BIND_GLOBAL("ULTRAMARINE_Receive", function(stream, numbers)
    local length, parts, more;
    length := numbers[2] + numbers[3];
    parts := "";
    while Length(parts) < length do
        # What is in the pipe, which may be less.
        more := ReadAll(stream, length - Length(parts));
        if more = fail or more = "" then
            return fail;
        fi;
        Append(parts, more);
    od;
    return rec(
        tokens := SplitStringInternal(parts{[ 1 .. numbers[2] ]}, " ", ""),
        bytes := parts{[ numbers[2] + 1 .. Length(parts) ]},
        at := 1,
        byte := 1,
    );
end);

BIND_GLOBAL("ULTRAMARINE_Send", function(stream, number, frame)
    local all;
    all := Concatenation(STRING_INT(number), " ", STRING_INT(Length(frame.tokens)), " ",
                         STRING_INT(Length(frame.bytes)), "\n", frame.tokens, frame.bytes);
    return WriteAll(stream, all) = true;
end);

##  Serves requests from one file until they end, with replies to another.
BIND_GLOBAL("UltramarineServe", function(from, to)
    local requests, replies, reply, header, request;
    if ErrorCount() > 0 then
        # It goes on without what it could not load, be it half of its library.
        Print("GAP has not started without errors\n");
        QuitGap(1);
    fi;
    MakeReadWriteGlobal("ERROR_OUTPUT");
    BreakOnError := false;
    # Not empty: there is no stream for it yet.
    ULTRAMARINE_ERRORS := "none";
    requests := InputTextFile(from);
    replies := OutputTextFile(to, true);
    header := [ 0 ];
    reply := ULTRAMARINE_Reply("+", GAPInfo.Version);
    while ULTRAMARINE_Send(replies, header[1], reply) do
        header := ReadLine(requests);
        if header = fail then
            break;
        fi;
        Remove(header);
        header := List(SplitStringInternal(header, " ", ""), INT_STRING);
        request := ULTRAMARINE_Receive(requests, header);
        if request = fail then
            break;
        fi;
        reply := ULTRAMARINE_Serve(request);
    od;
    QuitGap(0);
end);
