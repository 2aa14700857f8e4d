//! Calling a task's function.

use super::caught::{caught, discard_with};
use super::context::{Context, Portable};
use super::future::stopping;
use super::processor::Processor;
use super::queues::goes_into;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::protocol::TaskId;
use async_task::Task;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_topology::Pe;

/// A function that a task runs on its argument.
pub(super) trait Body<A>: Stateless {
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
        pe: &Arc<Processor>,
        argument: A,
        begins: impl FnOnce() -> (Origin, D),
    ) -> Run<Self::Output>
    where
        D: FnOnce(Result<Self::Output, TaskError>) + Send + 'static;
}

/// How far a task has come.
pub(super) enum Run<R> {
    /// It only computed.
    Computed(Result<R, TaskError>),
    /// It might have waited, and its result was taken.
    Ended,
    /// It waits for something, and is stopped when this is dropped.
    Waits(Task<()>),
}

impl<R> Run<R> {
    /// Of one that was begun.
    pub(super) fn of(waiting: Option<Task<()>>) -> Self {
        waiting.map_or(Run::Ended, Run::Waits)
    }
}

/// Whose a task is.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// The task itself, for others to cancel it.
    pub(super) task: TaskId,
    /// The PE that waits for it, or for the one on this PE from which it descends.
    pub(super) home: Pe,
    /// Whether what it spawns is supervised.
    pub(super) is_supervised: bool,
}

/// A function that computes and returns.
#[derive(Clone, Copy)]
pub(super) struct Plain<F>(pub(super) F);

impl<F, A, R> Body<A> for Plain<F>
where
    F: Fn(A) -> R + Stateless,
    A: 'static,
    R: Portable,
{
    type Output = R;
    const MAY_WAIT: bool = false;

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(self, pe: &Arc<Processor>, argument: A, _: impl FnOnce() -> (Origin, D)) -> Run<R> {
        let result = caught(|| (self.0)(argument));
        Run::Computed(result.map_err(|message| TaskError::Panicked { pe: pe.me(), message }))
    }
}

/// An async function, which may spawn and await tasks of its own.
#[derive(Clone, Copy)]
pub(super) struct Async<F>(pub(super) F);

impl<F, A, T> Body<A> for Async<F>
where
    F: Fn(Context, A) -> T + Stateless,
    A: 'static,
    T: std::future::Future + Send + 'static,
    T::Output: Portable,
{
    type Output = T::Output;
    const MAY_WAIT: bool = true;

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(
        self,
        pe: &Arc<Processor>,
        argument: A,
        begins: impl FnOnce() -> (Origin, D),
    ) -> Run<T::Output>
    where
        D: FnOnce(Result<T::Output, TaskError>) + Send + 'static,
    {
        let (origin, done) = begins();
        let end = End { done: Some(done), result: PhantomData };
        let cx = Context::of(pe, origin);
        match caught(|| (self.0)(cx, argument)) {
            Err(message) => {
                end.with(Err(TaskError::Panicked { pe: pe.me(), message }));
                Run::Ended
            }
            Ok(future) => {
                let future = CatchPanic::new(pe.me(), future);
                Run::of(pe.run_async_here(async move { end.with(future.await) }))
            }
        }
    }
}

/// Sees to it that a task which is dropped before its end has one all the same: the job is
/// shutting down, or the task is not wanted any more.
struct End<R, D: FnOnce(Result<R, TaskError>)> {
    done: Option<D>,
    result: PhantomData<fn(R)>,
}

impl<R, D: FnOnce(Result<R, TaskError>)> End<R, D> {
    fn with(mut self, result: Result<R, TaskError>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl<R, D: FnOnce(Result<R, TaskError>)> Drop for End<R, D> {
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
    pub(super) struct CatchPanic<T> {
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
    pub(super) fn new(pe: Pe, future: T) -> Self {
        CatchPanic { pe, is_resumed: false, future: Some(future) }
    }

    /// The same for the main task, which is not started like others.
    pub(super) fn of_main(pe: Pe, future: T) -> Self {
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
