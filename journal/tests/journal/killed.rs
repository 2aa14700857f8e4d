//! Writers that are killed, again and again, and go on in the same file.

use crate::{ITEMS, open, result_of};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ultramarine_journal::OnFailure;
use ultramarine_testkit::itself;

/// Names the file for the programs.
pub(crate) const FILE: &str = "JOURNAL_FOR_TESTS";

const WRITERS: u64 = 6;
const KILLS_EACH: u64 = 5;

/// The longest that a writer lives. It puts its records on the disk after 1 s.
const LIFE_MAX: Duration = Duration::from_millis(1600);

#[test]
fn what_was_called_durable_outlives_a_kill() {
    let program = &itself(write_until_killed);
    let folder = tempfile::tempdir().expect("there is room");
    let all = std::thread::scope(|scope| {
        let path = |writer| folder.path().join(format!("{writer}.journal"));
        let start = |writer| scope.spawn(move || kill_in_turn(program, &path(writer), writer));
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        writers.into_iter().map(|writer| writer.join().expect("it saw no fault")).sum::<u64>()
    });
    assert!(all > 0, "no writer lived long enough");
}

/// Kills the writers of a journal one after the other, and returns how many items were durable.
fn kill_in_turn(program: &[OsString], path: &Path, writer: u64) -> u64 {
    let mut durable = 0;
    for kill in 0..KILLS_EACH {
        // Spread over the whole life, and over the second in which records are put on the disk.
        let part = (writer * KILLS_EACH + kill) * 7 % (WRITERS * KILLS_EACH);
        let life = LIFE_MAX.mul_f64((part + 1) as f64 / (WRITERS * KILLS_EACH) as f64);
        durable = durable.max(durable_of_killed(program, path, life));
        let (_, report) = open(path, OnFailure::Warn).expect("a kill is no error");
        assert_eq!(report.damaged_places, 0, "{report:?}");
        assert!(report.done.count() >= durable, "{} of {durable}", report.done.count());
        // In the order in which they were appended, without a gap.
        assert!(report.done.ranges().all(|range| range == (0..report.records)));
    }
    durable
}

/// Starts a writer, kills it after a while, and returns the last number that it called durable.
fn durable_of_killed(words: &[OsString], path: &Path, life: Duration) -> u64 {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(FILE, path).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the test can be started");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let start = Instant::now();
    let reader = std::thread::spawn(move || {
        let lines = out.lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("durable ")?.parse().ok()).max().unwrap_or(0)
    });
    std::thread::sleep(life.saturating_sub(start.elapsed()));
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    reader.join().expect("it reads to the end")
}

/// Appends the items that are missing, from the first on. Ends by itself if its test has gone.
fn write_until_killed() {
    let path = std::env::var(FILE).expect("the test names it");
    let (journal, report) = open(Path::new(&path), OnFailure::Warn).expect("it is free");
    let before = report.done.count();
    let (mut durable, start) = (0, Instant::now());
    for item in before..ITEMS {
        journal.append(item..item + 1, &result_of(item));
        if item % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let now = journal.figures().records_durable;
        if now != durable {
            durable = now;
            let line = writeln!(std::io::stdout(), "\ndurable {}", before + durable);
            line.expect("the test reads it");
        }
        assert!(start.elapsed() < 20 * LIFE_MAX, "the test has gone");
    }
}
