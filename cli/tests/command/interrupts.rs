//! Signals: they end what the command asks beforehand, and are the launcher's afterwards.

use crate::harness::{ALLOCATION, HYDRA, LIBMPICH, MARK, Stage, is_there, nothing_is_left, run};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use ultramarine_testkit::behind;

/// Tells the test that it has begun, and stays.
const SLEEPER: &str = ": > $BEGUN\nexec sleep 1000";

/// A stage, with a program and a launcher that stays as well, from which all programs are found.
fn stage(test: &str, arguments: &str) -> (Stage, Command) {
    let stage = Stage::new(test);
    let version = format!("[ \"$1\" = --version ] && echo '{HYDRA}' && exit");
    stage.script("mpiexec", &format!("{version}\n{SLEEPER}"));
    stage.program("of_mpich", &[LIBMPICH]);
    let mut command = stage.ultramarine(&format!("run {arguments} of_mpich"));
    let mut path = stage.bin().into_os_string();
    if let Some(folder) = std::env::var_os("PATH") {
        path = [path, OsString::from(":"), folder].into_iter().collect();
    }
    command.env("PATH", path).env("BEGUN", stage.bin().join("begun")).env(MARK, test);
    (stage, command)
}

/// How the command ends by a signal that comes when a stand-in has begun.
fn end_by(signal: Signal, stage: &Stage, command: &mut Command) -> ExitStatus {
    let mut child = command.spawn().expect("it was built");
    is_there(&stage.bin().join("begun"));
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    child.wait().expect("it is a child of ours")
}

#[test]
fn ctrl_c_ends_an_srun_that_does_not_answer() {
    for signal in [Signal::INT, Signal::TERM] {
        let (stage, mut command) = stage("asked-srun", "-n 2");
        stage.script("srun", SLEEPER);
        let status = end_by(signal, &stage, command.envs(ALLOCATION));
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        nothing_is_left("asked-srun");
    }
}

#[test]
fn ctrl_c_ends_an_ssh_that_does_not_answer() {
    let (stage, mut command) = stage("asked-ssh", "--hosts 198.51.100.1");
    stage.script("ssh", SLEEPER);
    let status = end_by(Signal::INT, &stage, &mut command);
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
    nothing_is_left("asked-ssh");
}

#[test]
fn signals_are_the_launchers_once_it_is_started() {
    for signal in [Signal::INT, Signal::TERM] {
        let (stage, mut command) = stage("launcher", "-n 2");
        let status = end_by(signal, &stage, &mut command);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        nothing_is_left("launcher");
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let (stage, command) = stage("ignored", "-n 2");
    let version = format!("[ \"$1\" = --version ] && echo '{HYDRA}' && exit");
    stage.script("mpiexec", &format!("{version}\nexec grep SigIgn /proc/self/status"));
    // As scripts do with what they start in the background.
    let ignoring = ["sh", "-c", "trap '' INT; exec \"$0\" \"$@\""];
    let mut shell = behind(ignoring, &command);
    let said = run(&mut shell).succeeded().to_owned();
    let mask = said.trim().strip_prefix("SigIgn:").expect("it is the line").trim();
    let mask = u64::from_str_radix(mask, 16).expect("a mask");
    let is_ignored = |signal: Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    assert!(is_ignored(Signal::INT) && !is_ignored(Signal::TERM), "{said}");
}
