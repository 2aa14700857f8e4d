//! No more worker threads than were allowed.

use super::LIOUVILLE;
use super::job::Job;
use crate::common::launcher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use ultramarine_testkit::{alone, behind, run};

const SHORT: &str = "--upto 1000 --json";

/// A program on its own, and one under the launcher, each one process.
fn both() -> impl Iterator<Item = Command> {
    let launched = launcher().map(|mut command| {
        command.args(["-n", "1", LIOUVILLE]).args(SHORT.split(' '));
        command.env_remove("ULTRAMARINE_THREADS");
        command
    });
    [Some(alone(LIOUVILLE, SHORT)), launched].into_iter().flatten()
}

/// The command has one worker thread, as was said, and two only if the user wants two.
fn has_one(mut command: Command) {
    for name in ["SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"] {
        if !command.get_envs().any(|(set, value)| set == name && value.is_some()) {
            command.env_remove(name);
        }
    }
    let quiet = run(&mut command);
    assert_eq!(quiet.report()["threads"], 1, "{command:?}");
    let ended = run(command.args(["--threads", "2"]));
    assert_eq!(ended.report()["threads"], 2, "{command:?}");
}

#[test]
fn a_process_that_is_bound_to_a_core_has_one_worker() {
    for command in both() {
        let mut bound = behind(["taskset", "-c", "0"], &command);
        has_one(behind(["taskset", "-c", "0"], &command));
        let ended = run(bound.args(["--threads", "3"]));
        let said = "each PE has 3 worker threads, as was said, and the process may use 1 cores";
        assert_eq!(ended.err.matches(said).count(), 1, "{}", ended.err);
    }
}

#[test]
fn variables_limit_the_workers() {
    for (name, value) in
        [("OMP_NUM_THREADS", "1,4"), ("RAYON_NUM_THREADS", "1"), ("SLURM_CPUS_PER_TASK", "1")]
    {
        for mut command in both() {
            command.env(name, value);
            has_one(command);
        }
    }
}

/// As under a Slurm that binds nothing.
#[test]
fn a_step_that_has_one_core_of_the_host_has_one_worker() {
    for mut command in both() {
        command.env("SLURM_STEP_ID", "0").env("SLURM_CPUS_ON_NODE", "1");
        has_one(command);
    }
}

/// A group of processes with a quota of one core.
struct Quota(PathBuf);

impl Quota {
    /// `None` where no such group can be made.
    fn make() -> Option<Self> {
        let name = format!("ultramarine-guest-{}", std::process::id());
        let makers = [
            ("/sys/fs/cgroup", "cpu.max", "100000 100000"),
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"),
        ];
        makers.into_iter().find_map(|(root, file, quota)| {
            if !Path::new(root).join("cgroup.procs").exists() {
                return None;
            }
            let group = Quota(Path::new(root).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(file), quota).ok().map(|()| group)
        })
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_quota_of_one_core_allows_one_worker() {
    let Some(quota) = Quota::make() else {
        println!("skipped: no cgroup can be made here");
        return;
    };
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", quota.0.display());
    for command in both() {
        has_one(behind(["sh", "-c", &enter, "sh"], &command));
    }
}

#[test]
fn processes_that_share_the_cores_have_no_more_workers_than_there_are_cores() {
    let Some(mut command) = launcher() else { return };
    command.args(["-n", "2", LIOUVILLE]).args("--upto 100000000 --json".split(' '));
    command.env_remove("ULTRAMARINE_THREADS");
    let mut job = Job::start(&mut command);
    let mut workers = 0;
    for process in job.begun(2).into_values() {
        let mut threads = threads_of(process);
        let is_worker = |name: &String| name.contains("-worker");
        // Another process may say that the job has begun before this one has its workers.
        let end = Instant::now() + Duration::from_secs(20);
        while !threads.iter().any(is_worker) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
            threads = threads_of(process);
        }
        let working = threads.iter().filter(|name| is_worker(name)).count();
        // Main thread, driver, detector, log, the one that waits for the guard's end, the one that
        // starts MPI, and up to three that it starts.
        assert!(working >= 1 && threads.len() - working <= 6 + 3, "{threads:?}");
        workers += working;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(workers <= cores.max(2), "{workers} workers");
    assert_eq!(job.end().report()["result"], -3884);
}

/// What the threads of a process are called.
fn threads_of(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it lives");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    let names = threads.filter_map(|thread| name(thread.ok()?));
    names.map(|name| name.trim().to_owned()).collect()
}
