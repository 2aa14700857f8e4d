//! Tasks from other PEs that run here, by the PEs that wait for them.
//!
//! A task whose home has died is an *orphan*: its result goes nowhere, and its replica does the same work
//! again elsewhere. It is stopped where it awaits something, and with it what only it waits for (see
//! [`Promise::abandon`](super::future::Promise::abandon)). A function that only computes runs to its end.

use super::processor::Processor;
use async_task::Task;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine_topology::Pe;

/// The guests of a PE.
#[derive(Default)]
pub(super) struct Guests(Mutex<Register>);

#[derive(Default)]
struct Register {
    last: u64,
    stays: HashMap<u64, Stay>,
}

struct Stay {
    home: Pe,
    /// `None` until the task has begun to wait for something.
    task: Option<Task<()>>,
}

impl Guests {
    fn register(&self) -> MutexGuard<'_, Register> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task is about to run. Its number.
    pub(super) fn arrive(&self, home: Pe) -> u64 {
        let mut register = self.register();
        register.last += 1;
        let number = register.last;
        register.stays.insert(number, Stay { home, task: None });
        number
    }

    /// The task waits for something. It is stopped if its home has died meanwhile.
    pub(super) fn stay(&self, number: u64, task: Task<()>) {
        let mut register = self.register();
        if let Some(stay) = register.stays.get_mut(&number) {
            stay.task = Some(task);
        } else {
            drop(register);
            drop(task);
        }
    }

    /// The task has ended.
    pub(super) fn leave(&self, number: u64) {
        let stay = self.register().stays.remove(&number);
        stay.and_then(|stay| stay.task).into_iter().for_each(Task::detach);
    }

    /// Stops the tasks of these homes. They are dropped by workers, one by one.
    fn stop(&self, is_home: impl Fn(Pe) -> bool) {
        let stopped: Vec<_> =
            self.register().stays.extract_if(|_, stay| is_home(stay.home)).collect();
        // After the lock: this schedules them.
        drop(stopped);
    }

    /// Stops all.
    pub(super) fn clear(&self) {
        self.stop(|_| true);
    }
}

impl Processor {
    /// Stops the tasks that a dead PE had waited for.
    pub(super) fn stop_orphans(&self, dead: Pe) {
        self.guests.stop(|home| home == dead);
    }
}
