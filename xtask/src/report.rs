//! What `cargo xtask test` says: a heading for each step, its time and its slowest tests, a table
//! at the end, and below it the closing lines of the test runners, which otherwise are far up in
//! the log.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::{self, Line, Result, cannot_start};

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Ok,
    Failed,
    /// Not run, and why.
    Skipped(String),
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) step: String,
    pub(crate) took: Duration,
    pub(crate) outcome: StepOutcome,
    /// The closing lines of the test runner, if the step ran one.
    pub(crate) closing: Vec<String>,
}

pub(crate) fn heading(step: &str, summary: &str) {
    println!("\n=== {step}: {summary}");
}

pub(crate) fn footing(row: &Row, slowest: &[TestTime]) {
    println!("--- {}: {} in {:.1} s", row.step, word(&row.outcome), row.took.as_secs_f64());
    if !slowest.is_empty() {
        println!("    the slowest tests:");
    }
    for TestTime { seconds, name } in slowest {
        println!("    {seconds:>7.1} s  {name}");
    }
}

/// How long a test took, as nextest says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestTime {
    pub(crate) seconds: f64,
    pub(crate) name: String,
}

impl TestTime {
    /// From a line about a test that has ended: `PASS [   0.012s] ( 3/20) crate::binary test`.
    fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(" [")?;
        let (seconds, rest) = rest.split_once("s] ")?;
        let (_, name) = rest.split_once(") ")?;
        let has_ended = word.chars().all(|c| c.is_ascii_uppercase() || "- 0123456789".contains(c));
        let seconds = seconds.trim().parse().ok().filter(|_| has_ended)?;
        Some(TestTime { seconds, name: name.to_owned() })
    }
}

/// How many of the slowest tests of a step are named.
const SLOWEST: usize = 10;

/// The slowest tests, each once: nextest says some things twice.
fn slowest(mut times: Vec<TestTime>) -> Vec<TestTime> {
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
    times.dedup();
    times.truncate(SLOWEST);
    times
}

/// What was heard of a test runner.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Its closing lines.
    pub(crate) closing: Vec<String>,
    /// Its slowest tests, the slowest first.
    pub(crate) slowest: Vec<TestTime>,
    /// How many tests say that they were skipped.
    pub(crate) skipped: u32,
}

/// The table, as text.
pub(crate) fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.step.len()).chain([4]).max().unwrap_or_default();
    let line = |row: &Row| {
        let why = match &row.outcome {
            StepOutcome::Skipped(why) => format!(": {why}"),
            StepOutcome::Ok | StepOutcome::Failed => String::new(),
        };
        let (step, seconds) = (&row.step, row.took.as_secs_f64());
        format!("{step:width$}  {seconds:>7.1}  {}{why}\n", word(&row.outcome))
    };
    let closing = |row: &Row| -> String {
        row.closing.iter().map(|line| [&row.step, ": ", line, "\n"].concat()).collect()
    };
    let header = format!("{:width$}  {:>7}  result\n", "step", "seconds");
    let all: Duration = rows.iter().map(|row| row.took).sum();
    let all = format!("{:width$}  {:>7.1}\n", "all", all.as_secs_f64());
    let lines = std::iter::once(header).chain(rows.iter().map(line)).chain([all]);
    lines.chain(rows.iter().map(closing)).collect()
}

fn word(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Failed => "failed",
        StepOutcome::Skipped(_) => "skipped",
    }
}

/// Runs the command, passes its output on as it comes, and picks out what a test runner says of its
/// tests. Returns whether it succeeded, and that.
pub(crate) fn run_and_listen(command: &mut Command) -> Result<(bool, Heard)> {
    if std::io::stdout().is_terminal() {
        // A pipe is put in between: without this the colours would go.
        command.env("CARGO_TERM_COLOR", "always");
    }
    listen(command, std::io::stdout(), std::io::stderr())
}

fn listen(
    command: &mut Command,
    mut to_stdout: impl Write,
    mut to_stderr: impl Write,
) -> Result<(bool, Heard)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(command, &error))?;
    let mut heard = Heard::default();
    for line in process::lines(&mut child) {
        match line {
            Line::Out(line) => heard.pass_on(&line, &mut to_stdout),
            Line::Err(line) => heard.pass_on(&line, &mut to_stderr),
        }
    }
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    Ok((status.success(), heard.at_the_end()))
}

impl Heard {
    /// Copies a line, and picks out the time of a test or a closing line.
    fn pass_on(&mut self, line: &[u8], to: &mut impl Write) {
        // That no process reads our output any more must not stop the step: its result counts.
        let _ = to.write_all(line).and_then(|()| to.flush());
        let plain = without_colours(&String::from_utf8_lossy(line));
        let plain = plain.trim();
        // nextest names what has failed while it runs, and all of it again after its summary.
        let names_failed = self.closing.last().is_some_and(|last| is_nextests(last));
        if is_closing(plain) || (names_failed && is_nextests(plain)) {
            self.closing.push(plain.to_owned());
        }
        self.skipped += u32::from(plain.starts_with("skipped: "));
        self.slowest.extend(TestTime::read(plain));
    }

    fn at_the_end(mut self) -> Self {
        if self.skipped > 0 {
            let skipped = self.skipped;
            let line =
                format!("of these, {skipped} said that they had nothing to test here, and why");
            self.closing.push(line);
        }
        Heard { slowest: slowest(self.slowest), ..self }
    }
}

