//! Where the result of a task goes.

use crate::error::TaskError;
use std::sync::Arc;

/// The end of a task that may wait. If it is dropped before, the task ends with
/// [`TaskError::ShuttingDown`]: the job is ending, or the task is not wanted any more.
pub(crate) struct End<R>(Option<Arc<dyn Settle<R>>>);

/// What waits for the result of a task.
pub(crate) trait Settle<R>: Send + Sync {
    /// Takes the result. Called once.
    fn settle(&self, result: Result<R, TaskError>);
}

impl<R> End<R> {
    pub(crate) fn new(waiting: Arc<dyn Settle<R>>) -> Self {
        End(Some(waiting))
    }

    pub(crate) fn end_with(mut self, result: Result<R, TaskError>) {
        if let Some(waiting) = self.0.take() {
            waiting.settle(result);
        }
    }
}

impl<R> Drop for End<R> {
    fn drop(&mut self) {
        if let Some(waiting) = self.0.take() {
            waiting.settle(Err(TaskError::ShuttingDown));
        }
    }
}
