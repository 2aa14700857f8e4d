//! What a thief that finds nothing tells the workers that divide.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by a thief that finds nothing to take, a worker of this PE or a FISH from another. Taken
/// back by the first worker that sees it amid a task. It has a cache line to itself: all workers
/// read it often, and hardly any thread writes it.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Wanted(AtomicBool);

impl Wanted {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        if !self.is_set() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was set until now.
    pub(crate) fn take(&self) -> bool {
        self.is_set() && self.0.swap(false, Ordering::Relaxed)
    }
}
