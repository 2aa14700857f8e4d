//! Tasks from other PEs that run here, by the PEs that wait for them.
//!
//! A task whose home has died is an *orphan*: its result goes nowhere, and its replica does the
//! same work again elsewhere. It is stopped where it awaits something, and with it what only it
//! waits for (see [`Promise::cancel`]). What it spawns before that is [put off](PutOff). A function
//! that only computes runs to its end.

use super::cancel::Batch;
use super::fork::Loan;
use super::future::Promise;
use super::processor::Processor;
use super::spawn::Destination;
use crate::error::TaskError;
use crate::protocol::TaskId;
use async_task::Task;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// The guests of a PE that wait for something.
#[derive(Default)]
pub(super) struct Guests(Mutex<Register>);

#[derive(Default)]
struct Register {
    /// Also some that have ended meanwhile.
    tasks: Vec<(TaskId, Task<()>)>,
    /// Those that have ended are let go when there are this many.
    full_at: usize,
    /// The PE has left the job: a task that begins to wait now is stopped at once.
    is_closed: bool,
}

impl Guests {
    /// How many ended tasks are kept at most, apart from as many as waited when such were last let
    /// go.
    const ENDED_MAX: usize = 64;

    fn register(&self) -> MutexGuard<'_, Register> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task has begun, and waits for something. Most tasks never do, and are not entered here: it
    /// was a tenth of the work of a small one.
    fn add(&self, id: TaskId, task: Task<()>) {
        let mut register = self.register();
        if register.is_closed {
            // After the lock: this schedules it.
            drop(register);
            return drop(task);
        }
        let Register { tasks, full_at, .. } = &mut *register;
        if tasks.len() >= *full_at {
            tasks.retain(|(_, task)| !task.is_finished());
            *full_at = 2 * tasks.len() + Self::ENDED_MAX;
        }
        tasks.push((id, task));
    }

    /// Stops these. They are dropped by workers, one by one.
    pub(super) fn stop(&self, which: impl Fn(TaskId) -> bool) {
        let mut register = self.register();
        let stopped: Vec<_> = register.tasks.extract_if(.., |(id, _)| which(*id)).collect();
        drop(register);
        // After the lock: this schedules them.
        drop(stopped);
    }

    /// Lets go of those that have ended. Whether there are no others.
    fn tidy(&self) -> bool {
        let mut register = self.register();
        register.tasks.retain(|(_, task)| !task.is_finished());
        register.tasks.shrink_to(Self::ENDED_MAX);
        register.full_at = 2 * register.tasks.len() + Self::ENDED_MAX;
        register.tasks.is_empty()
    }

    /// Stops all, and those that come later.
    pub(super) fn clear(&self) {
        self.register().is_closed = true;
        self.stop(|_| true);
    }
}

impl Processor {
    /// A task that has begun here waits for something. It is stopped if its home dies, or cancels
    /// it.
    pub(super) fn keep_guest(&self, id: TaskId, task: Task<()>) {
        self.guests.add(id, task);
        // Either this sees what has happened, or who sees to that sees the task.
        if self.is_dead(id.home) {
            self.stop_orphans(id.home);
        } else if self.cancelled.contains(id) {
            self.guests.stop(|task| task == id);
        }
    }

    /// Lets go of what is left of guests, while nothing runs here.
    pub(super) fn tidy_guests(&self) {
        if self.guests.tidy() {
            self.cancelled.clear();
        }
    }

    /// Stops the tasks that a dead PE had waited for.
    pub(super) fn stop_orphans(&self, dead: Pe) {
        self.guests.stop(|task| task.home == dead);
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
    destination: Destination,
    task: Arc<dyn Loan<A, R>>,
    is_wanted: AtomicBool,
}

impl<A: 'static, R: 'static> PutOff<A, R> {
    pub(super) fn new(
        pe: &Arc<Processor>,
        destination: Destination,
        task: Arc<dyn Loan<A, R>>,
    ) -> Self {
        PutOff { pe: pe.clone(), destination, task, is_wanted: AtomicBool::new(false) }
    }

    fn want(&self) -> &dyn Loan<A, R> {
        if self.pe.is_ending() {
            self.task.call_off();
        } else if !self.is_wanted.swap(true, Ordering::Relaxed) {
            self.pe.enqueue(self.destination, self.task.clone());
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

    fn cancel(&self, batch: &mut Batch) {
        self.task.cancel(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_have_ended_are_let_go() {
        let guests = Guests::default();
        let (runnable, waiting) = async_task::spawn(async {}, |_| {});
        let of = |home| TaskId { home: Pe::new(home), future: 7 };
        guests.add(of(1), waiting);
        for _ in 0..10 * Guests::ENDED_MAX {
            let (runnable, ended) = async_task::spawn(async {}, |_| {});
            runnable.run();
            guests.add(of(2), ended);
            assert!(guests.register().tasks.len() <= Guests::ENDED_MAX + 2);
        }
        assert!(!guests.tidy(), "one waits");
        assert_eq!(guests.register().tasks.len(), 1);
        guests.stop(|task| task == of(1));
        assert!(guests.tidy());
        drop(runnable);
    }
}
