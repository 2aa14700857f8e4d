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
use crate::executor::task::site::Site;
use crate::executor::task::travel::DelayedStart;
use std::sync::Arc;

/// Counts a task that waits for values which are being fetched.
struct OnItsWay(Arc<Processor>);

impl OnItsWay {
    fn new(pe: &Arc<Processor>) -> Self {
        pe.guests.add_without_values();
        OnItsWay(pe.clone())
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.guests.remove_without_values();
    }
}

impl Processor {
    /// Puts a task back into the queues when the values for which it waits have arrived. Until then
    /// the PE counts it as work that it has, if the values are being fetched: otherwise it would
    /// steal more tasks that wait for the same values. (400 tasks with a value of 128 MiB on two
    /// PEs: 163–435 ms without that.) While a value has yet to be made, the PE looks for other
    /// work.
    pub(crate) fn put_back_later(self: &Arc<Self>, guest: Guest, delayed: DelayedStart) {
        self.counts.leave_out_start();
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
        waiting.into_iter().for_each(|waiting| self.keep_guest(id, waiting));
    }
}
