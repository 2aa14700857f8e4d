//! Jobs whose standard error cannot be written: they end as they would if it could.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine_testkit::{Ended, alone, finish, itself, launcher, scrub};

const PATIENCE: Duration = Duration::from_secs(50);

/// What is wrong with standard error, as a shell brings it about.
const WRONG: [(&str, &str); 4] = [
    ("a full disk", "exec 2>/dev/full"),
    ("closed", "exec 2>&-"),
    ("a pipe whose reader is gone", "exec 3<>\"$FIFO\" 2>\"$FIFO\" 3>&-"),
    ("a full pipe that no process reads", "exec 2>\"$STUCK\""),
];

/// A pipe with a name.
fn fifo(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let made = alone("mkfifo", "").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    path
}

/// Opens a pipe for good, and fills it.
fn stuff(path: &Path) -> File {
    let non_blocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = OpenOptions::new();
    let mut pipe = pipe.read(true).write(true).custom_flags(non_blocking).open(path).expect("ours");
    loop {
        match pipe.write(&[b'.'; 512]) {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::WouldBlock => return pipe,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Runs the program of the test that calls this with two PEs, behind a shell that first makes
/// something wrong: as threads of a process, and as two processes over these lanes where there is a
/// launcher. Tells how each ended.
fn run(
    shell: &str,
    level: &str,
    lanes: &[&'static str],
    program: fn(),
) -> Vec<(&'static str, Ended)> {
    let words = itself(program);
    let folder = tempfile::tempdir().expect("there is room");
    let [fifo, stuck] = ["fifo", "stuck"].map(|name| fifo(folder.path(), name));
    let _open = stuff(&stuck);
    let variables: [(&str, &OsStr); 5] = [
        ("FIFO", fifo.as_os_str()),
        ("STUCK", stuck.as_os_str()),
        ("ULTRAMARINE_LOG", level.as_ref()),
        ("ULTRAMARINE_THREADS", "1".as_ref()),
        ("ULTRAMARINE_LANE", "tcp".as_ref()),
    ];
    let shell = format!("{shell}; exec \"$@\"");
    let behind_shell = |mut command: Command| {
        command.args(["-c", &shell, "sh"]).args(&words).envs(variables);
        command
    };
    let mut threads = behind_shell(alone("sh", ""));
    let mut ended = vec![("threads", finish(threads.env("ULTRAMARINE_PES", "2"), PATIENCE))];
    for lane in lanes {
        let Some(mut launcher) = launcher() else { break };
        launcher.args(["-n", "2", "sh"]);
        let mut processes = behind_shell(launcher);
        ended.push((lane, finish(processes.env("ULTRAMARINE_LANE", lane), PATIENCE)));
    }
    ended
}

fn goes_well((what, shell): (&str, &str), level: &str) {
    // Who says little does it in the same way over either lane.
    let lanes = if level.is_empty() { &["mpi"][..] } else { &["mpi", "tcp"] };
    for (how, ended) in run(shell, level, lanes, talks) {
        println!("{what}, {how}, {level}");
        ended.is_well();
    }
}

#[test]
fn a_job_goes_well_though_standard_error_is_closed_or_gone_or_its_disk_is_full() {
    WRONG[..3].iter().for_each(|wrong| goes_well(*wrong, ""));
}

#[test]
fn a_job_that_says_much_goes_well_though_standard_error_is_closed_or_gone_or_its_disk_is_full() {
    WRONG[..3].iter().for_each(|wrong| goes_well(*wrong, "debug"));
}

#[test]
fn a_job_goes_well_though_no_process_reads_standard_error() {
    goes_well(WRONG[3], "");
}

#[test]
fn a_job_that_says_much_goes_well_though_no_process_reads_standard_error() {
    goes_well(WRONG[3], "debug");
}

fn fails_with_its_code((what, shell): (&str, &str)) {
    for (how, ended) in run(shell, "", &["mpi", "tcp"], fails) {
        assert_eq!(ended.code, Some(7), "{what}, {how}");
    }
}

#[test]
fn a_job_that_fails_ends_with_its_code_though_it_cannot_say_why() {
    WRONG[..3].iter().for_each(|wrong| fails_with_its_code(*wrong));
}

#[test]
fn a_job_that_fails_ends_with_its_code_though_no_process_reads_standard_error() {
    fails_with_its_code(WRONG[3]);
}

#[test]
fn a_panic_that_becomes_an_error_is_one_line_with_the_name_of_its_function() {
    let words = itself(panics);
    for (backtrace, is_short) in [("0", true), ("1", true), ("full", false)] {
        let mut command = Command::new(&words[0]);
        scrub(&mut command);
        command.args(&words[1..]).env("ULTRAMARINE_PES", "2").env("RUST_BACKTRACE", backtrace);
        let ended = finish(&mut command, PATIENCE);
        ended.succeeded();
        let err = &ended.err;
        assert_eq!(err.contains("backtrace"), !is_short, "{err}");
        for (function, message) in [
            ("output::task panicked at", "no task today"),
            ("output::node panicked at", "no node today"),
            ("output::build panicked at", "no graph today"),
            ("output::Bad panicked at", "no drop today"),
            ("output::Bad panicked at", "no bytes today"),
        ] {
            let is_it = |line: &&str| line.contains(function) && line.ends_with(message);
            let count = err.lines().filter(is_it).count();
            assert_eq!(count, usize::from(is_short), "{function}, {backtrace}: {err}");
        }
    }
}

fn task(_: u32) -> u32 {
    panic!("no task today")
}

fn node(_: &String) -> Bad {
    panic!("no node today")
}

fn build(_: &mut Builder, _: &String) -> Node<u32> {
    panic!("no graph today")
}

/// Panics when it is encoded, and when it is dropped.
struct Bad;

impl serde::Serialize for Bad {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("no bytes today")
    }
}

impl<'de> serde::Deserialize<'de> for Bad {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        unreachable!("it has no bytes")
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        panic!("no drop today")
    }
}

/// Ends this process as a program's `main` does, but with a code that no test harness ends
/// with.
fn end(result: ultramarine::Result<()>) {
    if let Err(error) = result {
        // As std does it.
        let _ = writeln!(std::io::stderr(), "Error: {error:?}");
        std::process::exit(7);
    }
}

fn panics() {
    end(ultramarine::run(async |cx| {
        assert!(cx.spawn_fn(Distance::ZERO, task, 1).await.is_err());
        let read = |g: &mut Builder, (): &()| -> Node<u32> {
            let bad = g.source(node, String::new());
            g.map(|(), _: &Bad| 1, (), bad)
        };
        assert!(dag(read, ()).run(&cx).await.is_err());
        assert!(dag(build, String::new()).run(&cx).await.is_err());
        // It is encoded, which it refuses, and dropped.
        assert!(cx.spawn_at(Pe::new(1), async |_: Context, _: Bad| (), Bad).await.is_err());
        Ok(())
    }));
}

fn talks() {
    end(ultramarine::run(async |cx| {
        let squares = par_map(&cx.supervised(), |n: u64| n * n, 0..100).await?;
        assert_eq!(squares.iter().sum::<u64>(), 328_350);
        for pe in (0..cx.pes()).map(Pe::new) {
            for _ in 0..3 {
                let check = async |_: Context, good: bool| assert!(good, "as is meant to be");
                let error = cx.spawn_at(pe, check, false).await.expect_err("it panics").to_string();
                assert!(error.contains("as is meant to be"), "{error}");
            }
        }
        println!("all is well");
        Ok(())
    }));
}

fn fails() {
    end(ultramarine::run(async |_| {
        ultramarine::log_line("it fails");
        Err(ultramarine::Error::other("as is meant to be"))
    }));
}
