//! The journals that this process has open, for the moment when a signal ends it.

use crate::queue::Queue;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

static OPEN: Mutex<Vec<Weak<Queue>>> = Mutex::new(Vec::new());
static WHEN_OPENED: OnceLock<fn()> = OnceLock::new();

/// Has a function called whenever this process has opened a journal, by the thread that opens it.
/// Only the first call counts.
pub fn when_opened(act: fn()) {
    WHEN_OPENED.get_or_init(|| act);
}

/// Puts the journals that are open on the disk and closes them, as
/// [`Journal::finish`](crate::Journal::finish) does, for a process that is about to end. What is
/// appended later is dropped. Waits `limit` at the most; an error is told in a warning.
pub fn close_all(limit: Duration) {
    let until = Instant::now() + limit;
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    let open: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
    // All at once, then one after the other.
    open.iter().for_each(|queue| drop(queue.close(Duration::ZERO)));
    for queue in open {
        if let Err(error) = queue.close(until.saturating_duration_since(Instant::now())) {
            tracing::warn!("{error}");
        }
    }
}

/// A journal is open.
pub(crate) fn note(queue: &Arc<Queue>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|other| other.strong_count() > 0);
    open.push(Arc::downgrade(queue));
    drop(open);
    if let Some(act) = WHEN_OPENED.get() {
        act();
    }
}
