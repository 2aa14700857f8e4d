//! Where the result of a task goes.

use super::arrival::{end_guest, message_failed};
use super::portable::Portable;
use super::site::Site;
use crate::code::Name;
use crate::error::TaskError;
use crate::protocol::TaskId;
use std::sync::Arc;

/// The end of a task that may wait. If it is dropped before, the task ends with
/// [`TaskError::ShuttingDown`]: the job is ending, or the task is not wanted any more.
pub(crate) struct End<S: Site, R: Portable>(Option<Goal<S, R>>);

enum Goal<S, R> {
    /// A future on this PE.
    Here(Arc<dyn Settle<R>>),
    /// The PE from which the task came. A message has no task, and no PE waits for its end.
    Away { site: Arc<S>, function: Name, task: Option<TaskId> },
    /// A callback.
    Then(Box<dyn FnOnce(Result<R, TaskError>) + Send>),
}

/// A future on this PE, as its task sees it.
pub(crate) trait Settle<R>: Send + Sync {
    /// Ends the future.
    fn settle(&self, result: Result<R, TaskError>);
}

impl<S: Site, R: Portable> End<S, R> {
    /// The result ends this future.
    pub(crate) fn here(future: Arc<dyn Settle<R>>) -> Self {
        End(Some(Goal::Here(future)))
    }

    /// The result goes home, unless this is a message.
    pub(crate) fn away(site: &Arc<S>, function: Name, task: Option<TaskId>) -> Self {
        End(Some(Goal::Away { site: site.clone(), function, task }))
    }

    /// The result goes to a callback.
    pub(crate) fn then(callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) -> Self {
        End(Some(Goal::Then(Box::new(callback))))
    }

    pub(crate) fn end_with(mut self, result: Result<R, TaskError>) {
        self.end_once_with(result);
    }

    fn end_once_with(&mut self, result: Result<R, TaskError>) {
        match self.0.take() {
            Some(Goal::Here(future)) => future.settle(result),
            Some(Goal::Away { site, function, task: Some(task) }) => {
                end_guest(&*site, function(), task, result);
            }
            Some(Goal::Away { site, function, task: None }) => {
                result.err().iter().for_each(|error| message_failed(&*site, function(), error));
            }
            Some(Goal::Then(callback)) => callback(result),
            None => {}
        }
    }
}

impl<S: Site, R: Portable> Drop for End<S, R> {
    fn drop(&mut self) {
        self.end_once_with(Err(TaskError::ShuttingDown));
    }
}
