//! Calling a task's function.

use super::context::{Context, Portable};
use super::processor::Processor;
use crate::code::Stateless;
use crate::error::TaskError;
use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use ultramarine_topology::Pe;

/// What is kept of a panic's message, so that it can always travel.
const PANIC_MESSAGE_BYTES_MAX: usize = 2000;

/// A function that a task runs on its argument.
pub(super) trait Body<A>: Stateless {
    /// What the task's future ends with.
    type Output: Portable;

    /// The function's name, for people to read.
    fn name() -> &'static str;

    /// Begins the task on this thread. `done` is called with the result once there is one: before
    /// this returns, or later on any worker of this PE.
    fn run<D>(self, pe: &Arc<Processor>, argument: A, done: D)
    where
        D: FnOnce(&Arc<Processor>, Result<Self::Output, TaskError>) + Send + 'static;
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

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(self, pe: &Arc<Processor>, argument: A, done: D)
    where
        D: FnOnce(&Arc<Processor>, Result<R, TaskError>) + Send + 'static,
    {
        let result = catch_unwind(AssertUnwindSafe(|| (self.0)(argument)));
        done(pe, result.map_err(|payload| panicked(pe.me(), payload.as_ref())));
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

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(self, pe: &Arc<Processor>, argument: A, done: D)
    where
        D: FnOnce(&Arc<Processor>, Result<T::Output, TaskError>) + Send + 'static,
    {
        let end = End { pe: pe.clone(), done: Some(done), result: PhantomData };
        match catch_unwind(AssertUnwindSafe(|| (self.0)(Context::of(pe), argument))) {
            Err(payload) => end.with(Err(panicked(pe.me(), payload.as_ref()))),
            Ok(future) => pe.run_async(async move {
                let result = CatchPanic { pe: end.pe.me(), future }.await;
                end.with(result);
            }),
        }
    }
}

/// Sees to it that a task which is dropped before its end has one all the same: the job is
/// shutting down.
struct End<R, D: FnOnce(&Arc<Processor>, Result<R, TaskError>)> {
    pe: Arc<Processor>,
    done: Option<D>,
    result: PhantomData<fn(R)>,
}

impl<R, D: FnOnce(&Arc<Processor>, Result<R, TaskError>)> End<R, D> {
    fn with(mut self, result: Result<R, TaskError>) {
        if let Some(done) = self.done.take() {
            done(&self.pe, result);
        }
    }
}

impl<R, D: FnOnce(&Arc<Processor>, Result<R, TaskError>)> Drop for End<R, D> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(&self.pe, Err(TaskError::ShuttingDown));
        }
    }
}

pin_project_lite::pin_project! {
    /// Turns a panic inside a future into an error.
    pub(super) struct CatchPanic<T> {
        pub(super) pe: Pe,
        #[pin]
        pub(super) future: T,
    }
}

impl<T: std::future::Future> std::future::Future for CatchPanic<T> {
    type Output = Result<T::Output, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (pe, future) = (*this.pe, this.future);
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(poll) => Poll::Ready(Ok(ready!(poll))),
            Err(payload) => Poll::Ready(Err(panicked(pe, payload.as_ref()))),
        }
    }
}

/// The error that a panic's payload stands for.
pub(super) fn panicked(pe: Pe, payload: &(dyn Any + Send)) -> TaskError {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(its payload is not a text)".to_owned());
    let end = message.floor_char_boundary(PANIC_MESSAGE_BYTES_MAX);
    TaskError::Panicked { pe, message: message[..end].to_owned() }
}
