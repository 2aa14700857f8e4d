//! Tasks from other PEs that run here, by the PEs that wait for them.
//!
//! A task whose home has died is an *orphan*: its result goes nowhere, and its replica does the
//! same work again elsewhere. It is stopped where it awaits something, and with it what only it
//! waits for (see [`Promise::cancel`](crate::executor::task::future::Promise::cancel)). What it
//! spawns before that is [put off](super::put_off). A function that only computes runs to its end.

use super::processor::Processor;
use crate::executor::schedule::standby::urgently;
use crate::executor::task::arrival::report;
use crate::executor::task::caught::discard;
use crate::executor::task::guest::Guest;
use crate::executor::task::travel::Late;
use crate::protocol::TaskId;
use async_task::Task;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::Pe;

/// A task that waits for values which are on their way.
struct OnItsWay(Arc<Processor>);

impl OnItsWay {
    fn new(pe: &Arc<Processor>) -> Self {
        pe.late.fetch_add(1, Ordering::Relaxed);
        OnItsWay(pe.clone())
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Processor {
    /// A task that has begun here waits for something. It is stopped if its home dies, or cancels
    /// it.
    pub(crate) fn enter_guest(&self, id: TaskId, task: Task<()>) {
        self.guests.add(id, task);
        // Either this sees what has happened, or who sees to that sees the task.
        if self.is_dead(id.home) {
            self.stop_orphans(id.home);
        } else if self.cancelled.contains(id) {
            self.guests.stop(|task| task == id);
        }
    }

    /// Lets go of what is left of guests, while nothing runs here.
    pub(crate) fn tidy_guests(&self) {
        if self.guests.tidy() {
            self.cancelled.clear();
        }
    }

    /// Stops the tasks that a dead PE had waited for.
    pub(crate) fn stop_orphans(&self, dead: Pe) {
        self.guests.stop(|task| task.home == dead);
    }

    /// Puts a task back, for any PE to take, when the values are there that it waits for. Until
    /// then the PE counts it among those that it has to do, if the values are on their way: else it
    /// would go on to steal tasks that wait for the same. (400 tasks with a value of 128 MiB on two
    /// PEs: 163–435 ms without that.) For a value that has yet to be made it looks for other work.
    pub(crate) fn put_back_later(self: &Arc<Self>, guest: Guest, late: Late) {
        self.uncounted.fetch_add(1, Ordering::SeqCst);
        let (id, here) = (guest.parcel.task, self.clone());
        let on_its_way = late.coming.is_made.then(|| OnItsWay::new(self));
        let wait = async move {
            let came = late.coming.end.await;
            drop(on_its_way);
            match came {
                Err(error) => report(&*here, Some(id), Err(error)),
                Ok(()) if guest.is_placed => here.queues.place(Arc::new(guest)),
                Ok(()) => {
                    let shelf = here.queues.radii.shelf(guest.parcel.radius);
                    here.queues.push(shelf, Arc::new(guest));
                }
            }
            here.summon();
            discard(late.argument);
        };
        let waiting = urgently(|| self.run_async(wait));
        waiting.into_iter().for_each(|waiting| self.enter_guest(id, waiting));
    }

    /// Another PE does not want these tasks of its own any more.
    pub(crate) fn stop_cancelled(&self, home: Pe, futures: &[u64]) {
        self.cancelled.insert(home, futures);
        self.guests.stop(|task| task.home == home && self.cancelled.contains(task));
    }
}
