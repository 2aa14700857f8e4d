//! The two children: the job, and the GAP in front of it.

use super::GapError;
use super::folder::Folder;
use crate::subprocess;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest until the end of a child, or a signal, is seen.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A job may wait in the queue of a launcher.
const BEGINS_WITHIN: Duration = Duration::from_mins(10);

/// How long the job may take to end after GAP, and then after a signal.
const GRACE: Duration = Duration::from_secs(10);

/// The signal that has come last; 0 if none has.
static SIGNAL: AtomicUsize = AtomicUsize::new(0);

/// From now on a signal is noted. Ctrl-C reaches GAP, too, whose affair it is.
///
/// # Errors
///
/// The system does not let this process catch signals.
pub(super) fn note_signals() -> io::Result<()> {
    for signal in subprocess::not_ignored([SIGHUP, SIGINT, SIGTERM]) {
        register_usize(signal, &SIGNAL, signal as usize)?;
    }
    Ok(())
}

fn signal() -> i32 {
    SIGNAL.load(Ordering::SeqCst) as i32
}

/// The job, in a process group of its own. If it is dropped, it is killed.
pub(super) struct Job {
    child: Child,
    /// While this is open, the job has requests to wait for.
    requests: Option<OwnedFd>,
}

impl Job {
    /// Starts the job, and waits until it has opened the pipes.
    ///
    /// # Errors
    ///
    /// It cannot be started, or ends, or the user wants to end.
    pub(super) fn start(mut command: Command, folder: &Folder) -> Result<Self, GapError> {
        let spawned = command.stdin(Stdio::null()).process_group(0).spawn();
        let child = spawned.map_err(|source| GapError::start(&command, source))?;
        let mut job = Job { child, requests: None };
        let deadline = Instant::now() + BEGINS_WITHIN;
        let pipe = folder.path().join("requests");
        while signal() == 0 && Instant::now() < deadline {
            // It opens this pipe last; until then there is none who reads.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            if let Ok(requests) = open(&pipe, flags, Mode::empty()) {
                job.requests = Some(requests);
                return Ok(job);
            }
            if let Ok(Some(status)) = job.child.try_wait() {
                return Err(GapError::NoStart(status));
            }
            thread::sleep(LOOK_EVERY);
        }
        let signal = signal();
        job.end_within(Duration::ZERO);
        Err(if signal == 0 { GapError::Silent(BEGINS_WITHIN) } else { GapError::Signal(signal) })
    }

    /// Runs GAP to its end, and returns its exit code as a shell has it.
    ///
    /// # Errors
    ///
    /// It cannot be started, or the job has ended before GAP has opened the pipes: it would wait
    /// for ever then.
    pub(super) fn run_front(&mut self, mut gap: Command, folder: &Folder) -> Result<u8, GapError> {
        let mut front = gap.spawn().map_err(|source| GapError::start(&gap, source))?;
        let mut has_opened = false;
        loop {
            let is_asked_to_end = [SIGHUP, SIGTERM].contains(&signal());
            if let Ok(Some(status)) = front.try_wait() {
                let signal = if is_asked_to_end { Some(signal()) } else { status.signal() };
                let by_signal = signal.map_or(1, |signal| 128 + signal);
                return Ok(u8::try_from(status.code().unwrap_or(by_signal)).unwrap_or(1));
            }
            if is_asked_to_end {
                let _ = front.kill();
            }
            let job = self.child.try_wait();
            // The job removes the folder then.
            has_opened |= !folder.path().exists();
            if let (false, Ok(Some(status))) = (has_opened, job) {
                let _ = front.kill();
                let _ = front.wait();
                return Err(GapError::NoStart(status));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Lets the job end, and returns how it has.
    pub(super) fn end(mut self) -> Option<ExitStatus> {
        self.requests = None;
        self.end_within(GRACE)
    }

    /// Waits for the end, first so long, then as long after a signal; then kills the job.
    fn end_within(&mut self, mut wait: Duration) -> Option<ExitStatus> {
        for signal in [Some(Signal::TERM), Some(Signal::KILL), None] {
            let deadline = Instant::now() + wait;
            while Instant::now() < deadline {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return Some(status);
                }
                thread::sleep(LOOK_EVERY);
            }
            if let Some(signal) = signal {
                let _ = kill_process_group(Pid::from_child(&self.child), signal);
            }
            wait = GRACE;
        }
        None
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end_within(Duration::ZERO);
        }
    }
}
