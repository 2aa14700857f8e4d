//! The tasks of other PEs that wait here for something, and what was cancelled.

use crate::executor::task::cancel::Cancelled;
use crate::lock::Lock;
use crate::protocol::TaskId;
use async_task::Task;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_topology::Pe;

/// The guests of a PE that wait for something, and the cancelled tasks that the PE knows of.
#[derive(Default)]
pub(crate) struct Guests {
    register: Lock<Register>,
    cancelled: Cancelled,
    /// The number of tasks that cannot start before values arrive that are being fetched.
    without_values: AtomicUsize,
}

#[derive(Default)]
struct Register {
    /// Some of these have ended meanwhile.
    tasks: Vec<(TaskId, Task<()>)>,
    /// Ended tasks are removed when there are this many.
    full_at: usize,
    /// The PE has left the job: a task that begins to wait now is stopped at once.
    is_closed: bool,
}

impl Guests {
    /// At most this number of ended tasks is kept, plus as many as waited at the last removal.
    const ENDED_MAX: usize = 64;

    /// The cancelled tasks that the PE knows of.
    #[inline]
    pub(crate) fn cancelled(&self) -> &Cancelled {
        &self.cancelled
    }

    /// The PE `home` has cancelled these of its tasks.
    pub(crate) fn cancel(&self, home: Pe, futures: &[u64]) {
        self.cancelled.insert(home, futures);
        self.stop(|task| task.home == home && self.cancelled.contains(task));
    }

    /// Stops the tasks of a PE.
    pub(crate) fn stop_those_of(&self, home: Pe) {
        self.stop(|task| task.home == home);
    }

    /// The number of tasks that cannot start before values arrive that are being fetched.
    pub(crate) fn without_values(&self) -> usize {
        self.without_values.load(Ordering::Relaxed)
    }

    /// One more of these waits.
    pub(crate) fn add_without_values(&self) {
        self.without_values.fetch_add(1, Ordering::Relaxed);
    }

    /// The values of one of them have arrived.
    pub(crate) fn remove_without_values(&self) {
        self.without_values.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds a task that waits for something, unless it is cancelled. Most tasks never wait, and so
    /// are never entered: that was a tenth of the work of a small one.
    pub(crate) fn add(&self, id: TaskId, task: Task<()>) {
        let mut register = self.register.lock();
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
        drop(register);
        // Either this sees the cancellation, or the thread that handles that sees the task.
        if self.cancelled.contains(id) {
            self.stop(|task| task == id);
        }
    }

    /// Stops the tasks that `which` selects. Workers drop them one by one.
    fn stop(&self, which: impl Fn(TaskId) -> bool) {
        let mut register = self.register.lock();
        let stopped: Vec<_> = register.tasks.extract_if(.., |(id, _)| which(*id)).collect();
        drop(register);
        // After the lock: this schedules them.
        drop(stopped);
    }

    /// Removes ended tasks, while nothing runs on the PE. If none is left, nothing is cancelled any
    /// more. Returns whether that is so.
    pub(crate) fn tidy(&self) -> bool {
        let mut register = self.register.lock();
        register.tasks.retain(|(_, task)| !task.is_finished());
        register.tasks.shrink_to(Self::ENDED_MAX);
        register.full_at = 2 * register.tasks.len() + Self::ENDED_MAX;
        let is_empty = register.tasks.is_empty();
        drop(register);
        if is_empty {
            self.cancelled.clear();
        }
        is_empty
    }

    /// Stops all tasks, and any that is added later.
    pub(crate) fn clear(&self) {
        self.register.lock().is_closed = true;
        self.stop(|_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_tasks_are_removed() {
        let guests = Guests::default();
        let (runnable, waiting) = async_task::spawn(async {}, |_| {});
        let of = |home| TaskId { home: Pe::new(home), future: 7 };
        guests.add(of(1), waiting);
        for _ in 0..10 * Guests::ENDED_MAX {
            let (runnable, ended) = async_task::spawn(async {}, |_| {});
            runnable.run();
            guests.add(of(2), ended);
            assert!(guests.register.lock().tasks.len() <= Guests::ENDED_MAX + 2);
        }
        assert!(!guests.tidy(), "one waits");
        assert_eq!(guests.register.lock().tasks.len(), 1);
        guests.stop(|task| task == of(1));
        assert!(guests.tidy());
        drop(runnable);
    }

    /// Stops are seen by the runnable, which is dropped then.
    #[test]
    fn the_chosen_tasks_are_stopped_and_in_the_end_all_and_those_that_come() {
        let guests = Guests::default();
        let add = |number| {
            let (stopped, is_stopped) = std::sync::mpsc::channel::<()>();
            let wait = async move {
                std::future::pending::<()>().await;
                drop(stopped);
            };
            let (runnable, task) = async_task::spawn(wait, drop);
            runnable.run();
            guests.add(TaskId { home: Pe::new(number), future: 7 }, task);
            is_stopped
        };
        let stopped = |is_stopped: &std::sync::mpsc::Receiver<()>| {
            is_stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected)
        };
        let [first, second] = [1, 2].map(add);
        guests.stop(|task| task.home == Pe::new(2));
        assert!(stopped(&second) && !stopped(&first));
        guests.clear();
        assert!(stopped(&first));
        assert!(stopped(&add(3)), "all have been stopped");
        assert!(guests.tidy());
    }
}
