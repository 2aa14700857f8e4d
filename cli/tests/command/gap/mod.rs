//! `ultramarine gap`: scripts, what is said of their errors, and deaths. Jobs are those of the
//! program `ultramarine-gap` beside the command.

mod interrupts;
mod journal;
mod link;
mod moves;
mod package;

use crate::harness::{MARK, Stage, nothing_is_left, run, ultramarine};
use crate::real::launcher;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use ultramarine_testkit::{Ended, behind, eventually, marked};

/// The command with a script of this text, on two PEs in one process.
fn on_two_pes(test: &str, script: &str) -> Ended {
    let stage = Stage::new(test);
    let mut command = ultramarine(&["gap", "--pes", "2"]);
    run(command.arg(file(&stage, script)).current_dir(stage.bin()).env("ULTRAMARINE_THREADS", "1"))
}

fn file(stage: &Stage, script: &str) -> PathBuf {
    let file = stage.bin().join("script.g");
    std::fs::write(&file, script).expect("the folder is our own");
    file
}

/// Fails at the first line that is not true.
const CHECK: &str = "check := function(got, wanted)\n\
     if got <> wanted then Error(\"got \", got, \" instead of \", wanted); fi;\nend;\n";

fn succeeds(test: &str, script: &str) {
    let ended = on_two_pes(test, &format!("{CHECK}{script}Print(\"all is well\\n\");\n"));
    ended.is_well();
    assert!(!ended.err.contains("Error"), "{}", ended.err);
}

#[test]
fn maps_return_what_list_returns() {
    succeeds(
        "gap-maps",
        r#"
square := List([1..1000], x -> x^2);;
check(ParMap(x -> x^2, [1..1000]), square);
check(ParMap(x -> x^2, [1..1000] : supervised := true, radius := 1/2, chunk := 7), square);
check(ParMapChunked(100, x -> x^2, [1..1000]), square);
check(ParMapLocal(0, x -> x^2, [1..1000]), square);
check(ParMap2Level(1, x -> x^2, [1..1000]), square);
check(ParMap2LevelRelaxed(1, x -> x^2, [1..1000]), square);
check(LoadPackage("ultramarine"), true);
check(ParMap(x -> x, []), []);
check(ParMap(\+, [1, 2] : given := 10), [11, 12]);
mixed := [1/2, -2^100, "text", (1,2,3), rec(a := [true, fail])];;
check(ParMap(IdFunc, mixed), mixed);
"#,
    );
}

#[test]
fn other_skeletons_return_what_gap_returns() {
    succeeds(
        "gap-others",
        r#"
check(ParReduce(\+, [1..1000]), 500500);
check(ParReduce(Concatenation, List([1..100], String)), Concatenation(List([1..100], String)));
check(ParReduce(\+, [5]), 5);
fibonacci := n -> ParDivideAndConquer(n -> n < 2, n -> n, n -> [n - 1, n - 2],
                                      {n, parts} -> Sum(parts), n);;
check(fibonacci(12), 144);
m11 := MathieuGroup(11);;
check(ParOrbit(m11, 1), Orbit(m11, 1));
check(ParOrbit(m11, [1, 2, 3], OnSets), Orbit(m11, [1, 2, 3], OnSets));
check(ParOrbit(m11, [1, 2, 3, 4, 5], OnTuples : length := true), 7920);
check(ParOrbit(m11, [1, 2], OnSets : length := true, radius := 1/2), 55);
check(ParOrbit([], 1 : length := true), 1);
check(ParOrbit([], 1), [1]);
check(ParOrbit([1], [], {x, g} -> ""), [[]]);
check(ParOrbit([1], [], {x, g} -> "" : length := true), 1);
"#,
    );
}

