//! What the child has started, and what that has started in turn: it ends with the child.
//!
//! The system gives the guard each process below it whose own parent has ended (it is their
//! *subreaper*). So when the child has ended, what it has started is the guard's, and when that is
//! killed, so is what that has started.
//!
//! - A child that has died, or has left a job that goes on, or that a user has ended: all are
//!   killed. Another process may run the same task again, with the same programs.
//! - A child that has ended in order: those that it has started during the job are killed, since
//!   the launcher would wait for them as long as they have the same output; with what these have
//!   started, whenever that was; and copies of the child (of the same program), which a task has
//!   made by `fork` and has left behind: they wait for threads that they do not have. What the
//!   program starts before the job or after it may stay.

use super::sys;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::fs::DirEntry;
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
    /// Those that have started at these [ticks](now_ticks), and all copies.
    StartedIn(Range<u64>),
}

impl Which {
    fn has(&self, process: &Process) -> bool {
        match self {
            Which::All => true,
            Which::StartedIn(ticks) => {
                let is_copy = || process.is_copy && is_this_program(process.number);
                ticks.contains(&process.began_ticks) || is_copy()
            }
        }
    }

    /// Of all these the children of this process that are to be killed. What becomes its child
    /// after the first look was left by one that has been killed, unless it was seen below one of
    /// the `spared`.
    fn to_kill(&self, all: &[Process], is_first: bool, spared: &mut HashSet<i32>) -> Vec<i32> {
        let this = std::process::id() as i32;
        let mut meant = Vec::new();
        for process in all {
            let is_own = process.parent == this;
            if is_own && is_first && !self.has(process) || spared.contains(&process.parent) {
                spared.insert(process.number);
            }
            if is_own && !spared.contains(&process.number) {
                meant.push(process.number);
            }
        }
        meant
    }
}

/// The time in the units in which the system notes the start of a process.
fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * TICKS_PER_S + now.tv_nsec as u64 / (1_000_000_000 / TICKS_PER_S)
}

/// The first tick of what this child starts from now on. All that it has started so far has earlier
/// ones: this takes a tick. `None` if nothing of that still runs.
pub(super) fn boundary_ticks() -> Option<u64> {
    let next = now_ticks() + 1;
    let has_any = has_started_any();
    while has_any && now_ticks() < next {
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

/// A process that has not ended.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    number: i32,
    parent: i32,
    is_copy: bool,
    began_ticks: u64,
}

impl Process {
    /// From a line such as `7 (a name) S 3 …`; the name may have anything in it.
    fn read(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(' ')?;
        let fields: Vec<_> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        let process = Process {
            number: number.parse().ok()?,
            parent: fields[1].parse().ok()?,
            is_copy: flags & FORKED_NO_EXEC != 0,
            began_ticks: fields.get(19)?.parse().ok()?,
        };
        (fields[0] != "Z").then_some(process)
    }

    /// All, parents mostly before their children.
    fn all() -> Vec<Self> {
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let stat = |entry: DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        all.filter_map(|entry| Process::read(&stat(entry.ok()?)?)).collect()
    }
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
    let (mut killed, mut spared) = (HashSet::new(), witness.into_iter().collect());
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let left = which.to_kill(&Process::all(), killed.is_empty(), &mut spared);
        if left.is_empty() {
            break;
        }
        for process in left {
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
        let process = |is_copy| Process { number: 17, parent: 3, is_copy, began_ticks: 100 };
        assert_eq!(Process::read(line), Some(process(true)));
        assert_eq!(Process::read(&line.replace("4194368", "4194304")), Some(process(false)));
        assert_eq!(Process::read(&line.replace(" S ", " Z ")), None);
    }

    #[test]
    fn what_comes_of_a_killed_process_is_killed_whenever_it_has_started() {
        let own = std::process::id() as i32;
        let process =
            |(number, parent, began_ticks)| Process { number, parent, is_copy: false, began_ticks };
        let (which, mut spared) = (Which::StartedIn(5..9), HashSet::from([-2]));
        let mut meant = |all: &[(i32, i32, u64)], is_first| {
            let all: Vec<_> = all.iter().copied().map(process).collect();
            which.to_kill(&all, is_first, &mut spared)
        };
        // A shell of a task has started a program; so has what was started after the job.
        let first = [(-2, own, 9), (-3, own, 8), (-4, -3, 9), (-5, own, 9), (-6, -5, 9)];
        assert_eq!(meant(&first, true), [-3]);
        // Both have ended. The shell has started another before that.
        let then = [(-2, own, 9), (-4, own, 9), (-6, own, 9), (-7, own, 10)];
        assert_eq!(meant(&then, false), [-4, -7]);
    }
}
