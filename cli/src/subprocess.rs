//! Running other programs for their output, so that Ctrl-C ends these, too.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register_conditional_default, register_usize};
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
pub(crate) use ultramarine_subprocess::Ended;
use ultramarine_subprocess::run_unless;

/// Whether no program is run, so that a signal may end this process as usual.
static IDLE: AtomicBool = AtomicBool::new(true);

/// The signal that has asked this process to end while a program was run; 0 if none has.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// From now on a signal that ends this process first ends the program that it runs: programs are in
/// separate process groups, which Ctrl-C does not reach.
///
/// What this process becomes by `exec` has its signals as they were: the system sees to that, but
/// for those that were ignored (as in the background of a script). These are left so.
///
/// # Errors
///
/// The system does not let this process catch signals.
pub(crate) fn end_on_signals() -> io::Result<()> {
    for signal in not_ignored([SIGINT, SIGTERM]) {
        register_conditional_default(signal, &IDLE)?;
        register_usize(signal, &ASKED, signal as usize)?;
    }
    Ok(())
}

/// Those of these signals that this process does not ignore.
pub(crate) fn not_ignored<const N: usize>(signals: [i32; N]) -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    signals.into_iter().filter(move |signal| !ignores(&status, *signal))
}

/// Whether a process with this status ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends this process if a signal has asked for that.
fn heed_signals() -> io::Result<()> {
    match ASKED.load(Ordering::SeqCst) {
        0 => Ok(()),
        signal => emulate_default_handler(signal as i32),
    }
}

/// Runs the command. A program that takes longer than `limit` is ended, with all processes of its
/// group.
///
/// # Errors
///
/// The program cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    busy(|| run_busy(command, limit))?
}

/// Runs these commands all at once, each as [`run`] does.
pub(crate) fn run_all(commands: Vec<Command>, limit: Duration) -> Vec<io::Result<Ended>> {
    let all = || {
        let start = |mut command: Command| thread::spawn(move || run_busy(&mut command, limit));
        let running: Vec<_> = commands.into_iter().map(start).collect();
        let panicked = |_| io::Error::other("its thread has panicked");
        running.into_iter().map(|thread| thread.join().map_err(panicked).flatten()).collect()
    };
    busy(all).unwrap_or_else(|error| vec![Err(error)])
}

/// Works while signals only ask this process to end, and ends it then if one has.
fn busy<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    IDLE.store(false, Ordering::SeqCst);
    let done = work();
    IDLE.store(true, Ordering::SeqCst);
    heed_signals().map(|()| done)
}

fn run_busy(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    run_unless(command.process_group(0), limit, || ASKED.load(Ordering::SeqCst) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_run_at_once() {
        // Each waits for the other.
        let folder = tempfile::tempdir().expect("a folder");
        let script = |own: &str, other: &str| {
            let mut command = Command::new("sh");
            let text = format!(": > {own}; until [ -e {other} ]; do sleep 0.01; done; echo {own}");
            command.args(["-c", &text]).current_dir(folder.path());
            command
        };
        let ended = run_all(vec![script("a", "b"), script("b", "a")], Duration::from_secs(30));
        let said: Vec<_> = ended.into_iter().map(|ended| ended.expect("a shell").out).collect();
        assert_eq!(said, ["a\n", "b\n"]);
    }

    #[test]
    fn ignored_signals_are_known() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n";
        assert!(ignores(status, SIGINT) && !ignores(status, SIGTERM));
        assert!(!ignores("", SIGINT));
    }
}
