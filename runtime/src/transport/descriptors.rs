//! File descriptors: how many this process may open, and what to say when none is left.
//!
//! The limit is `RLIMIT_NOFILE`, which `ulimit -n` shows. Each process has a soft limit, which
//! counts, and a hard limit, up to which it may raise the soft one.

use super::error::{LaneError, hint};
use crate::lock::Lock;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::time::{Duration, Instant};

/// The number of descriptors that a process needs beside its connections with other PEs. Most are
/// for the detector: up to twenty dials are under way to each PE that does not answer.
pub const APART: u64 = 512;

/// The least number of connections that a lane or a detector needs: one to dial, and one to accept
/// a call.
pub const CONNECTIONS_MIN: usize = 2;

/// The limit is raised no further than this. Some hosts have a hard limit of 10^9, and some
/// programs that a job may start go through all numbers below the soft one.
const RAISED_MAX: u64 = 1 << 20;

/// The number of open descriptors to assume if the system does not say.
const OPEN_GUESS: u64 = 64;

/// The least number of descriptors that the lanes leave to others: as many as they and a detector
/// wait with, and a few for the detector's connections. Otherwise they leave a quarter, most of
/// which is the program's: a detector may have that many connections, and mostly has four.
const LEFT_TO_OTHERS_MIN: u64 = WAITING + 5;

/// The number of descriptors that a lane and a detector take to wait with.
const WAITING: u64 = 5;

/// The shortest time between two warnings of a shortage.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Raises the soft limit as far as the hard one allows, unless it already allows `needed`
/// descriptors. Returns the resulting soft limit; `None`: there is no limit.
pub fn raise(needed: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current?;
    let raised = maximum.unwrap_or(RAISED_MAX).min(RAISED_MAX);
    if soft >= needed.min(raised) {
        return Some(soft);
    }
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok();
    Some(if is_raised { raised } else { soft })
}

/// The number of further descriptors that this process may open.
pub fn remaining() -> u64 {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return u64::MAX };
    limit.saturating_sub(open_below(limit))
}

/// How many connections the parts of a process may have. Each part keeps to its share, so that none
/// takes the descriptors that another needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionShares {
    /// The connections of each lane.
    pub lane: usize,
    /// The connections of the detector.
    pub detector: usize,
}

impl ConnectionShares {
    /// Shares out what is left, in a process with `lanes` lanes over TCP. None gets fewer than
    /// [`CONNECTIONS_MIN`].
    pub fn of_remaining(lanes: u64) -> ConnectionShares {
        ConnectionShares::of(remaining(), lanes)
    }

    fn of(left: u64, lanes: u64) -> ConnectionShares {
        let others = LEFT_TO_OTHERS_MIN.max(left / 4);
        let share = |count| usize::try_from(count).unwrap_or(usize::MAX).max(CONNECTIONS_MIN);
        ConnectionShares {
            lane: share(left.saturating_sub(others) / lanes.max(1)),
            detector: share(others - WAITING),
        }
    }
}

/// The number of open descriptors whose numbers are below the limit. The limit applies to the
/// numbers: a process may have inherited greater ones from a launcher with a higher limit.
fn open_below(limit: u64) -> u64 {
    let is_below = |name: &std::ffi::OsStr| {
        name.to_str().and_then(|name| name.parse::<u64>().ok()).is_some_and(|fd| fd < limit)
    };
    match std::fs::read_dir("/proc/self/fd") {
        // One of them is the folder itself, while it is being read.
        Ok(files) => {
            let open = files.flatten().filter(|file| is_below(&file.file_name())).count();
            (open as u64).saturating_sub(1)
        }
        Err(error) if is_shortage(&error) => limit,
        Err(_) => OPEN_GUESS,
    }
}

/// Checks, before the job begins, that this many descriptors are free.
///
/// # Errors
/// Fewer are free.
pub fn require(needed: u64) -> Result<(), LaneError> {
    let left = remaining();
    if left >= needed {
        return Ok(());
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Err(LaneError::Descriptors { limit, left, needed, enough: limit - left + needed })
}

/// Whether the system refused something for lack of descriptors.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Warns if the system refused something for lack of descriptors, at most every 10 s.
pub(crate) fn warn_of_shortage(doing: &str, error: &io::Error) {
    static WARNED: Lock<Option<Instant>> = Lock::new(None);
    if !is_shortage(error) {
        return;
    }
    let mut warned = WARNED.lock();
    if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
        *warned = Some(Instant::now());
        tracing::warn!("{doing} must wait: {error}{}", hint(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_enough_is_left_alone() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(0), before.current);
        assert_eq!(getrlimit(Resource::Nofile), before);
    }

    #[test]
    fn a_demand_that_cannot_be_met_names_the_limit_and_the_way_out() {
        require(1).expect("one is always left");
        let Some(limit) = getrlimit(Resource::Nofile).current else { return };
        let error = require(limit + 1).expect_err("some are open").to_string();
        assert!(error.contains(&format!("RLIMIT_NOFILE is {limit}")), "{error}");
        assert!(error.contains("ulimit -n"), "{error}");
    }

    #[test]
    fn the_parts_of_a_process_share_what_is_left() {
        let of = |left, lanes| {
            let ConnectionShares { lane, detector } = ConnectionShares::of(left, lanes);
            (lane, detector)
        };
        assert_eq!([of(0, 1), of(10, 1), of(12, 1)], [(2, 5); 3]);
        assert_eq!([of(23, 1), of(1000, 1), of(1000, 10)], [(13, 5), (750, 245), (75, 245)]);
        for left in 12..200 {
            let (lane, detector) = of(left, 1);
            assert!(lane as u64 + detector as u64 + WAITING <= left, "{left}");
        }
    }

    #[test]
    fn only_a_lack_of_descriptors_is_one() {
        for (errno, is_one) in [(Errno::MFILE, true), (Errno::NFILE, true), (Errno::PIPE, false)] {
            let error = io::Error::from(errno);
            assert_eq!((is_shortage(&error), hint(&error).is_empty()), (is_one, !is_one));
        }
    }
}
