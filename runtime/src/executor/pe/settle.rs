//! What is done with results that have come: outside the engine's lock, since it decodes them and
//! wakes those who wait, with code of the user's.

use super::processor::Processor;
use crate::executor::engine::host::Results;
use crate::executor::task::start::Fill;
use crate::protocol::Outcome;
use std::cell::Cell;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A list of results that was emptied is used again if it has room for no more than this: to grow
/// one from nothing in each turn took some 8 % of the time of who places tasks.
const SPARE_RESULTS_MAX: usize = 4096;

thread_local! {
    static SPARE: Cell<Results> = const { Cell::new(Results::new()) };
}

/// An empty list for the results of this thread's turn.
pub(crate) fn spare_list() -> Results {
    SPARE.take()
}

fn spare(results: Results) {
    if results.capacity() <= SPARE_RESULTS_MAX {
        SPARE.set(results);
    }
}

impl Processor {
    /// Ends futures, those first that were left before.
    pub(crate) fn settle_all(self: &Arc<Self>, mut results: Results) {
        let unsettled = std::mem::take(&mut *self.unsettled());
        unsettled
            .into_iter()
            .chain(results.drain(..))
            .for_each(|(future, outcome)| self.settle(future, outcome));
        spare(results);
    }

    /// Leaves results to the next turn.
    pub(crate) fn settle_later(&self, mut results: Results) {
        if !results.is_empty() {
            self.unsettled().append(&mut results);
            self.nudge();
        }
        spare(results);
    }

    fn unsettled(&self) -> MutexGuard<'_, Results> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a future. A worker does that if the value is long and has to be decoded: the calling
    /// thread may be the only one that looks after messages.
    fn settle(self: &Arc<Self>, future: Arc<dyn Fill>, outcome: Outcome) {
        let is_long = outcome.as_ref().is_ok_and(|value| value.many.is_some());
        if is_long && future.is_decoded() && !self.queues.is_worker() && !self.is_ending() {
            let pe = self.clone();
            let settle = async move { future.fill(outcome) };
            let again = move |runnable| pe.resume_first(runnable);
            let (runnable, task) = async_task::spawn(settle, again);
            task.detach();
            self.resume_first(runnable);
        } else {
            future.fill(outcome);
        }
    }
}
