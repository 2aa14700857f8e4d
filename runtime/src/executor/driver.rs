//! Who drives a PE.
//!
//! One thread looks after messages and timers when no worker does: the driver. After a death it may
//! be inside a call that does not return; then another becomes the driver, and the old one, should
//! it come back, notices and goes. The thread that started the PE waits until some driver has
//! brought it to its end.

use super::caught::caught;
use super::failure::JobError;
use super::life::Leave;
use super::processor::Processor;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// The driver's place.
#[derive(Default)]
pub(super) struct Driver {
    /// Which driver it is, counted from 1.
    watch: AtomicU64,
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    driver: Option<Thread>,
    ended: Option<Leave>,
}

impl Driver {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the driver's pause.
    pub(super) fn nudge(&self) {
        self.state().driver.iter().for_each(Thread::unpark);
    }

    /// The PE has left, for good; how it did so first counts.
    fn end(&self, leave: Leave) {
        self.state().ended.get_or_insert(leave);
        self.has_ended.notify_all();
    }

    /// Whether this driver has not been relieved.
    pub(super) fn is_current(&self, watch: u64) -> bool {
        self.watch.load(Ordering::Acquire) == watch
    }
}

impl Processor {
    /// Has a thread drive this PE to its end, and waits for that. Why it could not go on, if so,
    /// and how it left.
    pub(super) fn run_to_the_end(self: &Arc<Self>) -> (Option<JobError>, Leave) {
        self.change_driver();
        let mut state = self.driver.state();
        loop {
            if let Some(leave) = state.ended {
                drop(state);
                return (self.take_failure(), leave);
            }
            // Every driver's life is bounded by the job's, and `leave` by its deadline.
            state = self.driver.has_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts a new driver in the place of the one there may be.
    pub(super) fn change_driver(self: &Arc<Self>) {
        let mut state = self.driver.state();
        let watch = self.driver.watch.fetch_add(1, Ordering::AcqRel) + 1;
        let pe = self.clone();
        let name = format!("pe{}-driver", self.me().number());
        let drive = move || {
            // Nobody else would notice, and the starting thread wait for ever.
            let left = caught(|| pe.drive(watch)).unwrap_or_else(|message| {
                pe.fail(JobError::DriverPanicked { me: pe.me(), message });
                Some(Leave::Hasty)
            });
            if let Some(leave) = left {
                pe.driver.end(leave);
            }
        };
        match std::thread::Builder::new().name(name).spawn(drive) {
            Ok(thread) => {
                if let Some(old) = state.driver.replace(thread.thread().clone()) {
                    old.unpark();
                }
            }
            Err(error) => {
                drop(state);
                let (me, reason) = (self.me(), error.to_string());
                self.fail(JobError::Threads { me, reason });
                self.driver.end(Leave::Hasty);
            }
        }
    }
}
