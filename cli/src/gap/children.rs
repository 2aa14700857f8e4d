//! The two children: the job, and the GAP in front of it.

use super::GapError;
use super::folder::Folder;
use crate::subprocess;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest until the end of a child, or a signal, is seen.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A job may wait in the queue of a launcher.
const BEGINS_WITHIN: Duration = Duration::from_mins(10);

/// How long the job may take to end after GAP, and then after a signal.
const GRACE: Duration = Duration::from_secs(10);

/// The signals that ask this command to end.
pub(super) struct Signals(SignalsInfo<WithRawSiginfo>);

impl Signals {
    /// From now on signals are noted.
    ///
    /// # Errors
    ///
    /// The system does not let this process catch signals.
    pub(super) fn note() -> io::Result<Self> {
        SignalsInfo::new(subprocess::not_ignored([SIGHUP, SIGINT, SIGTERM])).map(Signals)
    }

    /// The signal that has come last, if any has. The terminal's Ctrl-C reaches GAP, too, and is
    /// GAP's affair once it is there. What a process sends may have come here alone.
    fn come(&mut self, gap_is_there: bool) -> Option<i32> {
        // The system says by the code whether a process has sent it.
        let come = self.0.pending().map(|signal| (signal.si_signo, signal.si_code <= 0));
        let counts = |(signal, is_sent): &_| *signal != SIGINT || !gap_is_there || *is_sent;
        come.filter(counts).last().map(|(signal, _)| signal)
    }
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
    pub(super) fn start(
        mut command: Command,
        folder: &Folder,
        signals: &mut Signals,
    ) -> Result<Self, GapError> {
        let spawned = command.stdin(Stdio::null()).process_group(0).spawn();
        let child = spawned.map_err(|source| GapError::start(&command, source))?;
        let mut job = Job { child, requests: None };
        let deadline = Instant::now() + BEGINS_WITHIN;
        let pipe = folder.path().join("requests");
        let mut signal = None;
        while signal.is_none() && Instant::now() < deadline {
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
            signal = signals.come(false);
        }
        job.end_within(Duration::ZERO);
        Err(signal.map_or(GapError::Silent(BEGINS_WITHIN), GapError::Signal))
    }

    /// Runs GAP to its end, and returns its exit code as a shell has it. A signal to this command
    /// ends GAP.
    ///
    /// # Errors
    ///
    /// It cannot be started, or the job has ended before GAP has opened the pipes: it would wait
    /// for ever then.
    pub(super) fn run_front(
        &mut self,
        mut gap: Command,
        folder: &Folder,
        signals: &mut Signals,
    ) -> Result<u8, GapError> {
        let mut front = gap.spawn().map_err(|source| GapError::start(&gap, source))?;
        let (mut has_opened, mut asked) = (false, None);
        loop {
            asked = signals.come(true).or(asked);
            if let Ok(Some(status)) = front.try_wait() {
                if let (None, Some(signal)) = (asked, status.signal()) {
                    eprintln!("Error: GAP was killed by signal {signal}, and its job is ended");
                }
                let by_signal = asked.or(status.signal()).map_or(1, |signal| 128 + signal);
                return Ok(u8::try_from(status.code().unwrap_or(by_signal)).unwrap_or(1));
            }
            if asked.is_some() {
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
