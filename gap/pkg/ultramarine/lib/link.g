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

##  Reading takes from the pipe what is there, up to this number of bytes. With less than GAP's own
##  buffer has, a part would stay there, where "UNIXSelect" does not see it.
BIND_GLOBAL("ULTRAMARINE_BYTES_AT_ONCE", 2^20);

##  The next reply, for the request of this number. GAP sees an interrupt between two statements. So
##  one statement reads and keeps what it has read: whatever the break loop leads to, none is lost.
BIND_GLOBAL("ULTRAMARINE_NextReply", function(link, name, number)
    local come, size, head, length, numbers, ready, chunk, frame, check;
    check := function()
        if link.number <> number then
            ErrorNoReturn(name, ": a call in the break loop has cancelled this one");
        fi;
    end;
    size := Sum(link.come, Length);
    length := fail;
    repeat
        if length = fail then
            come := Concatenation(link.come);
            head := Position(come, '\n');
            if head <> fail then
                numbers := List(SplitStringInternal(come{[ 1 .. head - 1 ]}, " ", ""), INT_STRING);
                length := head + numbers[2] + numbers[3];
            fi;
        fi;
        if length = fail or size < length then
            # A call of the system ends late at an interrupt, so this one is short.
            repeat
                ready := UNIXSelect([ link.descriptor ], [], [], 0, 100000);
                check();
            until ready > 0;
            ADD_LIST(link.come, READ_ALL_FILE(link.file, ULTRAMARINE_BYTES_AT_ONCE));
            chunk := link.come[Length(link.come)];
            if chunk = fail then
                link.is_open := false;
                ULTRAMARINE_CheckLink();
            fi;
            size := size + Length(chunk);
        fi;
    until length <> fail and size >= length;
    come := Concatenation(link.come);
    check();
    link.come := [ come{[ length + 1 .. Length(come) ]} ];
    frame := rec(
        tokens := SplitStringInternal(come{[ head + 1 .. head + numbers[2] ]}, " ", ""),
        bytes := come{[ head + numbers[2] + 1 .. length ]},
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
    local link, frame, reply, number;
    ULTRAMARINE_CheckLink();
    link := ULTRAMARINE_LINK;
    frame := ULTRAMARINE_RequestFrame(request);
    if frame = fail then
        ErrorNoReturn(name, ": this cannot leave GAP: ", ULTRAMARINE_REFUSED);
    fi;
    number := link.number + 1;
    link.number := number;
    link.is_busy := true;
    if not ULTRAMARINE_Send(link.requests, number, frame) then
        link.is_open := false;
        ULTRAMARINE_CheckLink();
    fi;
    repeat
        reply := ULTRAMARINE_NextReply(link, name, number);
    until reply.number = number;
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
        file := replies![1],
        descriptor := FileDescriptorOfStream(replies),
        number := 0,
        come := [],
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
