#############################################################################
##
##  The link of a GAP in front to its job: requests go through one pipe, and
##  replies come through another, as frames ("values.g").
##
##  A request is a value, [ operation, functions, arguments, options ]. The job
##  works on the last one: another cancels it. The reply has its number, and
##  two values: "+" and a list with the result, or "-" and one with a message.
##

##  The link, once there is a job.
ULTRAMARINE_LINK := fail;

##  Ends the call if there is no job, or none any more.
BIND_GLOBAL("ULTRAMARINE_CheckLink", function()
    if ULTRAMARINE_LINK = fail then
        ErrorNoReturn("there is no job: start GAP with `ultramarine gap -n 4`");
    elif not ULTRAMARINE_LINK.is_open then
        ErrorNoReturn("the job has ended: what it says of that is near this line");
    fi;
end);

##  The next reply. After an interrupt the rest of it can be read by another
##  call.
BIND_GLOBAL("ULTRAMARINE_NextReply", function(link)
    local line, length, numbers, frame;
    if link.numbers = fail then
        # GAP sees an interrupt between two calls, and not in a call of the system.
        repeat until UNIXSelect([ link.descriptor ], [], [], 0, 100000) > 0;
        line := ReadLine(link.replies);
        if line = fail then
            link.is_open := false;
            ULTRAMARINE_CheckLink();
        fi;
        Remove(line);
        link.parts := "";
        link.numbers := List(SplitStringInternal(line, " ", ""), INT_STRING);
    fi;
    numbers := link.numbers;
    length := numbers[2] + numbers[3];
    while Length(link.parts) < length do
        line := ReadAll(link.replies, length - Length(link.parts));
        if line = fail or line = "" then
            link.is_open := false;
            ULTRAMARINE_CheckLink();
        fi;
        Append(link.parts, line);
    od;
    link.numbers := fail;
    frame := rec(
        tokens := SplitStringInternal(link.parts{[ 1 .. numbers[2] ]}, " ", ""),
        bytes := link.parts{[ numbers[2] + 1 .. length ]},
        at := 1,
        byte := 1,
    );
    return rec(number := numbers[1], kind := ULTRAMARINE_Decode(frame),
               values := ULTRAMARINE_Decode(frame));
end);

##  The frame of a request; fail if a part of it cannot travel.
BIND_GLOBAL("ULTRAMARINE_RequestFrame", function(request)
    local ended;
    ULTRAMARINE_REFUSED := fail;
    ended := CALL_WITH_CATCH(ULTRAMARINE_Reply, [ "+", request ]);
    if ended[1] then
        return ended[2];
    fi;
    return fail;
end);

##  Asks the job, and returns its answer. The name is that of the function that the user calls.
BIND_GLOBAL("ULTRAMARINE_Ask", function(name, request)
    local link, frame, reply;
    ULTRAMARINE_CheckLink();
    link := ULTRAMARINE_LINK;
    frame := ULTRAMARINE_RequestFrame(request);
    if frame = fail then
        ErrorNoReturn(name, ": this cannot leave GAP: ", ULTRAMARINE_REFUSED);
    fi;
    link.number := link.number + 1;
    link.is_busy := true;
    if not ULTRAMARINE_Send(link.requests, link.number, frame) then
        link.is_open := false;
        ULTRAMARINE_CheckLink();
    fi;
    repeat
        reply := ULTRAMARINE_NextReply(link);
    until reply.number = link.number;
    link.is_busy := false;
    if reply.kind = "-" then
        ErrorNoReturn(name, ": ", reply.values[1]);
    elif reply.values <> [] then
        return reply.values[1];
    fi;
end);

##  Opens the link through the pipes in this folder.
BIND_GLOBAL("UltramarineConnect", function(folder)
    local replies, before;
    replies := InputTextFile(Concatenation(folder, "/replies"));
    ULTRAMARINE_LINK := rec(
        requests := OutputTextFile(Concatenation(folder, "/requests"), true),
        replies := replies,
        descriptor := FileDescriptorOfStream(replies),
        number := 0,
        numbers := fail,
        is_busy := false,
        is_open := true,
    );
    # Who leaves the break loop after Ctrl-C wants no answer any more.
    before := OnQuit;
    MakeReadWriteGlobal("OnQuit");
    OnQuit := function()
        if ULTRAMARINE_LINK.is_busy and ULTRAMARINE_LINK.is_open then
            ULTRAMARINE_Ask("Cancel", [ "cancel", [], [], rec() ]);
        fi;
        before();
    end;
    MakeReadOnlyGlobal("OnQuit");
    ULTRAMARINE_Ask("Connect", [ "begin", [], [], rec() ]);
end);

##  What GAP says of the errors of a source text or a file, which it only parses, as a function.
BIND_GLOBAL("ULTRAMARINE_SyntaxErrors", function(source)
    local said, before;
    said := "";
    before := ERROR_OUTPUT;
    MakeReadWriteGlobal("ERROR_OUTPUT");
    ERROR_OUTPUT := OutputTextString(said, true);
    SetPrintFormattingStatus(ERROR_OUTPUT, false);
    ReadAsFunction(source);
    CloseStream(ERROR_OUTPUT);
    ERROR_OUTPUT := before;
    MakeReadOnlyGlobal("ERROR_OUTPUT");
    return said;
end);

##  Whether the first of these errors of a file is a "quit;" between two statements: it is right,
##  and ends the script there.
BIND_GLOBAL("ULTRAMARINE_QuitsFirst", function(file, errors)
    local at, line, column, lines, parts;
    errors := SplitString(errors, "\n");
    at := PositionProperty(errors, line -> StartsWith(line, "Syntax error: "));
    # At the end of a file, where its semicolon is missing, there is no line below.
    if PositionSublist(errors[at], "in this context") = fail or not IsBound(errors[at + 2]) then
        return false;
    fi;
    # The number of the line stands at the end, and a mark below the line.
    parts := SplitString(errors[at], ":");
    line := Int(parts[Length(parts)]);
    column := Position(errors[at + 2], '^');
    lines := SplitString(StringFile(file), "\n"){[ 1 .. line ]};
    lines[line] := lines[line]{[ 1 .. column - 1 ]};
    errors := ULTRAMARINE_SyntaxErrors(InputTextString(JoinStringsWithSeparator(lines, "\n")));
    return PositionSublist(Concatenation("\n", errors), "\nSyntax error: ") = fail;
end);

##  Makes ready for a script, which GAP reads next: an error ends GAP with status 1.
BIND_GLOBAL("UltramarinePrepareScript", function(file)
    local errors, is_wrong;
    if not IsReadableFile(file) then
        PrintTo("*errout*", "Error, there is no script `", file, "` that can be read\n");
        QuitGap(1);
    fi;
    # GAP would end the script at a syntax error, with status 0, when all before it is done.
    errors := ULTRAMARINE_SyntaxErrors(file);
    is_wrong := PositionSublist(Concatenation("\n", errors), "\nSyntax error: ") <> fail;
    if is_wrong and not ULTRAMARINE_QuitsFirst(file, errors) then
        PrintTo("*errout*", errors);
        QuitGap(1);
    fi;
    OnBreak := function()
        Where(10);
        QuitGap(1);
    end;
end);
