//! Interrupts of a user who types, and what becomes of the call.

use super::moves::DIES_TWICE;
use super::{Running, WAITING};
use crate::harness::{MARK, Stage, nothing_is_left, ultramarine};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use ultramarine_testkit::{behind, eventually};

/// A user in front of two PEs of one process.
struct User {
    running: Running,
    input: ChildStdin,
}

impl User {
    /// Types this first, which begins the tasks 1 to `tasks`.
    fn begins(mark: &'static str, options: &[&str], text: &str, tasks: usize) -> Self {
        let stage = Stage::new(mark);
        let mut command = ultramarine(&["gap", "--pes", "2"]);
        command.args(options);
        command.current_dir(stage.bin()).env(MARK, mark).env("ULTRAMARINE_THREADS", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it was built");
        let input = child.stdin.take().expect("it is piped");
        let mut user = User { running: Running { stage, mark, child: Some(child) }, input };
        user.types(WAITING);
        user.types(text);
        user.running.has_begun(tasks);
        user
    }

    fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).expect("GAP reads");
    }

    fn interrupts(&self) {
        let front = Pid::from_raw(self.running.front()).expect("a process");
        kill_process(front, Signal::INT).expect("it runs");
    }

    /// What is printed, and said, until the end.
    fn ends(self) -> (String, String) {
        let User { mut running, input } = self;
        drop(input);
        running.ends();
        let output = running.child.take().expect("it ends once").wait_with_output();
        let output = output.expect("it is a child of ours");
        nothing_is_left(running.mark);
        let [printed, said] = [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).replace("\\\n", ""));
        assert!(output.status.success(), "{printed}{said}");
        (printed, said)
    }
}

/// The next call. Its tasks wait for each other: no PE computes for another call.
const NEXT: &str = r#"
meet := function(x)
    PrintTo(Concatenation("met", String(x)), x);
    while not (IsExistingFile("met2") and IsExistingFile("met4")) do Sleep(0); od;
    return x;
end;;
Print(ParMap(meet, [2, 4] : chunk := 1), "\n");
"#;

/// A call that begins this number of tasks is interrupted, and left.
fn is_cancelled(mark: &'static str, options: &[&str], text: &str, tasks: usize) {
    let mut user = User::begins(mark, options, text, tasks);
    user.interrupts();
    user.types("quit;\n");
    user.types(NEXT);
    let (printed, _) = user.ends();
    assert!(printed.contains("[ 2, 4 ]"), "{printed}");
}

#[test]
fn a_call_that_is_interrupted_and_left_is_cancelled() {
    is_cancelled("gap-interrupted", &[], "ParMap(wait, [1..6]);\n", 2);
}

#[test]
fn a_definition_that_is_interrupted_and_left_is_cancelled() {
    let text = r#"ParDefine("PrintTo(\"begun1\", 1); while true do od;");"#;
    is_cancelled("gap-define", &[], &format!("{text}\n"), 1);
}

#[test]
fn a_division_for_the_journal_is_cancelled() {
    let text = "ParDivideAndConquer(wait, IdFunc, x -> [x], {x, all} -> x, 1);\n";
    is_cancelled("gap-divide", &["--journal", "results"], text, 1);
}

#[test]
fn the_search_of_an_orbit_is_cancelled() {
    let call = "ParOrbit([(1,2)], 1, {x, g} -> wait(x) : length := true);";
    is_cancelled("gap-orbit", &[], &format!("ParDefine({WAITING:?});\n{call}\n"), 1);
}

#[test]
fn a_call_that_another_pe_tries_is_cancelled() {
    let call = "ParMap(x -> wait(dies(x)), [1]);";
    let text = format!("ParDefine({WAITING:?});\n{DIES_TWICE}{call}\n");
    is_cancelled("gap-moved", &[], &text, 1);
}

#[test]
fn a_call_in_the_break_loop_cancels_the_one_that_was_interrupted() {
    let mut user = User::begins("gap-return", &[], "ParMap(wait, [1..6]);\n", 2);
    user.interrupts();
    user.types(NEXT);
    user.types("return;\nquit;\nPrint(ParMap(x -> 3 * x, [1..3]), \"\\n\");\n");
    let (printed, said) = user.ends();
    // The break loop prints where errors are said.
    assert!(said.contains("[ 2, 4 ]") && printed.contains("[ 3, 6, 9 ]"), "{printed}{said}");
    assert!(said.contains("ParMap: a call in the break loop has cancelled this one"), "{said}");
}

#[test]
fn a_terminals_interrupt_is_a_matter_of_gap() {
    let (mark, stage) = ("gap-terminal", Stage::new("gap-terminal"));
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there is one");
    unlockpt(&terminal).expect("it is new");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let open = || File::options().read(true).write(true).open(name.to_str().expect("ASCII"));
    let front = || Stdio::from(open().expect("it is there"));
    let mut command = ultramarine(&["gap", "--pes", "2"]);
    command.env(MARK, mark).env("ULTRAMARINE_THREADS", "1");
    let mut command = behind(["setsid", "--ctty", "--wait"], &command);
    command.current_dir(stage.bin()).stdin(front()).stdout(front()).stderr(front());
    let child = Some(command.spawn().expect("it was built"));
    let mut running = Running { stage, mark, child };
    let mut keys = File::from(terminal);
    let mut screen = keys.try_clone().expect("it is open");
    let shown = Arc::new(Mutex::new(Vec::new()));
    let all = shown.clone();
    // It ends with an error when the last process has closed the terminal.
    std::thread::spawn(move || {
        let mut some = [0; 1 << 12];
        while let Ok(length @ 1..) = screen.read(&mut some) {
            all.lock().expect("no other panics").extend_from_slice(&some[..length]);
        }
    });
    let shows = |text: &str| {
        let shown = shown.lock().expect("no other panics");
        String::from_utf8_lossy(&shown).contains(text)
    };
    let mut type_in = |text: &str| keys.write_all(text.as_bytes()).expect("it is open");
    type_in(&format!("{WAITING}ParMap(wait, [1..6]);\n"));
    running.has_begun(2);
    type_in("\x03");
    eventually("GAP is in the break loop", || shows("brk>"));
    type_in("quit;\n");
    type_in(NEXT);
    eventually("the next call has a result", || shows("[ 2, 4 ]"));
    type_in("QUIT;\n");
    running.ends();
    let status = running.child.take().expect("it ends once").wait();
    assert!(status.expect("it is a child of ours").success());
    nothing_is_left(mark);
}
