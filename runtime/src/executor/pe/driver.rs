//! Which thread drives a PE.
//!
//! The *driver* is the thread that handles messages and timers when no worker does. After a death
//! it may be inside a call that does not return. Then another thread becomes the driver; if the old
//! one comes back, it notices and ends. The thread that started the PE waits until a driver has
//! brought it to its end.

use super::leave::Leave;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// Keeps track of a PE's driver.
#[derive(Default)]
pub(crate) struct Driver {
    /// The number of the current driver, counted from 1.
    generation: AtomicU64,
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    ended: Option<Leave>,
}

impl Driver {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the driver's pause.
    pub(crate) fn nudge(&self) {
        self.state().thread.iter().for_each(Thread::unpark);
    }

    /// The PE has left. The first call counts.
    pub(crate) fn end(&self, leave: Leave) {
        self.state().ended.get_or_insert(leave);
        self.has_ended.notify_all();
    }

    /// Whether this driver has not been replaced.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Waits until a driver has brought the PE to its end. Returns how it left.
    pub(crate) fn wait_for_end(&self) -> Leave {
        let mut state = self.state();
        loop {
            if let Some(leave) = state.ended {
                return leave;
            }
            // Each driver's life is bounded by the job's, and `leave` by its deadline.
            state = self.has_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts a thread as the new driver. An old one is told to look.
    pub(crate) fn replace<E>(&self, start: impl FnOnce(u64) -> Result<Thread, E>) -> Result<(), E> {
        let mut state = self.state();
        let thread = start(self.generation.fetch_add(1, Ordering::AcqRel) + 1)?;
        if let Some(old) = state.thread.replace(thread) {
            old.unpark();
        }
        Ok(())
    }
}
