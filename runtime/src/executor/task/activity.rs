//! What a worker does, for others to see.

use crate::code::{Name, NameCell};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What a worker does. On a cache line of its own, because its worker alone writes it, and often.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Activity {
    /// How many tasks it has started.
    pub(crate) started: AtomicU64,
    /// How often it has gone on with a task.
    pub(crate) resumed: AtomicU64,
    /// The function that it is inside of; none between two tasks.
    pub(crate) function: NameCell,
    /// What the system knows of its thread.
    thread: OnceLock<PathBuf>,
}

thread_local! {
    /// The calling thread's, if it is a worker.
    static OWN: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

/// Notes the function that the calling worker goes into, or that it is between two tasks. Which it
/// was before. (It takes 5 ns: what starts a task that was spawned here has it noted already.)
pub(crate) fn goes_into(function: Option<Name>) -> Option<Name> {
    OWN.with_borrow(|own| own.as_ref()?.function.replace(function))
}

impl Activity {
    /// The calling thread is the worker.
    pub(crate) fn sits_down(self: &Arc<Self>) {
        if let Ok(thread) = fs::read_link("/proc/thread-self") {
            let _ = self.thread.set(Path::new("/proc").join(thread));
        }
        OWN.set(Some(self.clone()));
    }

    pub(crate) fn runs(&self) -> u64 {
        self.started.load(Ordering::Relaxed) + self.resumed.load(Ordering::Relaxed)
    }

    /// How long its thread has used a core, or waited for one. `None` where the system does not
    /// say.
    pub(crate) fn busy_for(&self) -> Option<Duration> {
        let text = fs::read_to_string(self.thread.get()?.join("schedstat")).ok()?;
        let mut nanos = text.split_whitespace().map(|number| number.parse().ok());
        Some(Duration::from_nanos(nanos.next()??) + Duration::from_nanos(nanos.next()??))
    }

    /// Whether its thread waits for another one, or the system does not say what for.
    pub(crate) fn waits_for_thread(&self) -> bool {
        let place = self.thread.get().map(|thread| fs::read_to_string(thread.join("wchan")));
        !matches!(place, Some(Ok(place)) if place != "0" && !place.starts_with("futex"))
    }
}
