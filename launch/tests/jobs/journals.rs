//! Jobs that are killed whole, and started again with the same journal until they are done.
#![cfg(feature = "mpi")]

use crate::common::job::{die, run_restartable};
use crate::common::launcher::launched_with;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure};
use ultramarine_testkit::{itself, launcher};

/// The variable that names a folder which a job shares with its test.
const FOLDER: &str = "JOURNALS_FOLDER";

const ITEMS: u64 = 300;

/// How long a job computes before it is killed: up to this. The whole takes a second or two.
const KILLED_WITHIN_MS: u64 = 300;

/// Far more starts than a job needs that gets on.
const STARTS_MAX: usize = 40;

const PATIENCE: Duration = Duration::from_secs(40);

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("the test names a folder"))
}

/// The numbers that name the files of a folder.
fn numbers(folder: &Path) -> BTreeSet<u64> {
    let files = std::fs::read_dir(folder).expect("it is there");
    let name = |file: std::io::Result<std::fs::DirEntry>| file.ok()?.file_name().into_string().ok();
    files.filter_map(|file| name(file)?.parse().ok()).collect()
}

/// The items that the journal has results for.
fn done(journal: &Path) -> BTreeSet<u64> {
    let Ok(found) = ultramarine_journal::inspect(journal) else { return BTreeSet::new() };
    found.report.done.ranges().flatten().collect()
}

/// Kills all processes of the job, and waits for the launcher.
fn kill(pids: &Path, job: &mut Child) {
    for pid in numbers(pids) {
        let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("not zero");
        // It may have ended.
        let _ = kill_process(pid, Signal::KILL);
    }
    await_end(job);
}

fn await_end(job: &mut Child) -> bool {
    let start = Instant::now();
    loop {
        if let Some(status) = job.try_wait().expect("it is a child") {
            return status.success();
        }
        assert!(start.elapsed() < PATIENCE, "the launcher hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_job_that_is_killed_whole_again_and_again_computes_each_item_once() {
    let program = || {
        let pid = std::process::id().to_string();
        let main = async |cx: Context| {
            let square = |n: u64| {
                std::fs::write(folder().join("computed").join(n.to_string()), "").expect("room");
                std::thread::sleep(Duration::from_millis(10));
                n * n
            };
            let squares = map(square, 0..ITEMS).journal(folder().join("squares.journal"));
            let squares = squares.run(&cx.supervised()).await?;
            assert!(squares.into_iter().eq((0..ITEMS).map(|n| n * n)));
            std::fs::write(folder().join("all-is-well"), "")?;
            Ok(())
        };
        // A process that becomes a guard has been here as well.
        std::fs::write(folder().join("pids").join(pid), "").expect("there is room");
        ultramarine::run_restartable(main).expect("the job ends well");
    };
    let words = itself(program);
    let folder = tempfile::tempdir().expect("there is room");
    let (pids, computed) = (folder.path().join("pids"), folder.path().join("computed"));
    let journal = folder.path().join("squares.journal");
    let mut kills = 0;
    for _ in 0..STARTS_MAX {
        for folder in [&pids, &computed] {
            let _ = std::fs::remove_dir_all(folder);
            std::fs::create_dir(folder).expect("there is room");
        }
        let before = done(&journal);
        let Some(mut command) = launcher() else { return };
        command.args(["-n", "3"]).args(&words);
        command.env("ULTRAMARINE_THREADS", "1").env(FOLDER, folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut job = command.spawn().expect("the launcher starts");
        let start = Instant::now();
        while numbers(&computed).is_empty() && job.try_wait().expect("a child").is_none() {
            assert!(start.elapsed() < PATIENCE, "the job does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = RandomState::new().hash_one(()) % KILLED_WITHIN_MS;
        println!("start {kills}: killed after {after} ms");
        std::thread::sleep(Duration::from_millis(after));
        let is_over = job.try_wait().expect("it is a child").is_some();
        if !is_over {
            kill(&pids, &mut job);
            kills += 1;
        }
        let again: Vec<_> = numbers(&computed).intersection(&before).copied().collect();
        assert!(again.is_empty(), "{again:?} had been done");
        assert!(before.is_subset(&done(&journal)), "what is in the journal stays there");
        if folder.path().join("all-is-well").exists() {
            assert!(kills > 1, "the job was done after {kills} kills");
            return;
        }
    }
    panic!("{} of {ITEMS} items were done after {STARTS_MAX} starts", done(&journal).len());
}

/// The first root leaves a folder where its journal was.
#[test]
fn a_successor_goes_on_without_a_journal_that_was_spoilt() {
    let main = async |cx: Context| {
        let journal = folder().join("squares.journal");
        let squares = map(|n: u64| n * n, 0..ITEMS).journal(&journal);
        let squares = squares.run(&cx.supervised()).await?;
        assert!(squares.into_iter().eq((0..ITEMS).map(|n| n * n)));
        if cx.attempt() == 1 {
            std::fs::remove_file(&journal)?;
            std::fs::create_dir(&journal)?;
            die();
        }
        Ok(())
    };

    let program = itself(|| run_restartable(main));
    let folder = tempfile::tempdir().expect("there is room");
    let variables = [(FOLDER, folder.path().into())];
    let ended = launched_with(3, "mpi", &variables, &program);
    let Some(ended) = ended else { return };
    ended.is_well();
    assert!(ended.err.contains("is a folder, and a journal is a file"), "{}", ended.err);
}

/// Keeps results in a journal, and sends itself a signal at once.
fn append_and_end() {
    let name = |name: &str| name.to_owned();
    let (program, call, result) = (name("jobs"), name("numbers"), name("u8"));
    let identity = Identity { program, call, result, items: ITEMS, digest: 0 };
    let file = folder().join("own.journal");
    let opened = Journal::open(file, &identity, Builds::default(), OnFailure::Warn, |_, _| Ok(()));
    let (journal, _) = opened.expect("the folder is ours");
    (1..ITEMS).for_each(|n| journal.append(n..n + 1, &[7]));
    kill_process(rustix::process::getpid(), Signal::TERM).expect("it is this one");
    std::thread::sleep(PATIENCE);
}

/// Runs a program of two processes that ends so. Also what came home a moment ago is kept.
fn keeps_what_it_has(program: impl FnOnce()) {
    let program = itself(program);
    let folder = tempfile::tempdir().expect("there is room");
    let variables = [(FOLDER, folder.path().into())];
    let Some(ended) = launched_with(2, "mpi", &variables, &program) else { return };
    assert!(!ended.is_success, "{}{}", ended.out, ended.err);
    let done = done(&folder.path().join("own.journal"));
    assert_eq!(done.len() as u64, ITEMS - 1, "{}", ended.err);
}

#[test]
fn what_has_come_home_is_kept_when_a_signal_ends_the_job() {
    keeps_what_it_has(|| {
        let main = async |_| {
            append_and_end();
            Ok(())
        };
        ultramarine::run(main).expect("it ends before");
    });
}

/// On a process that was not the root at first.
#[test]
fn what_has_come_home_is_kept_when_a_signal_ends_the_job_of_a_successor() {
    keeps_what_it_has(|| {
        let main = async |cx: Context| {
            if cx.attempt() == 1 {
                die();
            }
            append_and_end();
            Ok(())
        };
        ultramarine::run_restartable(main).expect("it ends before");
    });
}
