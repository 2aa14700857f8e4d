//! What the child has started, and what that has started in turn: it ends with the child.
//!
//! The system gives the guard each process below it whose own parent has ended (it is their
//! *subreaper*). So when the child has ended, what it has started is the guard's, and when that is
//! killed, so is what that has started.
//!
//! - A child that has died, or has left a job that goes on, or that a user has ended: all are
//!   killed. Another process may run the same task again, with the same programs.
//! - A child that has ended in order: those that it has started during the job are killed, since
//!   the launcher would wait for them as long as they have the same output; and copies of the child
//!   (of the same program), which a task has made by `fork` and has left behind: they wait for
//!   threads that they do not have. What the program starts after the job may stay.

use super::sys;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::parent_id;
use std::thread;
use std::time::{Duration, Instant};

/// How long processes may take to end that were killed.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What the system sets in a process that was forked and has not started another program.
const FORKED_NO_EXEC: u64 = 0x40;

/// The system notes the start of a process in these units of a second.
const TICKS_PER_S: u64 = 100;

/// Which of them to kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those that have started at these [times](now), and all copies.
    StartedIn(Range<u64>),
}

/// The time in the units in which the system notes the start of a process.
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * TICKS_PER_S + now.tv_nsec as u64 / (1_000_000_000 / TICKS_PER_S)
}

/// If this child has started anything that still runs: the time after that, and before what it
/// starts from now on. It takes a tick to tell them apart.
pub(super) fn time_between() -> Option<u64> {
    let next = now() + 1;
    let has_any = has_started_any();
    while has_any && now() < next {
        thread::sleep(LOOK_EVERY);
    }
    has_any.then_some(next)
}

/// Whether this child has children, or its guard has others than this one.
fn has_started_any() -> bool {
    let count = |process: &str| {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
        let children = threads.filter_map(|thread| {
            std::fs::read_to_string(thread.ok()?.path().join("children")).ok()
        });
        children.map(|children| children.split_whitespace().count()).sum::<usize>()
    };
    count("self") + count(&parent_id().to_string()) > 1
}

/// A process whose parent is this one.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    process: i32,
    is_copy: bool,
    began: u64,
}

impl Own {
    /// From a line such as `7 (a name) S 3 …`; the name may have anything in it.
    fn read(line: &str, parent: u32) -> Option<Self> {
        let (process, rest) = line.split_once(' ')?;
        let fields: Vec<_> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        let is_own = fields[0] != "Z" && fields[1].parse() == Ok(parent);
        let (process, began) = (process.parse().ok()?, fields.get(19)?.parse().ok()?);
        is_own.then_some(Own { process, is_copy: flags & FORKED_NO_EXEC != 0, began })
    }
}

/// All processes whose parent is this one, and that have not ended.
fn own() -> Vec<Own> {
    let parent = std::process::id();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    all.filter_map(|entry| Own::read(&stat(entry.ok()?)?, parent)).collect()
}

/// Whether a process runs the program of this guard, which is also its child's. (One that has put
/// itself into the background has forked last as well.)
fn is_this_program(process: i32) -> bool {
    let file = |process: &str| {
        let file = std::fs::metadata(format!("/proc/{process}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    };
    let own = file("self");
    own.is_some() && file(&process.to_string()) == own
}

/// Kills what the child has left, which has ended itself, but not its witness. Returns how many
/// processes that were.
pub(super) fn kill(which: &Which, witness: Option<i32>) -> usize {
    let (mut killed, start) = (HashSet::new(), Instant::now());
    let is_meant = |own: &Own| match which {
        Which::All => true,
        Which::StartedIn(times) => {
            times.contains(&own.began) || own.is_copy && is_this_program(own.process)
        }
    };
    while start.elapsed() < PATIENCE {
        let mut left = own();
        left.retain(|own| Some(own.process) != witness);
        left.retain(is_meant);
        if left.is_empty() {
            break;
        }
        for Own { process, .. } in left {
            if killed.insert(process) {
                sys::send(process, libc::SIGKILL);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    killed.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_with_its_flags() {
        let line = "17 (a) b) S 3 17 17 0 -1 4194368 100 0 0 0 1 2 0 0 20 0 1 0 100 1000 10";
        assert_eq!(Own::read(line, 3), Some(Own { process: 17, is_copy: true, began: 100 }));
        assert_eq!(Own::read(line, 4), None);
        let of_exec = line.replace("4194368", "4194304");
        assert_eq!(Own::read(&of_exec, 3), Some(Own { process: 17, is_copy: false, began: 100 }));
        assert_eq!(Own::read(&line.replace(" S ", " Z "), 3), None);
    }
}
