#############################################################################
##
##  The loop of a GAP that computes for a program.
##
##  A request is a line: its number, the function, and the list of the
##  arguments. The function is a string, the name of a global one, or the
##  number that "UltramarineCompile" has given it. The reply is a line:
##
##  number  +  value     the result
##  number  -  "text     what GAP said of an error
##  number  ?  "text     the result cannot be sent: what it is
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

##  Compiles the source text of a function, and gives it a number.
BIND_GLOBAL("UltramarineCompile", function(text)
    local function_of_text, compiled;
    function_of_text := ReadAsFunction(InputTextString(Concatenation("return ", text, "\n;")));
    ULTRAMARINE_FailAfterErrors();
    compiled := function_of_text();
    if not IsFunction(compiled) then
        Error("this is no function: ", text);
    fi;
    Add(ULTRAMARINE_COMPILED, compiled);
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

##  The reply to the frame of a request.
BIND_GLOBAL("ULTRAMARINE_Reply", function(frame)
    local ended, reply, encoded;
    if ULTRAMARINE_ERRORS <> "" then
        ULTRAMARINE_ERRORS := "";
        ERROR_OUTPUT := OutputTextString(ULTRAMARINE_ERRORS, true);
        SetPrintFormattingStatus(ERROR_OUTPUT, false);
    fi;
    ULTRAMARINE_REFUSED := fail;
    ended := CALL_WITH_CATCH(ULTRAMARINE_Request, [ frame ]);
    if ended[1] then
        ended := CALL_WITH_CATCH(CallFuncList, ended[2]);
    fi;
    if ended[1] then
        reply := Concatenation(frame.tokens[1], "\037+");
        if Length(ended) = 1 then
            Append(reply, "\037n");
            encoded := [ true ];
        else
            encoded := CALL_WITH_CATCH(ULTRAMARINE_Encode, [ reply, ended[2], 0 ]);
        fi;
        if encoded[1] then
            if ULTRAMARINE_ERRORS <> "" then
                # These are warnings.
                PrintTo("*errout*", ULTRAMARINE_ERRORS);
            fi;
            return reply;
        fi;
    fi;
    # Options that were passed on the way to the error would be seen by later calls.
    while not IsEmpty(OptionsStack) do
        PopOptions();
    od;
    reply := ShallowCopy(frame.tokens[1]);
    if ULTRAMARINE_REFUSED <> fail then
        Append(reply, "\037?");
        ULTRAMARINE_Encode(reply, ULTRAMARINE_REFUSED, 0);
    else
        Append(reply, "\037-");
        ULTRAMARINE_Encode(reply, ULTRAMARINE_ERRORS, 0);
    fi;
    return reply;
end);

##  Serves requests from one file until they end, with replies to another.
BIND_GLOBAL("UltramarineServe", function(from, to)
    local requests, replies, request, more, reply;
    MakeReadWriteGlobal("ERROR_OUTPUT");
    BreakOnError := false;
    ULTRAMARINE_ERRORS := "new";
    requests := InputTextFile(from);
    replies := OutputTextFile(to, true);
    SetPrintFormattingStatus(replies, false);
    reply := ShallowCopy("0\037+");
    ULTRAMARINE_Encode(reply, GAPInfo.Version, 0);
    repeat
        Add(reply, '\n');
        if WriteAll(replies, reply) <> true then
            break;
        fi;
        request := ReadLine(requests);
        while request <> fail and Last(request) <> '\n' do
            # A part of a line, as it comes through the pipe.
            more := ReadLine(requests);
            if more = fail then
                request := fail;
            else
                Append(request, more);
            fi;
        od;
        if request <> fail then
            Remove(request);
            request := SplitStringInternal(request, ULTRAMARINE_SEPARATOR, "");
            reply := ULTRAMARINE_Reply(rec(tokens := request, at := 2));
        fi;
    until request = fail;
    QuitGap(0);
end);