#[test]
fn determinants_follow_from_their_images() {
    succeeds(
        "gap-determinants",
        r"
for n in [1, 2, 20] do
    m := RandomMat(n, n, [-10^6 .. 10^6]);
    check(ParDeterminant(m), Determinant(m));
od;
check(ParDeterminant([[1, 2], [2, 4]]), 0);
check(ParDeterminant([[0, 1], [1, 0]]), -1);
# An image modulo each second prime is missing, and others take their place.
image := function(p, n) if p mod 4 = 1 then return fail; fi; return [n mod p, -n mod p]; end;;
check(ParHomomorphicImages(image, 10^40, 10^40), [10^40, -10^40]);
check(ParHomomorphicImages({p, d} -> 0, 1, 0), 0);
check(ParHomomorphicImages({p, d} -> [0, 0], 1, 0), [0, 0]);
",
    );
}

#[test]
fn definitions_are_known_on_all_pes() {
    succeeds(
        "gap-definitions",
        r#"
ParDefine("factor := 3; triple := x -> factor * x;");
check(ParMap(x -> triple(x), [1..10]), [3, 6 .. 30]);
FileString("more.g", "add := x -> triple(x) + 1;\n");;
ParRead("more.g");
check(ParMap(x -> add(x), [1..10]), [4, 7 .. 31]);
ParDefine("factor := 5;");
ParDefine("factor := 3; triple := x -> factor * x;");
check(ParMap(x -> add(x), [1..10]), [4, 7 .. 31]);
"#,
    );
}

#[test]
fn a_gap_that_dies_on_a_pe_is_replaced() {
    succeeds(
        "gap-dies",
        r#"
dies_once := function(x)
    if x = 5 and not IsExistingFile("died") then PrintTo("died", x); QuitGap(9); fi;
    return x;
end;;
check(ParMap(dies_once, [1..10]), [1..10]);
"#,
    );
}

/// Calls, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "n := 5;; ParMapLocal(0, x -> x + n, [1]);",
        "on PE 0: item 1: Error, Variable: 'n' must have an assigned value (ParDefine defines it",
    ),
    (
        "ParMap(x -> ParMap(IdFunc, [x]), [1]);",
        "'ParMap' must have an assigned value (in a task there are no parallel functions)",
    ),
    ("ParMap(x -> 1 / (x - 77), [1..100] : chunk := 9);", ": item 77: Error, "),
    ("ParMap({x, n} -> n / (x - 5), [1..9] : chunk := 2, given := 1);", ": item 5: Error, "),
    ("ParReduce({x, y} -> x / y, [1, 0]);", ": Error, Rational operations"),
    ("ParMap(x -> Group((1,2)), [1]);", "the result cannot leave GAP: component object"),
    ("ParMap(x -> x, [Group((1,2))]);", "ParMap: this cannot leave GAP: component object"),
    ("ParMap(function(x) end, [1]);", "<func> must return a value"),
    ("DeclareOperation(\"Foo\", [IsInt]);; ParMap(Foo, [1]);", "the function `Foo` cannot travel"),
    (
        "f := n -> ParMap(x -> List([1], y -> x + n), [1]);; f(1);",
        "it uses `n`, a variable of the function around it",
    ),
    ("ParMap(x -> QuitGap(9), [1]);", "GAP died amid the call (tries: 2): it ended with code 9"),
    ("ParMap(3, [1]);", "ParMap: this should be a function: 3"),
    ("ParMap(IdFunc, 3);", "the items: expected a list, found an integer"),
    ("ParMap(IdFunc, [1] : radius := 2);", "option radius: 2 is no distance"),
    ("ParMap(IdFunc, [1] : chunk := 0);", "a task has at least one item"),
    ("ParMap(IdFunc, [1] : supervised := 1);", "option supervised: expected a boolean"),
    ("ParReduce(\\+, []);", "an empty list has nothing to combine"),
    ("ParDivideAndConquer(x -> 1, x -> x, x -> [x], {x, y} -> x, 1);", "must return true or false"),
    ("ParDeterminant([[1, 2]]);", "a square matrix of integers"),
    ("ParDeterminant([[1, 2], [3]]);", "a square matrix of integers"),
    ("ParHomomorphicImages({p, d} -> d mod p, 100, 10);", "the result 100 is beyond the bound 10"),
    ("ParHomomorphicImages({p, d} -> fail, 1, 10);", "returned fail for more than 1000 primes"),
    ("ParDefine(\"x := ;\");", "ParDefine: on PE 0: Syntax error: expression expected"),
    ("ParRead(\"no.g\");", "ParRead: there is no file `no.g` that can be read"),
];

