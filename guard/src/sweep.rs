//! What a start of MPI that fails would leave in shared memory.
//!
//! While MPI starts, the processes of a job make files that others are about to open, and a death
//! ends them all, often at the same time: their launcher kills guards and children alike. So each
//! guard that loses its child then, and each child that loses its guard (see
//! [`startup`](super::startup)), leaves a *sweeper* behind: a process that for a moment removes
//! such files as no process has any more. Which process of the job had made one, or has ended last,
//! does not matter.
//!
//! A file of another job is safe, since one of its processes has it mapped as long as it is of use.
//! Whether that is so the system knows best: it lends a file out (`F_SETLEASE`) only to its sole
//! user. Before Linux 5.3 it lends out no file that has a name, and what failed starts leave stays
//! there; as it does everywhere if all children and a guard are killed at once (the launcher kills
//! the other guards), or a system of jobs kills all processes of its step.

use super::segments::{Segment, made};
use super::sys;
use rustix::process::{Pid, setpgid};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::parent_id;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How much earlier than a child another one of its job may have started MPI.
const START_APART: Duration = Duration::from_mins(1);

/// A file younger than this may still come into use.
const NEW: Duration = Duration::from_millis(50);

/// How long a sweeper waits for processes that still have a file and may be about to end.
const PATIENCE: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_millis(10);

/// When a sweeper ends at the latest, and a process that does not come to leave one behind.
const END_WITHIN_S: u32 = 3;

/// Leaves a sweeper behind if there is something to sweep. For a guard, which is about to end. Its
/// child was about to start MPI when it `began`.
pub(super) fn after_child(began: SystemTime) {
    if !left(began).is_empty() {
        // Without room for one more process it stays.
        let _ = leave_sweeper(began, || {});
    }
}

/// Leaves a sweeper behind, which removes what this process has in any case. For a child, which is
/// about to end, and whose other threads may make more files until it does.
pub(super) fn after_guard(began: SystemTime) {
    let remove_own = || Segment::own(began).iter().for_each(Segment::remove);
    sys::end_within(END_WITHIN_S);
    if leave_sweeper(began, remove_own).is_err() {
        remove_own();
    }
}

fn leave_sweeper(began: SystemTime, first: impl FnOnce()) -> io::Result<()> {
    let starter = std::process::id();
    let sweeper = sys::fork_and(move || {
        sys::end_within(END_WITHIN_S);
        first();
        sys::close_all_but(&[]);
        sweep(|| left(began), || parent_id() == starter);
    })?;
    // Open MPI's launcher kills this process's group, even after this process has ended.
    let sweeper = Pid::from_raw(sweeper);
    Ok(setpgid(sweeper, sweeper)?)
}

/// What the start has left.
fn left(began: SystemTime) -> Vec<Segment> {
    Segment::all(began - START_APART)
}

/// Removes what is unused of what is left, until there is nothing more to come.
fn sweep(left: impl Fn() -> Vec<Segment>, is_more_to_come: impl Fn() -> bool) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let is_last = !is_more_to_come();
        left().iter().for_each(remove_if_unused);
        if is_last && left().is_empty() {
            return;
        }
        thread::sleep(SWEEP_EVERY);
    }
}

fn remove_if_unused(segment: &Segment) {
    // Does not wait for another sweeper that has it lent, and follows no link.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&segment.path) else {
        return;
    };
    let is_it = file.metadata().is_ok_and(|file| segment.is(&file) && !is_new(&file));
    // While it is lent to this process, no other can begin to use it.
    if is_it && sys::is_sole_user(&file) {
        segment.remove();
    }
}

fn is_new(file: &Metadata) -> bool {
    !made(file).is_ok_and(|made| made.elapsed().is_ok_and(|age| age >= NEW))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::tests::{File, HOUR};
    use crate::sys::map;

    /// What is left of these files: other tests have their own.
    fn among(files: &[&File], since: SystemTime) -> Vec<Segment> {
        let mut found = Segment::all(since);
        found.retain(|segment| files.iter().any(|file| file.path == segment.path));
        found
    }

    #[test]
    fn unused_files_are_swept_away() {
        let [mut unused, held, mut mapped] =
            ["unused", "held", "mapped"].map(|name| File::make(&format!("mpich_shar_tmp-{name}")));
        let mut others = ["my_data", "not_vader_segment."].map(File::make);
        map(&mapped.path).expect("it can be mapped");
        let now = SystemTime::now();
        assert_eq!(among(&[&unused, &held, &mapped], now - HOUR).len(), 3);
        assert_eq!(among(&[&unused, &held, &mapped], now + HOUR), [], "they were there before");
        for file in others.iter_mut().chain([&mut unused, &mut mapped]) {
            file.held = None;
        }
        let [one, other] = &others;
        let files = [&unused, &held, &mapped, one, other];
        sweep(|| among(&files, now - HOUR), || false);
        assert_eq!(files.map(|file| file.path.exists()), [false, true, true, true, true]);
    }

    #[test]
    fn a_sweeper_waits_for_who_is_ending() {
        let mut file = File::make("mpich_shar_tmp-ending");
        let held = file.held.take();
        let user = thread::spawn(move || {
            thread::sleep(PATIENCE / 5);
            drop(held);
        });
        sweep(|| among(&[&file], SystemTime::now() - HOUR), || false);
        assert!(!file.path.exists());
        user.join().expect("no panic");
    }

    #[test]
    fn a_sweeper_waits_for_what_is_to_come() {
        let (file, start) = (std::cell::OnceCell::new(), Instant::now());
        let is_more_to_come = || {
            if start.elapsed() >= PATIENCE / 5 {
                file.get_or_init(|| {
                    let mut file = File::make("mpich_shar_tmp-late");
                    file.held = None;
                    file
                });
            }
            file.get().is_none()
        };
        sweep(
            || file.get().map_or_else(Vec::new, |file| among(&[file], SystemTime::now() - HOUR)),
            is_more_to_come,
        );
        assert!(!file.get().expect("it came").path.exists());
    }

    #[test]
    fn what_has_just_been_made_may_come_into_use() {
        let mut file = File::make("mpich_shar_tmp-new");
        let made = made(&file.path.metadata().expect("it is there")).expect("it is known");
        let [segment] = &among(&[&file], SystemTime::now() - HOUR)[..] else {
            panic!("it is there")
        };
        file.held = None;
        remove_if_unused(segment);
        assert!(file.path.exists() || made.elapsed().expect("in the past") >= NEW);
    }
}
