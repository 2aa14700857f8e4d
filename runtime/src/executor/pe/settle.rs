//! Filling futures with results that have arrived: after the engine's lock is released, since that
//! decodes the results and wakes the tasks that wait, with user code.

use super::processor::Processor;
use crate::error::TaskError;
use crate::executor::engine::host::Results;
use crate::executor::task::activity::counts_ends;
use crate::executor::task::start::Fill;
use crate::protocol::Outcome;
use std::cell::Cell;
use std::sync::Arc;

/// An emptied list of results is used again if it has room for no more than this. Growing one from
/// nothing in each turn took some 8 % of the time of a thread that places tasks.
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
    /// Fills futures; those left over come first.
    pub(crate) fn settle_all(self: &Arc<Self>, mut results: Results) {
        self.turns
            .take_unsettled()
            .into_iter()
            .chain(results.drain(..))
            .for_each(|(future, outcome)| self.settle(future, outcome));
        spare(results);
    }

    /// Leaves results to the next turn.
    pub(crate) fn settle_later(&self, mut results: Results) {
        if !results.is_empty() {
            self.turns.add_unsettled(&mut results);
            self.nudge();
        }
        spare(results);
    }

    /// Fills a future. A long value that must be decoded is left to a worker: the calling thread
    /// may be the only one that handles messages.
    fn settle(self: &Arc<Self>, future: Arc<dyn Fill>, outcome: Outcome) {
        let has_ended = !matches!(outcome, Err(TaskError::Cancelled | TaskError::ShuttingDown));
        if counts_ends() && has_ended && future.is_counted() {
            self.counts.add_ended_elsewhere(1);
        }
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