/// What GAP says when it reads these lines as a user types them.
fn typed(lines: &str) -> Ended {
    let mut shell = ultramarine(&["gap", "--pes", "2"]);
    shell.env("ULTRAMARINE_THREADS", "1");
    let mut shell = behind(["sh", "-c", "printf '%s' \"$LINES_TYPED\" | \"$0\" \"$@\""], &shell);
    run(shell.env("LINES_TYPED", lines))
}

#[test]
fn what_cannot_be_is_an_error_that_names_it() {
    let mark = |number| format!("PrintTo(\"*errout*\", \"== {number}\\n\");\n");
    let calls = REFUSED.iter().enumerate();
    let lines = calls.map(|(number, (call, _))| mark(number) + call + "\nquit;\n");
    let last = "Print(ParMap(x -> 2 * x, [1..3]), \"\\n\");\n";
    let ended = typed(&(lines.collect::<String>() + last));
    // GAP breaks long lines, and goes on after each error.
    assert!(ended.succeeded().contains("[ 2, 4, 6 ]"), "{}", ended.out);
    let text = ended.err.replace("\\\n", "");
    for (number, (call, said)) in REFUSED.iter().enumerate() {
        let own = text.split_once(&format!("== {number}\n")).map_or("", |(_, rest)| rest);
        let own = own.split("== ").next().unwrap_or_default();
        assert!(own.contains(said), "{call}: `{said}` is not in:\n{own}");
    }
}

#[test]
fn an_error_in_a_script_is_said_with_its_place() {
    let ended = on_two_pes("gap-syntax", "Print(\"begun\");\nx := 1 +* 2;\n");
    ended.fails_with("Syntax error: expression expected in");
    assert!(ended.code == Some(1) && ended.err.contains("script.g:2"), "{}", ended.err);
    assert!(
        !ended.out.contains("begun"),
        "nothing is done before the file is right: {}",
        ended.out
    );
    let ended = on_two_pes("gap-place", "n := 5;;\nParMap(x -> x + n, [1]);\nPrint(\"on\");\n");
    ended.fails_with("Variable: 'n' must have an assigned value");
    assert!(ended.code == Some(1) && ended.err.contains("script.g:2"), "{}", ended.err);
    assert!(!ended.out.contains("on"), "it ends there: {}", ended.out);
}

/// What the guide's script prints, without blanks and line ends, and with blanks for commas.
const GUIDE_PRINTS: &str =
    "2736188[1 7 10 13 19 23 28 31 32 44 49 68 70 79 82 86 91 94 97 100]2204";

#[test]
fn the_guides_script_works() {
    let guide = include_str!("../../../../docs/guide/tasks.md");
    let script = guide.split_once("```gap\n").and_then(|(_, rest)| rest.split_once("```"));
    let ended = on_two_pes("gap-guide", script.expect("it has one").0);
    let lines: Vec<_> = ended.succeeded().split_whitespace().collect();
    assert_eq!(lines.concat().replace(',', " "), GUIDE_PRINTS);
}

#[test]
fn the_status_is_that_of_the_script() {
    assert_eq!(on_two_pes("gap-status", "QuitGap(7);").code, Some(7));
    let quits = on_two_pes("gap-quit", "Print(ParMap(x -> x, [1]), \"\\n\");\nquit;\nError();");
    assert_eq!(quits.succeeded().lines().next(), Some("[ 1 ]"));
    let quits =
        on_two_pes("gap-quit-behind", "if true then\n  Print(\"on\\n\");\nfi; QUIT;\n1 +* 2;");
    assert_eq!(quits.succeeded(), "on\n");
}

