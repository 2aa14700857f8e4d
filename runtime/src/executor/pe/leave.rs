//! How a PE leaves the job.

use crate::executor::engine::liveness::Liveness;
use std::sync::Arc;
use std::time::Duration;

/// After the first goodbye, `MPI_Finalize` is given this long in the other processes. It has ended
/// in all of them at about that time (with a load of 150 on each core, some seconds later); or
/// somebody has died, and went unnoticed by those who wait in it.
const GOODBYES_WITHIN: Duration = Duration::from_secs(15);

/// How a PE left the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// All PEs took leave of each other, and all messages arrived.
    Orderly,
    /// Somebody has died on the way, and the others left as soon as they could: collective
    /// operations are out of the question.
    AfterFailures,
    /// Some PE did not answer in time (`shutdown_grace`), or this one could not go on: collective
    /// operations are out of the question.
    Hasty,
}

/// What is left when a PE has left the job.
#[must_use = "the others take this PE for dead unless it says goodbye"]
pub struct Parting {
    /// How it left.
    pub leave: Leave,
    pub(crate) liveness: Option<Arc<Liveness>>,
}

impl Parting {
    /// Whether the others can be expected to take part in something collective, after an orderly
    /// leave: no PE is known to have died, and it is not more than 15 s ago that
    /// somebody said goodbye, which nobody does before that is done. (Of a death in the very last
    /// moment some may not hear any more.)
    pub fn are_others_there(&self) -> bool {
        self.liveness.as_ref().is_none_or(|liveness| liveness.are_others_there(GOODBYES_WITHIN))
    }

    /// Tells those who watch this PE that it leaves in order, and ends its own watch.
    pub fn goodbye(mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(true));
    }
}

/// Without a goodbye: the others are to hold this PE for dead.
impl Drop for Parting {
    fn drop(&mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(false));
    }
}
