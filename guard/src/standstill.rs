//! Measures how long a child has been stopped. The guard kills a child that the job has given up,
//! which would otherwise stay for ever.
//!
//! The others of the job give up a process that is stopped for too long
//! ([`stalled_after`](ultramarine_runtime::detector::DetectorSettings::stalled_after)). It cannot
//! hear of that, and the launcher would wait for it without end: so its guard kills it. The guard
//! does the same to a child that is stopped while the job starts, once the others have waited for
//! it in vain, or have begun without it: it may have been stopped just before it said that it had
//! joined. A child that is stopped on purpose is left alone:
//!
//! - A job that is stopped as a whole (`scontrol suspend`, or SIGSTOP to all) has its guards
//!   stopped, too. Time passes for the child only while the guard runs.
//! - SIGTSTP, from a terminal, passes through the guard on its channel. Until SIGCONT does, no time
//!   passes.
//! - A process that a debugger holds is not stopped, but traced.

use std::time::{Duration, Instant};

/// The most that one look can add. Between two of them there is half a second; if it is more, the
/// guard itself did not run.
const STEP_MAX: Duration = Duration::from_secs(1);

/// How long the guard waits for the others to give up the child, and to say so.
const MARGIN: Duration = Duration::from_secs(2);

/// A clock that runs while the child is stopped.
#[derive(Debug)]
pub(super) struct Standstill {
    looked: Instant,
    stopped_for: Duration,
    is_wanted: bool,
}

impl Standstill {
    pub(super) fn watched_from(now: Instant) -> Self {
        Standstill { looked: now, stopped_for: Duration::ZERO, is_wanted: false }
    }

    /// A signal is on its way to the child.
    pub(super) fn hands_on(&mut self, signal: i32) {
        match signal {
            libc::SIGTSTP => self.is_wanted = true,
            libc::SIGCONT => self.is_wanted = false,
            _ => {}
        }
    }

    /// How long the child has been stopped, if that is more than the job bears.
    pub(super) fn too_long(
        &mut self,
        child: i32,
        now: Instant,
        limit: Option<Duration>,
    ) -> Option<Duration> {
        let step = now.saturating_duration_since(self.looked).min(STEP_MAX);
        self.looked = now;
        let is_stopped = is_process_stopped(child as u32) && !self.is_wanted;
        self.stopped_for = if is_stopped { self.stopped_for + step } else { Duration::ZERO };
        limit.filter(|limit| self.stopped_for > *limit + MARGIN).map(|_| self.stopped_for)
    }
}

/// Whether a process is stopped, but not by a debugger.
pub(super) fn is_process_stopped(process: u32) -> bool {
    is_stopped(&std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default())
}

/// Whether this is the status of a process that is stopped, but not by a debugger.
fn is_stopped(status: &str) -> bool {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).unwrap_or_default()
    };
    field("State:").starts_with('T') && field("TracerPid:") == "0"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const LIMIT: Duration = Duration::from_secs(3);

    /// A process that is stopped, killed at the end of the test.
    struct Stopped(Child);

    impl Stopped {
        fn new() -> Self {
            let child = Command::new("sleep").arg("1000").spawn().expect("it is there");
            let process = child.id() as i32;
            crate::sys::send(process, libc::SIGSTOP);
            let status = || std::fs::read_to_string(format!("/proc/{process}/status"));
            while !is_stopped(&status().expect("it is ours")) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Stopped(child)
        }
    }

    impl Drop for Stopped {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// After how many looks, half a second apart, it has been stopped for too long.
    fn looks(standstill: &mut Standstill, child: i32, now: &mut Instant) -> Option<usize> {
        (1..100).find(|_| {
            *now += Duration::from_millis(500);
            standstill.too_long(child, *now, Some(LIMIT)).is_some()
        })
    }

    #[test]
    fn a_stopped_child_is_given_up_after_its_limit() {
        let (stopped, mut now) = (Stopped::new(), Instant::now());
        let child = stopped.0.id() as i32;
        let mut standstill = Standstill::watched_from(now);
        assert_eq!(looks(&mut standstill, child, &mut now), Some(11));
        assert_eq!(standstill.too_long(child, now, None), None, "there is no job yet");
    }

    #[test]
    fn a_running_child_is_left_alone() {
        let mut now = Instant::now();
        let own = std::process::id() as i32;
        assert_eq!(looks(&mut Standstill::watched_from(now), own, &mut now), None);
    }

    #[test]
    fn no_time_passes_while_the_guard_does_not_run() {
        let (stopped, mut now) = (Stopped::new(), Instant::now());
        let mut standstill = Standstill::watched_from(now);
        now += Duration::from_hours(1);
        assert_eq!(standstill.too_long(stopped.0.id() as i32, now, Some(LIMIT)), None);
    }

    #[test]
    fn a_child_stopped_by_a_terminal_is_left_alone_until_it_goes_on() {
        let (stopped, mut now) = (Stopped::new(), Instant::now());
        let child = stopped.0.id() as i32;
        let mut standstill = Standstill::watched_from(now);
        standstill.hands_on(libc::SIGTSTP);
        assert_eq!(looks(&mut standstill, child, &mut now), None);
        standstill.hands_on(libc::SIGCONT);
        assert_eq!(looks(&mut standstill, child, &mut now), Some(11));
    }

    #[test]
    fn a_traced_process_is_not_stopped() {
        assert!(is_stopped("Name:\ta\nState:\tT (stopped)\nPid:\t3\nTracerPid:\t0\n"));
        for status in [
            "State:\tT (stopped)\nTracerPid:\t7\n",
            "State:\tt (tracing stop)\nTracerPid:\t7\n",
            "State:\tS (sleeping)\nTracerPid:\t0\n",
            "",
        ] {
            assert!(!is_stopped(status), "{status}");
        }
    }
}
