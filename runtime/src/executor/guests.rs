//! Tasks from other PEs that run here, by the PEs that wait for them.
//!
//! A task whose home has died is an *orphan*: its result goes nowhere, and its replica does the
//! same work again elsewhere. It is stopped where it awaits something, and with it what only it
//! waits for (see
//! [`Promise::abandon`]). What it spawns before that is [put off](PutOff). A function that only computes
//! runs to its end.

use super::fork::Loan;
use super::future::Promise;
use super::processor::Processor;
use super::spawn::Berth;
use crate::error::TaskError;
use crate::numbered::Numbered;
use async_task::Task;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// The guests of a PE.
#[derive(Default)]
pub(super) struct Guests(Mutex<Register>);

#[derive(Default)]
struct Register {
    last: u64,
    stays: Numbered<Stay>,
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
        if let Some(stay) = register.stays.get_mut(number) {
            stay.task = Some(task);
        } else {
            drop(register);
            drop(task);
        }
    }

    /// The task has ended.
    pub(super) fn leave(&self, number: u64) {
        let stay = self.register().stays.remove(number);
        stay.and_then(|stay| stay.task).into_iter().for_each(Task::detach);
    }

    /// Stops the tasks of these homes. They are dropped by workers, one by one.
    fn stop(&self, is_home: impl Fn(Pe) -> bool) {
        let mut register = self.register();
        let all = register.stays.iter();
        let theirs: Vec<_> =
            all.filter(|(_, stay)| is_home(stay.home)).map(|(number, _)| number).collect();
        let stopped: Vec<_> =
            theirs.into_iter().filter_map(|number| register.stays.remove(number)).collect();
        drop(register);
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

    /// Whether a task that runs here on behalf of `home` is an orphan.
    pub(super) fn is_orphaned(&self, home: Pe) -> bool {
        home != self.me() && self.is_dead(home)
    }
}

/// A task that an orphan has spawned. It waits until somebody asks for its result. The orphan
/// itself is stopped when it does; but its future may be one that it shares with tasks that are no
/// orphans.
pub(super) struct PutOff<A, R> {
    pe: Arc<Processor>,
    berth: Berth,
    task: Arc<dyn Loan<A, R>>,
    is_wanted: AtomicBool,
}

impl<A: 'static, R: 'static> PutOff<A, R> {
    pub(super) fn new(pe: &Arc<Processor>, berth: Berth, task: Arc<dyn Loan<A, R>>) -> Self {
        PutOff { pe: pe.clone(), berth, task, is_wanted: AtomicBool::new(false) }
    }

    fn want(&self) -> &dyn Loan<A, R> {
        if self.pe.is_ending() {
            self.task.cancel();
        } else if !self.is_wanted.swap(true, Ordering::Relaxed) {
            self.pe.enqueue(self.berth, self.task.clone());
        }
        &*self.task
    }
}

impl<A: 'static, R: 'static> Promise<R> for PutOff<A, R> {
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>> {
        self.want().poll(waker)
    }

    fn is_ready(&self) -> bool {
        self.want().is_ready()
    }

    fn abandon(&self) {
        self.task.abandon();
    }
}
