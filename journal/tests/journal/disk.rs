//! Disks and files that take no more, for real: a small file system, and `ulimit -f`.

use crate::killed::FILE;
use crate::{listener, open, result_of, scratch};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ultramarine_journal::{OnFailure, OpenError, WriteError, inspect};
use ultramarine_testkit::{eventually, itself, run};

/// The variable that says what a program is to be told.
const EXPECTED: &str = "EXPECTED_FOR_TESTS";

const LIMIT: Duration = Duration::from_secs(40);

/// A script that goes on with a program of this test, which writes to a file in the folder.
fn script(text: &str, folder: &Path, words: &[OsString]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{text} && exec \"$@\"")]).arg(folder).args(words);
    command.env(FILE, folder.join("a.journal"));
    command
}

/// The same, where the folder is a file system of its own. It is gone when the program ends. `None`
/// if this user may not mount one.
fn mounted(options: &str, folder: &Path, words: &[OsString]) -> Option<Command> {
    let unshare = ["--user", "--map-root-user", "--mount"];
    let mount = format!("mount -t tmpfs -o {options} tmpfs \"$0\"");
    let inside = |words: &[OsString]| {
        let inner = script(&mount, folder, words);
        let mut command = Command::new("unshare");
        command.args(unshare).arg(inner.get_program()).args(inner.get_args());
        command.env(FILE, folder.join("a.journal"));
        command
    };
    let tried = inside(&["true".into()]).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: no file system can be mounted ({tried:?})");
        return None;
    }
    Some(inside(words))
}

fn path() -> PathBuf {
    std::env::var_os(FILE).expect("the test names it").into()
}

fn expected() -> String {
    std::env::var(EXPECTED).expect("the test says it")
}
/// Fills the file to its end, then goes on with it where it is.
fn write_until_it_fails() {
    let path = path();
    let (told, call) = listener();
    let (journal, _) = open(&path, call).expect("it can be written");
    (0..40_000).for_each(|item| journal.append(item..item + 1, &result_of(item)));
    let error = journal.finish(LIMIT).expect_err("it is too much");
    assert!(error.to_string().contains(&expected()), "{error}");
    assert_eq!(told.lock().expect("no thread panics").len(), 1);
    let report = inspect(&path).expect("it is a journal").report;
    assert_eq!((report.torn_bytes, report.damaged_places), (0, 0));
    let done = report.done.count();
    assert!(done > 100 && report.done.ranges().eq(std::iter::once(0..done)), "{report:?}");

    // There is no room for this one. It must not cost any other.
    let (journal, _) = open(&path, OnFailure::Warn).expect("it can be opened all the same");
    journal.append(50_000..50_001, &vec![0; 2_000_000]);
    let failed = journal.finish(LIMIT);
    assert!(matches!(failed, Err(WriteError::Io { .. } | WriteError::FileSizeLimit { .. })));
    let (_, report) = open(&path, OnFailure::Warn).expect("it is whole");
    assert_eq!((report.done.count(), report.torn_bytes), (done, 0));
    println!("\nall is well");
}

fn begin_and_fail() {
    let error = open(&path(), OnFailure::Warn).err().expect("it cannot be written");
    assert!(matches!(error, OpenError::Io { .. } | OpenError::Write(_)), "{error:?}");
    assert!(error.to_string().contains(&expected()), "{error}");
    println!("\nall is well");
}

#[test]
fn a_full_disk_is_said_once_and_leaves_whole_records() {
    let program = itself(write_until_it_fails);
    let folder = tempfile::tempdir().expect("there is room");
    let Some(mut command) = mounted("size=1m", folder.path(), &program) else { return };
    run(command.env(EXPECTED, "No space left on device")).is_well();
}

#[test]
fn the_longest_file_of_a_process_is_not_exceeded() {
    let program = itself(write_until_it_fails);
    let folder = tempfile::tempdir().expect("there is room");
    let mut command = script("ulimit -f 100", folder.path(), &program);
    run(command.env(EXPECTED, "(`ulimit -f`)")).is_well();
}

#[test]
fn a_process_that_may_write_no_file_is_told_so() {
    let program = itself(begin_and_fail);
    let folder = tempfile::tempdir().expect("there is room");
    let mut command = script("ulimit -f 0", folder.path(), &program);
    run(command.env(EXPECTED, "(`ulimit -f`)")).is_well();
}

#[test]
fn a_file_system_that_is_read_only_is_said() {
    let program = itself(begin_and_fail);
    let folder = tempfile::tempdir().expect("there is room");
    let Some(mut command) = mounted("ro", folder.path(), &program) else { return };
    run(command.env(EXPECTED, "Read-only file system")).is_well();
}

/// What another program does to the file at the first path. The second path is free.
type Spoil = fn(&Path, &Path) -> std::io::Result<()>;

const SPOILS: [(&str, Spoil); 5] = [
    ("removed", |path, _| std::fs::remove_file(path)),
    ("moved away", |path, other| std::fs::rename(path, other)),
    ("replaced", |path, other| {
        std::fs::rename(path, other)?;
        std::fs::copy(other, path).map(drop)
    }),
    ("cut", |path, _| std::fs::File::create(path).map(drop)),
    ("written to", |path, _| OpenOptions::new().append(true).open(path)?.write_all(b"log")),
];

#[test]
fn a_file_that_another_program_spoils_is_said_once() {
    std::thread::scope(|scope| {
        for (what, spoil) in SPOILS {
            for (is_seen_at_the_end, comes_more) in [(true, false), (false, false), (false, true)] {
                scope.spawn(move || spoilt_journal(what, spoil, is_seen_at_the_end, comes_more));
            }
        }
    });
}

/// Whether results come or not, and while the journal is open or at its end.
fn spoilt_journal(what: &str, spoil: Spoil, is_seen_at_the_end: bool, comes_more: bool) {
    let (folder, path) = scratch();
    let (told, call) = listener();
    let (journal, _) = open(&path, call).expect("it can be written");
    (0..9).for_each(|item| journal.append(item..item + 1, &result_of(item)));
    eventually("it is in the file", || journal.figures().waiting_bytes == 0);
    spoil(&path, &folder.path().join("other")).expect("it is there");
    if comes_more {
        // So that the file is longer than it was.
        (9..99).for_each(|item| journal.append(item..item + 1, &result_of(item)));
    }
    if !is_seen_at_the_end {
        eventually("it is said", || !told.lock().expect("no thread panics").is_empty());
    }
    let error = journal.finish(LIMIT).expect_err("what it had is lost").to_string();
    assert!(error.contains(&format!("was {what} by another program")), "{error}");
    assert_eq!(told.lock().expect("no thread panics").len(), 1, "{what}");
    if what == "written to" {
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(bytes.windows(3).any(|bytes| bytes == b"log"), "what another has written stays");
    }
}

/// The path of a journal may be relative.
#[test]
fn a_process_may_go_to_another_folder() {
    let program = itself(|| {
        let (told, call) = listener();
        let (journal, _) = open(Path::new("a.journal"), call).expect("it can be written");
        std::env::set_current_dir("/").expect("it is there");
        journal.append(0..1, &result_of(0));
        eventually("it is on the disk", || journal.figures().records_durable == 1);
        journal.finish(LIMIT).expect("nothing has happened to it");
        assert!(told.lock().expect("no thread panics").is_empty());
        println!("\nall is well");
    });
    let folder = tempfile::tempdir().expect("there is room");
    run(&mut script("cd \"$0\"", folder.path(), &program)).is_well();
}
