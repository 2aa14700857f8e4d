//! Tasks from other PEs that run here.
//!
//! A task whose home has died is an *orphan*: no PE wants its result, and its replica does the same
//! work again elsewhere. It is stopped where it awaits something, and with it the tasks that only
//! it waits for (see [`Promise::cancel`](crate::executor::task::future::Promise::cancel)). A task
//! that it spawns before that is [deferred](super::deferred). A function that only computes runs to
//! its end.

use super::processor::Processor;
use crate::executor::schedule::standby::urgently;
use crate::executor::task::arrival::report;
use crate::executor::task::caught::discard;
use crate::executor::task::guest::Guest;
use crate::executor::task::travel::DelayedStart;
use crate::protocol::TaskId;
use async_task::Task;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::Pe;

/// Counts a task that waits for values which are being fetched.
struct OnItsWay(Arc<Processor>);

impl OnItsWay {
    fn new(pe: &Arc<Processor>) -> Self {
        pe.waiting_for_values.fetch_add(1, Ordering::Relaxed);
        OnItsWay(pe.clone())
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.waiting_for_values.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Processor {
    /// Keeps a task that has started here and waits for something. It is stopped if its home dies
    /// or cancels it.
    pub(crate) fn enter_guest(&self, id: TaskId, task: Task<()>) {
        self.guests.add(id, task);
        // Either this sees the death or the cancellation, or the thread that handles that sees the
        // task.
        if self.is_dead(id.home) {
            self.stop_orphans(id.home);
        } else if self.cancelled.contains(id) {
            self.guests.stop(|task| task == id);
        }
    }

    /// Removes what is left of ended guests, while nothing runs here.
    pub(crate) fn tidy_guests(&self) {
        if self.guests.tidy() {
            self.cancelled.clear();
        }
    }

    /// Stops the tasks that a dead PE was waiting for.
    pub(crate) fn stop_orphans(&self, dead: Pe) {
        self.guests.stop(|task| task.home == dead);
    }

    /// Puts a task back into the queues when the values for which it waits have arrived. Until then
    /// the PE counts it as work that it has, if the values are being fetched: otherwise it would
    /// steal more tasks that wait for the same values. (400 tasks with a value of 128 MiB on two
    /// PEs: 163–435 ms without that.) While a value has yet to be made, the PE looks for other
    /// work.
    pub(crate) fn put_back_later(self: &Arc<Self>, guest: Guest, delayed: DelayedStart) {
        self.uncounted.fetch_add(1, Ordering::SeqCst);
        let (id, here) = (guest.parcel.task, self.clone());
        let on_its_way = delayed.pending.is_made.then(|| OnItsWay::new(self));
        let wait = async move {
            let came = delayed.pending.arrival.await;
            drop(on_its_way);
            match came {
                Err(error) => report(&*here, id, Err(error)),
                Ok(()) if guest.is_placed => here.queues.place(Arc::new(guest)),
                Ok(()) => {
                    let shelf = here.queues.radii.shelf(guest.parcel.radius);
                    here.queues.push(shelf, Arc::new(guest));
                }
            }
            here.wake_worker();
            discard(delayed.argument);
        };
        let waiting = urgently(|| self.run_async(wait));
        waiting.into_iter().for_each(|waiting| self.enter_guest(id, waiting));
    }

    /// The PE `home` has cancelled these of its tasks.
    pub(crate) fn stop_cancelled(&self, home: Pe, futures: &[u64]) {
        self.cancelled.insert(home, futures);
        self.guests.stop(|task| task.home == home && self.cancelled.contains(task));
    }
}
