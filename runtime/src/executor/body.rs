//! Calling a task's function.

use super::caught::{caught, discard_with};
use super::context::{Context, Portable};
use super::future::stopping;
use super::processor::Processor;
use crate::code::Stateless;
use crate::error::TaskError;
use async_task::Task;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use ultramarine_topology::Pe;

/// A function that a task runs on its argument.
pub(super) trait Body<A>: Stateless {
    /// What the task's future ends with.
    type Output: Portable;

    /// The function's name, for people to read.
    fn name() -> &'static str;

    /// Begins the task on this thread, on behalf of `home`; what it spawns is supervised or not.
    /// `done` is called with the result once there is one: before this returns, or later on any
    /// worker of this PE. Then the task is returned, and is stopped when it is dropped.
    fn run<D>(
        self,
        pe: &Arc<Processor>,
        home: Pe,
        is_supervised: bool,
        argument: A,
        done: D,
    ) -> Option<Task<()>>
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

    fn run<D>(
        self,
        pe: &Arc<Processor>,
        _home: Pe,
        _is_supervised: bool,
        argument: A,
        done: D,
    ) -> Option<Task<()>>
    where
        D: FnOnce(&Arc<Processor>, Result<R, TaskError>) + Send + 'static,
    {
        let result = caught(|| (self.0)(argument));
        done(pe, result.map_err(|message| TaskError::Panicked { pe: pe.me(), message }));
        None
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

    fn run<D>(
        self,
        pe: &Arc<Processor>,
        home: Pe,
        is_supervised: bool,
        argument: A,
        done: D,
    ) -> Option<Task<()>>
    where
        D: FnOnce(&Arc<Processor>, Result<T::Output, TaskError>) + Send + 'static,
    {
        let end = End { pe: pe.clone(), done: Some(done), result: PhantomData };
        let cx = Context::of(pe, home, is_supervised);
        match caught(|| (self.0)(cx, argument)) {
            Err(message) => {
                end.with(Err(TaskError::Panicked { pe: pe.me(), message }));
                None
            }
            Ok(future) => {
                let future = CatchPanic::new(pe.me(), future);
                pe.run_async(async move { end.with(future.await) })
            }
        }
    }
}

/// Sees to it that a task which is dropped before its end has one all the same: the job is
/// shutting down, or the PE that waits for the task has died.
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
            if !self.pe.is_ending() {
                self.pe.orphans.fetch_add(1, Ordering::Relaxed);
            }
            done(&self.pe, Err(TaskError::ShuttingDown));
        }
    }
}

pin_project_lite::pin_project! {
    /// A task's own future: turns a panic inside it into an error, and has the futures in it
    /// abandoned if it is dropped before its end. If it panics when it is dropped, that makes no
    /// difference.
    pub(super) struct CatchPanic<T> {
        pe: Pe,
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
        CatchPanic { pe, future: Some(future) }
    }
}

impl<T: std::future::Future> std::future::Future for CatchPanic<T> {
    type Output = Result<T::Output, TaskError>;

    /// # Panics
    ///
    /// If polled again after it was ready, which `.await` never does.
    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
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