#[test]
fn to_quit_within_a_statement_is_an_error() {
    for script in ["Print(1);\nf := function() QUIT; end;\nf();", "if true then\nquit; fi;"] {
        let ended = on_two_pes("gap-quit-inside", script);
        ended.fails_with("cannot be used in this context");
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    }
}

#[test]
fn what_is_missing_is_named() {
    let stage = Stage::new("gap-missing");
    let text = run(ultramarine(&["gap", "--pes", "2"]).env("ULTRAMARINE_GAP", "/no/gap")).refuses();
    assert!(text.starts_with("there is no program `/no/gap`: install GAP"), "{text}");
    let text = run(&mut ultramarine(&["gap", "--pes", "2", "no.g"])).refuses();
    assert_eq!(text, "there is no script `no.g` that can be read");
    let alone = stage.bin().join("alone");
    std::fs::copy(env!("CARGO_BIN_EXE_ultramarine"), &alone).expect("there is room");
    let text = run(Command::new(&alone).args(["gap", "--pes", "2"])).refuses();
    assert!(text.contains("cargo build --release -p ultramarine-gap-job"), "{text}");
}

#[test]
fn a_job_that_does_not_start_is_an_error() {
    let mut command = ultramarine(&["gap", "--pes", "2", "--", "--no-such-flag"]);
    run(&mut command).fails_with("the job has ended before GAP could begin (exit status: 2)");
}

#[test]
fn a_job_that_ends_before_gap_has_opened_the_pipes_is_an_error() {
    let stage = Stage::new("gap-slow");
    // By the time that this one has begun, the job is dead.
    let slow = stage.script("slow", "exec sleep 60");
    let mut command = ultramarine(&["gap", "--pes", "1", "--", "--kill-at", "1"]);
    run(command.env("ULTRAMARINE_GAP", slow))
        .fails_with("the job has ended before GAP could begin");
}

/// Each PE of three is in a task, until the file `go` is there.
const WAITING: &str = "wait := function(x)\n\
     PrintTo(Concatenation(\"begun\", String(x)), x);\n\
     while not IsExistingFile(\"go\") do Sleep(0); od;\n\
     return x;\nend;;\n";

/// A running job of three processes, with this mark.
struct Running {
    stage: Stage,
    mark: &'static str,
    /// `None` once it has ended.
    child: Option<Child>,
}

impl Running {
    fn start(mark: &'static str, options: &str) -> Option<Self> {
        let launcher = launcher()?;
        let stage = Stage::new(mark);
        let script = file(&stage, &format!("{WAITING}Print(ParMap(wait, [1..6]{options}));\n"));
        let mut command = ultramarine(&["gap", "-n", "3"]);
        command.arg(script).current_dir(stage.bin());
        command.env("MPIEXEC", launcher).env("ULTRAMARINE_THREADS", "1").env(MARK, mark);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it was built");
        let running = Running { stage, mark, child: Some(child) };
        running.has_begun(3);
        Some(running)
    }

    /// Waits until this number of tasks have begun, one on each PE.
    fn has_begun(&self, tasks: usize) {
        let begun = |task: &u32| self.stage.bin().join(format!("begun{task}")).exists();
        eventually("each PE has a task", || (1..=6).filter(begun).count() == tasks);
    }

    /// The command's process.
    fn own(&self) -> i32 {
        self.child.as_ref().expect("it runs").id() as i32
    }

    /// The process of the job with this rank, behind its guard.
    fn rank(&self, rank: u32) -> i32 {
        let names = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"];
        let mut of_rank = names.iter().flat_map(|name| marked(name, &rank.to_string()));
        let all = marked(MARK, self.mark);
        let is_job = |process: i32| program(process).ends_with("ultramarine-gap");
        of_rank
            .find(|process| all.contains(process) && is_job(*process) && is_job(parent(*process)))
            .expect("each rank has a process")
    }