/// Whether it is nextest's summary, or a line about a test that has failed: `FAIL [   0.012s] …`.
fn is_nextests(line: &str) -> bool {
    let (word, rest) = line.split_once(" [").unwrap_or_default();
    let is_known = ["Summary", "FAIL", "TIMEOUT", "ABORT", "LEAK-FAIL"].contains(&word);
    (is_known || word.starts_with("SIG")) && rest.contains("s] ")
}

/// nextest's and libtest's last words, the jobs that chaos has seen fail, and why a chore has ended
/// early. The words of a binary without any tests say nothing, nor do those of a single test that
/// nextest has run.
fn is_closing(line: &str) -> bool {
    let is_empty = line.contains(" 0 passed; 0 failed; 0 ignored;");
    let is_single = line.contains(" filtered out") && !line.contains(" 0 filtered out");
    let is_runners =
        ["Summary [", "failed: ", "xtask: "].iter().any(|start| line.starts_with(start));
    is_runners || (line.starts_with("test result: ") && !is_empty && !is_single)
}

/// The line without terminal sequences of the form `ESC [ … letter`.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        plain += &piece[end..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, seconds: u64, outcome: StepOutcome, closing: &[&str]) -> Row {
        let closing = closing.iter().map(|&line| line.to_owned()).collect();
        Row { step: step.into(), took: Duration::from_secs(seconds), outcome, closing }
    }

    /// What is passed on of a log, and what is heard.
    fn heard(log: &str) -> (String, Heard) {
        let (mut copy, mut heard) = (Vec::new(), Heard::default());
        log.split_inclusive('\n').for_each(|line| heard.pass_on(line.as_bytes(), &mut copy));
        (String::from_utf8_lossy(&copy).into_owned(), heard.at_the_end())
    }

    #[test]
    fn the_table_lines_up_and_ends_with_the_runners_words() {
        let rows = [
            row("format", 1, StepOutcome::Ok, &[]),
            row("test-mpich", 125, StepOutcome::Failed, &["Summary [ 2s] 3 tests run"]),
            row("deny", 0, StepOutcome::Skipped("no network".into()), &[]),
        ];
        let expected = "\
step        seconds  result
format          1.0  ok
test-mpich    125.0  failed
deny            0.0  skipped: no network
all           126.0
test-mpich: Summary [ 2s] 3 tests run
";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn output_is_passed_on_whole_and_the_closing_lines_kept() {
        let log = "running\n        FAIL [   0.1s] (2/4) one here\n\
                   \u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] 4 tests run: 2 passed, 2 failed\n\
                   \u{1b}[31;1m        FAIL\u{1b}[0m [   0.1s] (2/4) one here\n     \
                   TIMEOUT [ 180.0s] (3/4) two there\nerror: test run failed\n\
                   xtask: no such program\n\
                   test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n\
                   test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n\
                   test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out\n\
                   failed: kill 3, mpich: WRONG: 7\n\
                   skipped: no launcher\n    skipped: no cluster\nnothing was skipped: fine\n\
                   no newline";
        let (copy, closing) = (heard(log).0, heard(log).1.closing);
        assert_eq!(copy, log);
        assert_eq!(
            closing,
            [
                "Summary [   0.1s] 4 tests run: 2 passed, 2 failed",
                "FAIL [   0.1s] (2/4) one here",
                "TIMEOUT [ 180.0s] (3/4) two there",
                "xtask: no such program",
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured",
                "failed: kill 3, mpich: WRONG: 7",
                "of these, 2 said that they had nothing to test here, and why",
            ]
        );
    }

    #[test]
    fn both_streams_are_heard_and_the_exit_code_counts() {
        let script = "echo 'Summary [1]' >&2; sleep 0.2; echo 'test result: ok. 1 passed'; exit 1";
        let (ok, heard) = {
            let mut command = Command::new("sh");
            listen(command.args(["-c", script]), std::io::sink(), std::io::sink()).unwrap()
        };
        assert!(!ok);
        assert_eq!(heard.closing, ["Summary [1]", "test result: ok. 1 passed"]);
    }

    #[test]
    fn the_slowest_tests_come_first_and_each_once() {
        let log = "        PASS [   0.512s] (1/4) a::all one\n        \
                   \u{1b}[32;1mPASS\u{1b}[0m [  12.034s] (2/4) a::all two\n        \
                   SLOW [> 60.000s] (─/4) a::all three\n     \
                   TIMEOUT [ 180.001s] (3/4) a::all three\n  \
                   TRY 1 FAIL [   3.100s] (4/4) a::all four\n     \
                   Summary [ 200.000s] 4 tests run: 2 passed\n        \
                   PASS [  12.034s] (2/4) a::all two\n";
        let slowest = heard(log).1.slowest;
        let shown = slowest.iter().map(|test| format!("{} {}", test.seconds, test.name));
        let expected =
            ["180.001 a::all three", "12.034 a::all two", "3.1 a::all four", "0.512 a::all one"];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let many = (0..30).map(|n| TestTime { seconds: f64::from(n), name: n.to_string() });
        assert_eq!(super::slowest(many.collect()).len(), SLOWEST);
    }
}
