//! The handle by which a spawned task is awaited.

use super::cancel::Batch;
use super::caught::discard_as;
use crate::error::TaskError;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// A task's result, as its future sees it.
pub(crate) trait Promise<R>: Send + Sync {
    /// Returns the result, once. Until it has arrived, `waker` is kept, and woken when it arrives.
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>>;
    /// Whether [`poll`](Promise::poll) would return the result.
    fn is_ready(&self) -> bool;
    /// Cancels the task; the future ends with an error now. What other threads and PEs must hear
    /// about it is added to the batch.
    fn cancel(&self, _: &mut Batch) {}
}

thread_local! {
    /// How many nested drops of unfinished tasks the thread is in.
    static STOPPING: Cell<u32> = const { Cell::new(0) };
}

/// Runs `act`, which drops something unfinished. The tasks whose futures are in it are cancelled.
/// `act` must not panic.
pub(crate) fn stopping(act: impl FnOnce()) {
    STOPPING.set(STOPPING.get() + 1);
    act();
    STOPPING.set(STOPPING.get() - 1);
}

/// Runs another task inside a drop of something unfinished, of which that task is no part. `act`
/// must not panic.
pub(crate) fn not_stopping(act: impl FnOnce()) {
    let outer = STOPPING.replace(0);
    act();
    STOPPING.set(outer);
}

/// The result of a spawned task, which may not have arrived yet (SymGridPar2 §3.2).
///
/// `.await` returns `Ok` with the task's value, or the [`TaskError`] that says why there is none.
/// Every future ends, also when PEs die. Waiting blocks no worker.
///
/// Dropping a future does not stop its task. [`abort`](Future::abort) and [`AbortOnDrop`] do. If a
/// task is stopped, the tasks whose futures it holds are stopped too.
///
/// A future belongs to the PE that spawned the task, and cannot be sent to another PE:
///
/// ```compile_fail
/// # use ultramarine_runtime::executor::{Context, Future};
/// # use ultramarine_topology::Distance;
/// fn send(cx: &Context, future: Future<u64>) -> Future<u64> {
///     cx.spawn(Distance::ONE, async |_, future: Future<u64>| future.await.unwrap(), future)
/// }
/// ```
#[must_use = "a future does nothing by itself: `.await` it for the task's result"]
pub struct Future<R> {
    promise: Arc<dyn Promise<R>>,
}

impl<R> Future<R> {
    pub(crate) fn new(promise: Arc<dyn Promise<R>>) -> Self {
        Future { promise }
    }

    /// Whether the result has arrived, so that `.await` returns at once.
    pub fn is_ready(&self) -> bool {
        self.promise.is_ready()
    }

    /// Cancels the task. This future ends with [`TaskError::Cancelled`], unless the result has
    /// arrived.
    ///
    /// - A task that has not started never starts, wherever it waits.
    /// - A running task is stopped at its next `.await`, and so are the tasks whose futures it
    ///   holds.
    /// - A task that only computes runs to its end, unless it
    ///   [asks](crate::executor::Context::is_cancelled).
    /// - If a task moves between other PEs at this moment, a copy may still run; its result is
    ///   ignored.
    pub fn abort(&self) {
        let mut batch = Batch::default();
        self.promise.cancel(&mut batch);
        batch.send();
    }

    /// [Aborts](Self::abort) many tasks at once, with fewer messages.
    pub fn abort_all<'a>(futures: impl IntoIterator<Item = &'a Future<R>>)
    where
        R: 'a,
    {
        let mut batch = Batch::default();
        futures.into_iter().for_each(|future| future.promise.cancel(&mut batch));
        batch.send();
    }

    /// The result if it has arrived, else the future again.
    pub fn try_get(self) -> Result<Result<R, TaskError>, Self> {
        match self.promise.poll(Waker::noop()) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(self),
        }
    }
}

impl<R> std::future::Future for Future<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    ///
    /// If polled again after it was ready, which `.await` never does.
    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        self.promise.poll(cx.waker())
    }
}

/// A plain drop does not cancel the task; the drop of an unfinished task that holds the future
/// does.
impl<R> Drop for Future<R> {
    fn drop(&mut self) {
        if STOPPING.get() > 0 {
            self.abort();
        }
    }
}

pin_project_lite::pin_project! {
    /// Wraps a future. If this is dropped before its end, the tasks whose futures it holds are
    /// [cancelled](Future::abort).
    ///
    /// ```
    /// # use ultramarine_runtime::executor::{AbortOnDrop, Context};
    /// # use ultramarine_topology::Distance;
    /// # fn begin(cx: &Context) {
    /// let task = AbortOnDrop::new(cx.spawn_fn(Distance::ONE, |n: u64| n * n, 7));
    /// drop(task); // it is not done, unless it has been
    /// # }
    /// ```
    #[must_use = "a future does nothing by itself, and this one cancels what it holds when dropped"]
    pub struct AbortOnDrop<T> {
        // `None` once it has ended.
        #[pin]
        future: Option<T>,
    }

    impl<T> PinnedDrop for AbortOnDrop<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut future = this.project().future;
            if future.is_some() {
                stopping(|| discard_as(std::any::type_name::<T>(), || future.set(None)));
            }
        }
    }
}

impl<T> AbortOnDrop<T> {
    /// Wraps a future.
    pub fn new(future: T) -> Self {
        AbortOnDrop { future: Some(future) }
    }
}

impl<T: std::future::Future> std::future::Future for AbortOnDrop<T> {
    type Output = T::Output;

    /// # Panics
    ///
    /// If polled again after it was ready, which `.await` never does.
    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let mut future = self.project().future;
        let polled = future.as_mut().as_pin_mut().map(|future| future.poll(cx));
        let result = std::task::ready!(polled.expect("a future is polled until it has ended"));
        future.set(None);
        Poll::Ready(result)
    }
}

impl<T> std::fmt::Debug for AbortOnDrop<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AbortOnDrop").field("has_ended", &self.future.is_none()).finish()
    }
}

impl<R> std::fmt::Debug for Future<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Future").field("ready", &self.is_ready()).finish()
    }
}
