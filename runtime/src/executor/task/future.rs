//! The handle by which a spawned task is awaited.

use super::cancel::Batch;
use super::caught::discard_with;
use crate::error::TaskError;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Where a task's result appears.
pub(crate) trait Promise<R>: Send + Sync {
    /// The result, once; until then `waker` is kept and woken when it appears.
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>>;
    /// Whether [`poll`](Promise::poll) would return the result.
    fn is_ready(&self) -> bool;
    /// The result is not wanted any more: ends with an error now, and cancels the task. What is to
    /// be said to others about that is added to the batch.
    fn cancel(&self, _: &mut Batch) {}
}

thread_local! {
    /// How many tasks the thread is dropping before their ends, one inside the other.
    static STOPPING: Cell<u32> = const { Cell::new(0) };
}

/// Drops something before its end: the tasks whose futures are in it are cancelled. `act` must not
/// panic.
pub(crate) fn stopping(act: impl FnOnce()) {
    STOPPING.set(STOPPING.get() + 1);
    act();
    STOPPING.set(STOPPING.get() - 1);
}

/// The result of a task, which may not be there yet (SymGridPar2 §3.2).
///
/// `.await` gives `Ok` with the task's value, or the reason why there will be none; it always
/// ends. Waiting blocks no worker.
///
/// A future that is dropped does not stop its task: [`abort`](Future::abort) does, and
/// [`AbortOnDrop`]. So does the end of the task that holds the future, if it is stopped itself.
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
    pub(crate) fn new(promise: Arc<dyn Promise<R>>) -> Self {
        Future { promise }
    }

    /// Whether the result is there, so that awaiting it would not wait.
    pub fn is_ready(&self) -> bool {
        self.promise.is_ready()
    }

    /// Cancels the task: this future ends with
    /// [`TaskError::Cancelled`](crate::error::TaskError::Cancelled), unless its result is there. A
    /// task that has not been started never will be, wherever it waits. One that runs is stopped
    /// where it awaits something next, and so are the tasks whose futures it holds; one that only
    /// computes runs to its end, unless it [asks](crate::executor::Context::is_cancelled). Of a
    /// task on another PE that is known to have moved on in this moment, a copy may still run; its
    /// result is ignored.
    pub fn abort(&self) {
        let mut batch = Batch::default();
        self.promise.cancel(&mut batch);
        batch.send();
    }

    /// The same for many.
    pub fn abort_all<'a>(futures: impl IntoIterator<Item = &'a Future<R>>)
    where
        R: 'a,
    {
        let mut batch = Batch::default();
        futures.into_iter().for_each(|future| future.promise.cancel(&mut batch));
        batch.send();
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
    pub(crate) fn failed(error: TaskError) -> Self {
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
            self.abort();
        }
    }
}

pin_project_lite::pin_project! {
    /// Any future; if it is dropped before its end, the tasks whose futures it holds are
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
    #[must_use = "a future does nothing by itself, and this one cancels what it holds when it is \
                  dropped"]
    pub struct AbortOnDrop<T> {
        // Until it has ended.
        #[pin]
        future: Option<T>,
    }

    impl<T> PinnedDrop for AbortOnDrop<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut future = this.project().future;
            if future.is_some() {
                stopping(|| discard_with(|| future.set(None)));
            }
        }
    }
}

impl<T> AbortOnDrop<T> {
    /// This future.
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
