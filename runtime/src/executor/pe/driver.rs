//! Which thread drives a PE.
//!
//! The *driver* is the thread that handles messages and timers when no worker does. After a death
//! it may be inside a call that does not return. Then another thread becomes the driver; if the old
//! one comes back, it notices and ends. The thread that started the PE waits until a driver has
//! brought it to its end.

use super::leave::Leave;
use crate::lock::Lock;
use crate::transport::Sleeper;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::thread::Thread;

/// Keeps track of a PE's driver, and of where it sleeps.
pub(crate) struct Driver {
    /// The number of the current driver, counted from 1.
    generation: AtomicU64,
    state: Lock<State>,
    has_ended: Condvar,
}

struct State {
    thread: Option<Thread>,
    /// The lane's; it goes with the lane.
    sleeper: Weak<dyn Sleeper>,
    ended: Option<Leave>,
}

impl Driver {
    /// There is no thread yet. It will sleep in this.
    pub(super) fn new(sleeper: &Arc<dyn Sleeper>) -> Self {
        let sleeper = Arc::downgrade(sleeper);
        Driver {
            generation: AtomicU64::new(0),
            state: Lock::new(State { thread: None, sleeper, ended: None }),
            has_ended: Condvar::new(),
        }
    }

    /// Ends the driver's pause: it handles messages and timers at once.
    pub(super) fn nudge(&self) {
        let state = self.state.lock();
        state.thread.iter().for_each(Thread::unpark);
        let sleeper = state.sleeper.upgrade();
        drop(state);
        sleeper.iter().for_each(|sleeper| sleeper.wake());
    }

    /// What the driver sleeps in, while the lane is there.
    pub(super) fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        self.state.lock().sleeper.upgrade()
    }

    /// The lane has changed: the driver sleeps in this from now on.
    pub(crate) fn set_sleeper(&self, sleeper: &Arc<dyn Sleeper>) {
        self.state.lock().sleeper = Arc::downgrade(sleeper);
        self.nudge();
    }

    /// The PE has left. The first call counts.
    pub(crate) fn end(&self, leave: Leave) {
        self.state.lock().ended.get_or_insert(leave);
        self.has_ended.notify_all();
    }

    /// Whether this driver has not been replaced.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Waits until a driver has brought the PE to its end. Returns how it left.
    pub(crate) fn wait_for_end(&self) -> Leave {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        let thread = start(self.generation.fetch_add(1, Ordering::AcqRel) + 1)?;
        if let Some(old) = state.thread.replace(thread) {
            old.unpark();
        }
        Ok(())
    }
}
