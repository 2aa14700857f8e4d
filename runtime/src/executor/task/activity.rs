//! What a thread that runs tasks does at the moment, for other threads to read.

use crate::code::{Name, NameCell};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the main task is called among the names of functions.
pub(crate) const MAIN_TASK: &str = "the main task";

/// What a worker does, or the standby. It has a cache line to itself, because its thread writes it
/// often.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Activity {
    /// The number of tasks it has started. (The standby's are counted with those of other threads
    /// without deques.)
    pub(crate) started: AtomicU64,
    /// The number of this PE's own tasks that have ended on this thread, while they are counted.
    /// (The standby's are in no sum: what it runs is not counted.)
    pub(crate) ended: AtomicU64,
    /// How often it has resumed a task.
    pub(crate) resumed: AtomicU64,
    /// The function that it is inside of; none between two tasks.
    pub(crate) function: NameCell,
    /// The thread's directory under `/proc`.
    thread: OnceLock<PathBuf>,
}

thread_local! {
    /// The calling thread's activity, if it is a worker or the standby.
    static OWN: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

/// Notes that the calling thread enters a function, or (`None`) that it is between two tasks.
/// Returns the function it was in before. (This takes 5 ns. The start of a task that was spawned
/// here skips it: the queue has noted the function already.)
pub(crate) fn enter_function(function: Option<Name>) -> Option<Name> {
    OWN.with_borrow(|own| own.as_ref()?.function.replace(function))
}

/// The function that the calling thread is inside of, or was until now.
pub(crate) fn current_function() -> Option<Name> {
    OWN.with_borrow(|own| own.as_ref()?.function.get())
}

/// Whether the ends of tasks are counted. (Not from the beginning: that would take a twentieth of
/// the time of an empty task.)
static COUNTS_ENDS: AtomicBool = AtomicBool::new(false);

/// From now on the PEs of this process count the ends of tasks.
pub(crate) fn count_ends() {
    COUNTS_ENDS.store(true, Ordering::Relaxed);
}

/// Whether they do.
#[inline]
pub(crate) fn counts_ends() -> bool {
    COUNTS_ENDS.load(Ordering::Relaxed)
}

/// Notes that a task of this PE is about to end on the calling thread.
#[inline]
pub(crate) fn note_end() {
    if counts_ends() {
        note_end_here();
    }
}

#[cold]
#[inline(never)]
fn note_end_here() {
    OWN.with_borrow(|own| {
        if let Some(own) = own {
            // Only this thread writes it.
            own.ended.store(own.ended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    });
}

impl Activity {
    /// Makes this the calling thread's activity.
    pub(crate) fn bind_to_this_thread(self: &Arc<Self>) {
        if let Ok(thread) = fs::read_link("/proc/thread-self") {
            let _ = self.thread.set(Path::new("/proc").join(thread));
        }
        OWN.set(Some(self.clone()));
    }

    pub(crate) fn runs(&self) -> u64 {
        self.started.load(Ordering::Relaxed) + self.resumed.load(Ordering::Relaxed)
    }

    /// How long its thread has used a core or waited for one. `None` if the system does not say.
    /// The system adds a wait when it ends: see [`is_runnable`](Self::is_runnable).
    pub(crate) fn busy_for(&self) -> Option<Duration> {
        let text = fs::read_to_string(self.thread.get()?.join("schedstat")).ok()?;
        let mut nanos = text.split_whitespace().map(|number| number.parse().ok());
        Some(Duration::from_nanos(nanos.next()??) + Duration::from_nanos(nanos.next()??))
    }

    /// Whether its thread uses a core at this moment, or waits for one.
    pub(crate) fn is_runnable(&self) -> bool {
        let stat = self.thread.get().map(|thread| fs::read_to_string(thread.join("stat")));
        // The state follows the thread's name, which may have parentheses of its own.
        let Some(Ok(stat)) = stat else { return false };
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
    }

    /// Whether its thread waits for another thread. Also true if the system does not say what it
    /// waits for.
    pub(crate) fn waits_for_thread(&self) -> bool {
        let place = self.thread.get().map(|thread| fs::read_to_string(thread.join("wchan")));
        !matches!(place, Some(Ok(place)) if place != "0" && !place.starts_with("futex"))
    }
}
