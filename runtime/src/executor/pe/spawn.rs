//! How tasks get into queues or to other PEs, and how workers are called.

use super::processor::{Processor, Task as Waiting};
use super::standby::Urgent;
use super::worker::{help, turn_while_placing, work, work_if_idle};
use crate::executor::engine::site::Outgoing;
use crate::executor::schedule::queues::Ready;
use crate::executor::schedule::standby::{is_standby, is_urgent};
use crate::executor::task::start::{Effort, Packed};
use crate::protocol::Message;
use async_task::{Runnable, Task};
use std::pin::Pin;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// What a task runs that may wait. It is in a box so that the machinery of tasks is compiled once:
/// its copies were a quarter of the code that a program of many tasks gave to the compiler. (Of
/// 450 ns for a task that is spawned and awaited the box takes 7.)
type BoxedFuture = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// Where a task waits for a worker.
#[derive(Clone, Copy)]
pub(crate) enum Destination {
    /// Here, on the shelf of its radius.
    Shelf(usize),
    /// On this PE only.
    On(Pe),
    /// On this PE only, before all other tasks.
    First(Pe),
}

impl Processor {
    /// Puts a task where it waits for a worker, and calls one.
    pub(crate) fn enqueue(self: &Arc<Self>, destination: Destination, task: Waiting) {
        match destination {
            Destination::On(pe) | Destination::First(pe) if pe != self.me() => {
                let is_first = matches!(destination, Destination::First(_));
                if let Some(Packed::Own(task)) = task.pack(self, Effort::Full) {
                    self.send_later(if is_first {
                        Outgoing::Ask(pe, task)
                    } else {
                        Outgoing::Task(pe, task)
                    });
                    turn_while_placing(self);
                }
                return;
            }
            Destination::On(_) => self.queues.place(task),
            Destination::First(_) => {
                self.queues.place_first(Arc::new(Urgent(task)));
            }
            Destination::Shelf(shelf) => {
                let is_worker = self.queues.push(shelf, task);
                self.wake_worker_from(is_worker);
                return;
            }
        }
        self.wake_worker();
    }

    /// Runs a future as a task of this PE. It starts now if the calling thread runs tasks. If it
    /// does not end at once, the task is returned; dropping that stops it.
    pub(crate) fn run_async<T>(self: &Arc<Self>, future: T) -> Option<Task<()>>
    where
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        if self.queues.is_worker() || is_standby() {
            return self.run_async_here(future);
        }
        let (runnable, task) = self.make_task(Box::pin(future));
        self.resume(runnable);
        Some(task)
    }

    /// The same, on a thread that is known to run tasks.
    pub(crate) fn run_async_here<T>(self: &Arc<Self>, future: T) -> Option<Task<()>>
    where
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        self.run_boxed(Box::pin(future))
    }

    fn run_boxed(self: &Arc<Self>, future: BoxedFuture) -> Option<Task<()>> {
        let (runnable, task) = self.make_task(future);
        runnable.run();
        if task.is_finished() {
            task.detach();
            return None;
        }
        Some(task)
    }

    fn make_task(self: &Arc<Self>, future: BoxedFuture) -> (Runnable, Task<()>) {
        let (pe, is_urgent) = (self.clone(), is_urgent());
        let again = move |runnable| {
            if is_urgent { pe.resume_first(runnable) } else { pe.resume(runnable) }
        };
        async_task::spawn(future, again)
    }

    pub(crate) fn resume(self: &Arc<Self>, runnable: Runnable) {
        if self.is_closed() {
            return;
        }
        // This is done even while the job ends and no task is resumed: so they are dropped one by
        // one. Dropped here, a future might wake the next, and so on, ever deeper.
        self.queues.push_ready(Ready::Task(runnable));
        if !self.is_ending() {
            self.wake_worker();
        }
    }

    /// Leaves a message for the next turn to send, unless the job ends.
    pub(crate) fn send_message(&self, to: Pe, message: Message) {
        if !self.is_ending() {
            self.send_later(Outgoing::Message(to, message));
        }
    }

    pub(crate) fn send_later(&self, outgoing: Outgoing) {
        self.turns.outbox().push(outgoing);
        if self.is_closed() {
            self.turns.end_outbox();
        } else if !self.queues.is_worker() {
            self.nudge();
        }
    }

    /// Calls another worker, if one has no work. Returns whether one was called.
    pub(crate) fn wake_worker(self: &Arc<Self>) -> bool {
        self.wake_worker_from(self.settings.threads == 1 && self.queues.is_worker())
    }

    /// The same, for a thread of which it is known whether it is a worker.
    fn wake_worker_from(self: &Arc<Self>, is_worker: bool) -> bool {
        if is_worker && self.settings.threads == 1 {
            // The only worker is the caller. It will look into the queues again.
            return false;
        }
        self.crew.call(self.lost_workers(), || {
            let pe = self.clone();
            move || work(&pe)
        })
    }

    /// Called now and then by the driver: calls workers if tasks wait.
    pub(crate) fn wake_workers_if_needed(self: &Arc<Self>) {
        if self.queues.is_empty() {
            return;
        }
        let has_resting = self.crew.has_resting(self.lost_workers());
        if self.crew.take_declined() && has_resting {
            self.wake_all_workers();
        } else if !self.wake_worker() && self.queues.can_resume() {
            // All workers are active. But one may only wait for another, in rayon's `join`.
            self.crew.call_for_help(|| {
                let pe = self.clone();
                move || help(&pe)
            });
        }
    }

    /// Calls all workers. Some cannot come, since they wait in rayon's `join`, and rayon may have
    /// called one of these first.
    pub(crate) fn wake_all_workers(self: &Arc<Self>) {
        let pe = self.clone();
        self.crew.call_all(move || work_if_idle(&pe));
    }

    /// Counts one more worker as active. Returns false if all are.
    pub(crate) fn try_add_active(&self) -> bool {
        self.crew.try_add_active(self.lost_workers())
    }

    /// Active workers that MPI keeps.
    pub(super) fn lost_workers(&self) -> usize {
        self.turns.mpi_gate.lost_workers()
    }
}
