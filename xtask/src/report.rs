//! What `cargo xtask test` says: a heading for each step, a table at the end, and below it the
//! closing lines of the test runners, which otherwise are far up in the log.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::process::{Result, cannot_start};

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

pub(crate) fn footing(row: &Row) {
    println!("--- {}: {} in {:.1} s", row.step, word(&row.outcome), row.took.as_secs_f64());
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
    std::iter::once(header).chain(rows.iter().map(line)).chain(rows.iter().map(closing)).collect()
}

fn word(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Failed => "failed",
        StepOutcome::Skipped(_) => "skipped",
    }
}

/// Runs the command, passes its output on as it comes, and picks the closing lines of a test
/// runner out of it. Returns whether it succeeded, and those lines.
pub(crate) fn run_and_listen(command: &mut Command) -> Result<(bool, Vec<String>)> {
    if std::io::stdout().is_terminal() {
        // A pipe is put in between: without this the colours would go.
        command.env("CARGO_TERM_COLOR", "always");
    }
    listen(command, std::io::stdout(), std::io::stderr())
}

fn listen(
    command: &mut Command,
    to_stdout: impl Write,
    to_stderr: impl Write + Send,
) -> Result<(bool, Vec<String>)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(command, &error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let closing = thread::scope(|scope| {
        let errors = scope.spawn(|| stderr.map(|pipe| pass_on(pipe, to_stderr)));
        let mut closing = stdout.map(|pipe| pass_on(pipe, to_stdout)).unwrap_or_default();
        closing.extend(errors.join().ok().flatten().unwrap_or_default());
        closing
    });
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    Ok((status.success(), closing))
}

/// Copies every line; returns the closing lines among them, and how many tests say that they were
/// skipped.
fn pass_on(from: impl Read, mut to: impl Write) -> Vec<String> {
    let (mut closing, mut skipped) = (Vec::<String>::new(), 0);
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // An error of reading ends the output, as its end does. An error of writing (no process reads
    // our output any more) must not stop the step: its result still counts.
    while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let _ = to.write_all(&line).and_then(|()| to.flush());
        let plain = without_colours(&String::from_utf8_lossy(&line));
        // nextest names what has failed while it runs, and all of it again after its summary.
        let names_failed = closing.last().is_some_and(|last| is_nextests(last));
        if is_closing(plain.trim()) || (names_failed && is_nextests(plain.trim())) {
            closing.push(plain.trim().to_owned());
        }
        skipped += u32::from(plain.trim().starts_with("skipped: "));
        line.clear();
    }
    if skipped > 0 {
        closing
            .push(format!("of these, {skipped} said that they had nothing to test here, and why"));
    }
    closing
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
        let mut copy = Vec::new();
        let closing = pass_on(log.as_bytes(), &mut copy);
        assert_eq!(String::from_utf8(copy).unwrap(), log);
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
        let script = "echo 'Summary [1]' >&2; echo 'test result: ok. 1 passed'; exit 1";
        let (ok, closing) = {
            let mut command = Command::new("sh");
            listen(command.args(["-c", script]), std::io::sink(), std::io::sink()).unwrap()
        };
        assert!(!ok);
        assert_eq!(closing, ["test result: ok. 1 passed", "Summary [1]"]);
    }
}
