//! Hosts whose shared memory is too small for MPI, or full, or not shared.
#![cfg(feature = "mpi")]

use crate::common::job::{run, square};
use std::process::Command;
use std::time::Duration;
use ultramarine_testkit::{Ended, behind, finish, itself, launcher, launcher_name};

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs a job of this many processes, behind these words: before the launcher, and before each
/// process. `None` where that cannot be done here.
fn run_behind(processes: u32, host: &[&str], process: &[&str], lane: &str) -> Option<Ended> {
    let program = itself(|| run(async |cx| Ok(square(&cx, 100, 0).await?)));
    let launcher = launcher()?;
    for words in [host, process].into_iter().filter(|words| !words.is_empty()) {
        let tried = Command::new(words[0]).args(&words[1..]).arg("true").output();
        if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            println!("skipped: {words:?} {tried:?}");
            return None;
        }
    }
    let mut command = if host.is_empty() { launcher } else { behind(host, &launcher) };
    command.args(["-n", &processes.to_string()]).args(process).args(program);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    Some(finish(&mut command, PATIENCE))
}

/// Words before a command that give it so much shared memory, after a line of shell has been run.
fn with_memory(size: &str, line: &str) -> [String; 5] {
    let line = format!("mount -t tmpfs -o size={size} tmpfs /dev/shm && {line} && exec \"$@\"");
    ["unshare", "--mount", "sh", "-c", &line].map(str::to_owned)
}

fn words(words: &[String; 5]) -> Vec<&str> {
    words.iter().map(String::as_str).chain(["sh"]).collect()
}

fn is_mpich() -> bool {
    launcher_name().is_some_and(|name| !name.to_string_lossy().contains("openmpi"))
}

#[test]
fn where_memory_is_too_small_a_job_does_without() {
    let small = with_memory("4m", "true");
    for lane in ["mpi", "tcp"] {
        let Some(ended) = run_behind(4, &words(&small), &[], lane) else { return };
        ended.is_well();
        let says_so = ended.err.contains("MPI goes without shared memory");
        assert_eq!(says_so, is_mpich(), "{}", ended.err);
    }
}

#[test]
fn where_processes_are_apart_a_job_does_without() {
    let apart = ["unshare", "--user", "--map-root-user"];
    let Some(ended) = run_behind(3, &[], &apart, "mpi") else { return };
    ended.is_well();
}

#[test]
fn where_memory_is_full_the_error_says_so() {
    let full = with_memory("64m", "head -c 62M /dev/zero >/dev/shm/others");
    let Some(ended) = run_behind(2, &words(&full), &[], "mpi").filter(|_| is_mpich()) else {
        return;
    };
    assert!(!ended.is_success, "{}", ended.out);
    let said = "MPI may not start: /dev/shm has 2 of 64 MiB left, and MPI needs about 5 for each";
    assert!(ended.err.contains(said), "{}", ended.err);
}
