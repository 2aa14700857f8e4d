//! Calling a task's function.

use super::activity::goes_into;
use super::caught::{caught, discard_with};
use super::future::stopping;
use super::origin::Origin;
use super::portable::Portable;
use super::site::Site;
use crate::code::Stateless;
use crate::error::TaskError;
use async_task::Task;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_topology::Pe;

/// A function that a task runs on its argument, on a PE of this kind.
pub(crate) trait Body<S: Site, A>: Stateless {
    /// What the task's future ends with.
    type Output: Portable;

    /// The function's name, for people to read.
    fn name() -> &'static str;

    /// Whether it may wait, and does not just compute.
    const MAY_WAIT: bool;

    /// Runs the task on this thread, which runs tasks. One that may wait first says what it
    /// `begins` with: whose it is, and what is called with its result once there is one, before
    /// this returns or later on any worker of this PE.
    fn run<D>(
        self,
        pe: &Arc<S>,
        argument: A,
        begins: impl FnOnce() -> (Origin, D),
    ) -> Run<Self::Output>
    where
        D: FnOnce(Result<Self::Output, TaskError>) + Send + 'static;
}

/// How far a task has come.
pub(crate) enum Run<R> {
    /// It only computed.
    Computed(Result<R, TaskError>),
    /// It might have waited, and its result was taken.
    Ended,
    /// It waits for something, and is stopped when this is dropped.
    Waits(Task<()>),
}

impl<R> Run<R> {
    /// Of one that was begun.
    pub(crate) fn of(waiting: Option<Task<()>>) -> Self {
        waiting.map_or(Run::Ended, Run::Waits)
    }
}

/// A function that computes and returns.
#[derive(Clone, Copy)]
pub(crate) struct Plain<F>(pub(crate) F);

impl<S, F, A, R> Body<S, A> for Plain<F>
where
    S: Site,
    F: Fn(A) -> R + Stateless,
    A: 'static,
    R: Portable,
{
    type Output = R;
    const MAY_WAIT: bool = false;

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(self, pe: &Arc<S>, argument: A, _: impl FnOnce() -> (Origin, D)) -> Run<R> {
        let result = caught(|| (self.0)(argument));
        Run::Computed(result.map_err(|message| TaskError::Panicked { pe: pe.me(), message }))
    }
}

/// Sees to it that a task which is dropped before its end has one all the same: the job is
/// shutting down, or the task is not wanted any more.
pub(crate) struct Ending<R, D: FnOnce(Result<R, TaskError>)> {
    done: Option<D>,
    result: PhantomData<fn(R)>,
}

impl<R, D: FnOnce(Result<R, TaskError>)> Ending<R, D> {
    pub(crate) fn of(done: D) -> Self {
        Ending { done: Some(done), result: PhantomData }
    }

    pub(crate) fn with(mut self, result: Result<R, TaskError>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl<R, D: FnOnce(Result<R, TaskError>)> Drop for Ending<R, D> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(TaskError::ShuttingDown));
        }
    }
}

pin_project_lite::pin_project! {
    /// A task's own future: turns a panic inside it into an error, and has the futures in it
    /// abandoned if it is dropped before its end. If it panics when it is dropped, that makes no
    /// difference.
    pub(crate) struct CatchPanic<T> {
        pe: Pe,
        // Whether it goes on, after its start has noted what runs.
        is_resumed: bool,
        // Until it has ended.
        #[pin]
        future: Option<T>,
    }

    impl<T> PinnedDrop for CatchPanic<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut future = this.project().future;
            if future.is_some() {
                stopping(|| discard_with(|| future.set(None)));
            }
        }
    }
}

impl<T> CatchPanic<T> {
    pub(crate) fn new(pe: Pe, future: T) -> Self {
        CatchPanic { pe, is_resumed: false, future: Some(future) }
    }

    /// The same for the main task, which is not started like others.
    pub(crate) fn of_main(pe: Pe, future: T) -> Self {
        CatchPanic { pe, is_resumed: true, future: Some(future) }
    }
}

impl<T: std::future::Future> std::future::Future for CatchPanic<T> {
    type Output = Result<T::Output, TaskError>;

    /// # Panics
    ///
    /// If polled again after it was ready, which `.await` never does.
    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if std::mem::replace(this.is_resumed, true) {
            goes_into(Some(std::any::type_name::<T>));
        }
        let result = match this.future.as_mut().as_pin_mut().map(|f| caught(|| f.poll(cx))) {
            Some(Ok(Poll::Pending)) => return Poll::Pending,
            Some(Ok(Poll::Ready(value))) => Ok(value),
            Some(Err(message)) => Err(TaskError::Panicked { pe: *this.pe, message }),
            None => panic!("a future is polled again after it has ended"),
        };
        discard_with(|| this.future.set(None));
        Poll::Ready(result)
    }
}