    /// The GAP that the user sees.
    fn front(&self) -> i32 {
        let own = self.own();
        let mut all = marked(MARK, self.mark).into_iter();
        all.find(|process| parent(*process) == own && program(*process).ends_with("gap"))
            .expect("GAP is in front")
    }

    /// Waits for the end of the command.
    fn ends(&mut self) {
        let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        eventually("it ends", || self.child.as_mut().is_none_or(has_ended));
    }

    /// How all ends when this process is killed; no process and no folder may be left.
    fn ends_without(self, process: i32) -> (Option<i32>, String) {
        self.ends_by(process, Signal::KILL)
    }

    /// The same by this signal.
    fn ends_by(mut self, process: i32, signal: Signal) -> (Option<i32>, String) {
        let folder = format!("ultramarine-gap-{}-0", self.own());
        kill_process(Pid::from_raw(process).expect("a process"), signal).expect("it runs");
        self.ends();
        let child = self.child.take().expect("it ends once");
        let output = child.wait_with_output().expect("it is a child of ours");
        nothing_is_left(self.mark);
        assert!(!std::env::temp_dir().join(folder).exists(), "its folder is left");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said.replace("\\\n", ""))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The test has failed.
        if self.child.is_some() {
            marked(MARK, self.mark).into_iter().for_each(ultramarine_testkit::kill);
        }
    }
}

fn program(process: i32) -> PathBuf {
    std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default()
}

fn parent(process: i32) -> i32 {
    // Behind the name, which may have spaces, are the state and the parent.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let behind = stat.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_supervised_map_survives_a_death() {
    let Some(running) = Running::start("gap-supervised", " : supervised := true") else { return };
    let go = running.stage.bin().join("go");
    let rank = running.rank(2);
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        std::fs::write(go, "").expect("the folder is our own");
    });
    let (code, said) = running.ends_without(rank);
    assert!(code == Some(0) && said.contains("[ 1, 2, 3, 4, 5, 6 ]"), "{code:?}: {said}");
}

#[test]
fn a_map_that_is_not_supervised_says_what_would_help() {
    let Some(running) = Running::start("gap-unsupervised", "") else { return };
    let rank = running.rank(2);
    let (code, said) = running.ends_without(rank);
    assert!(code == Some(1) && said.contains("option `supervised := true`"), "{code:?}: {said}");
}

#[test]
fn the_death_of_the_root_is_an_error_and_no_hang() {
    let Some(running) = Running::start("gap-root", "") else { return };
    let root = running.rank(0);
    let (code, said) = running.ends_without(root);
    assert!(code == Some(1) && said.contains("ParMap"), "{code:?}: {said}");
    assert!(said.contains("the job has ended: what it says"), "{said}");
}

#[test]
fn the_death_of_gap_ends_the_job() {
    let Some(running) = Running::start("gap-front", "") else { return };
    let front = running.front();
    let (code, said) = running.ends_without(front);
    assert_eq!(code, Some(128 + 9), "{said}");
    assert_eq!(said, "Error: GAP was killed by signal 9, and its job is ended\n");
}

#[test]
fn a_signal_to_the_command_alone_ends_all() {
    for (mark, signal, number) in [("gap-int", Signal::INT, 2), ("gap-term", Signal::TERM, 15)] {
        let Some(running) = Running::start(mark, "") else { return };
        let own = running.own();
        assert_eq!(running.ends_by(own, signal), (Some(128 + number), String::new()));
    }
}

#[test]
fn the_death_of_the_command_ends_all() {
    let Some(running) = Running::start("gap-command", "") else { return };
    let own = running.own();
    assert_eq!(running.ends_without(own).0, None);
}
