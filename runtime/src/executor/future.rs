//! The handle by which a spawned task is awaited.

use crate::error::TaskError;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Where a task's result appears.
pub(super) trait Promise<R>: Send + Sync {
    /// The result, once; until then `waker` is kept and woken when it appears.
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>>;
    /// Whether [`poll`](Promise::poll) would return the result.
    fn is_ready(&self) -> bool;
    /// The only task that waits for the result has been stopped. The task that is to make it is
    /// dropped if it has not been started, and stopped if it runs here on behalf of another PE.
    fn abandon(&self) {}
}

thread_local! {
    /// How many tasks the thread is dropping before their ends, one inside the other.
    static STOPPING: Cell<u32> = const { Cell::new(0) };
}

/// Drops a task before its end: the futures in it are abandoned. `act` must not panic.
pub(super) fn stopping(act: impl FnOnce()) {
    STOPPING.set(STOPPING.get() + 1);
    act();
    STOPPING.set(STOPPING.get() - 1);
}

/// The result of a task, which may not be there yet (SymGridPar2 §3.2).
///
/// `.await` gives `Ok` with the task's value, or the reason why there will be none; it always
/// ends. Waiting blocks no worker. A future that is dropped does not stop its task.
///
/// A future belongs to the PE that spawned the task. It cannot be sent to another, to be awaited
/// there:
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
    pub(super) fn new(promise: Arc<dyn Promise<R>>) -> Self {
        Future { promise }
    }

    /// Whether the result is there, so that awaiting it would not wait.
    pub fn is_ready(&self) -> bool {
        self.promise.is_ready()
    }

    /// The result if it is there, else the future again.
    pub fn try_get(self) -> Result<Result<R, TaskError>, Self> {
        match self.promise.poll(Waker::noop()) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(self),
        }
    }
}

impl<R: Send + 'static> Future<R> {
    /// A future that has ended with an error before its task began.
    pub(super) fn failed(error: TaskError) -> Self {
        Future { promise: Arc::new(Failed(Mutex::new(Some(error)))) }
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

/// That a program drops a future does not stop its task. That a task is stopped does.
impl<R> Drop for Future<R> {
    fn drop(&mut self) {
        if STOPPING.get() > 0 {
            self.promise.abandon();
        }
    }
}

impl<R> std::fmt::Debug for Future<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Future").field("ready", &self.is_ready()).finish()
    }
}

struct Failed(Mutex<Option<TaskError>>);

impl<R> Promise<R> for Failed {
    fn poll(&self, _: &Waker) -> Poll<Result<R, TaskError>> {
        let error = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Poll::Ready(Err(error.unwrap_or(TaskError::ShuttingDown)))
    }

    fn is_ready(&self) -> bool {
        true
    }
}
