//! Calling a task's function.

use super::activity::enter_function;
use super::caught::{caught, discard_as};
use super::end::{End, Settle};
use super::future::stopping;
use super::origin::Origin;
use super::packing::{PackError, PackLimits, ValueLabel, pack, unpack};
use super::portable::Portable;
use super::site::Site;
use crate::array::Array;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use async_task::Task;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_topology::Pe;

/// A function that a task runs on its argument, on a PE of type `S`.
pub(crate) trait Body<S: Site, A>: Stateless {
    /// The type of the task's result.
    type Output: Portable;

    /// The function's name, for people to read.
    fn name() -> &'static str;

    /// Whether the function may wait. One that does not only computes.
    const MAY_WAIT: bool;

    /// Packs the argument behind the bytes in `draft`.
    fn pack(argument: A, draft: &mut Vec<u8>, limits: PackLimits) -> Result<Bytes, PackError<A>>
    where
        A: Portable,
    {
        pack(ValueLabel::argument_of(Self::name()), argument, draft, limits)
    }

    /// Unpacks the argument: `array` if it was packed as one, else what `encoded` holds.
    fn unpack(encoded: &[u8], array: Option<Array>) -> Result<A, TaskError>
    where
        A: Portable,
    {
        unpack(ValueLabel::argument_of(Self::name()), encoded, array)
    }

    /// Runs the task on this thread, which must be one that runs tasks. A function that may wait
    /// first calls `begins`.
    fn run(self, pe: &Arc<S>, argument: A, begins: Begins<'_, Self::Output>) -> Run<Self::Output>;
}

/// Says whose task it is that begins, and where its result goes. Called once at the most.
pub(crate) type Begins<'a, R> = &'a dyn Fn() -> (Origin, Arc<dyn Settle<R>>);

/// How far a task got when it was run.
pub(crate) enum Run<R> {
    /// The function only computed; this is its result.
    Computed(Result<R, TaskError>),
    /// The function might have waited, but has ended; its [`End`] has had the result.
    Ended,
    /// It waits for something. Dropping this stops it.
    Waits(Task<()>),
}

impl<R> Run<R> {
    /// From a started async task, which is `None` if it has ended.
    pub(crate) fn of(waiting: Option<Task<()>>) -> Self {
        waiting.map_or(Run::Ended, Run::Waits)
    }
}

/// A function that only computes.
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

    fn run(self, pe: &Arc<S>, argument: A, _: Begins<'_, R>) -> Run<R> {
        let result = caught(std::any::type_name::<F>(), || (self.0)(argument));
        Run::Computed(result.map_err(|message| TaskError::Panicked { pe: pe.me(), message }))
    }
}

pin_project_lite::pin_project! {
    /// The future of a task's function. It turns a panic into an error, and drops the function's
    /// state without letting a panic out. If it is dropped before its end, the futures inside it
    /// are aborted.
    pub(crate) struct CatchPanic<T> {
        pe: Pe,
        // Whether it has been polled before. The first poll need not note the function: the start
        // has.
        is_resumed: bool,
        // `None` once it has ended.
        #[pin]
        future: Option<T>,
    }

    impl<T> PinnedDrop for CatchPanic<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut future = this.project().future;
            if future.is_some() {
                stopping(|| discard_as(std::any::type_name::<T>(), || future.set(None)));
            }
        }
    }
}

impl<T> CatchPanic<T> {
    pub(crate) fn new(pe: Pe, future: T) -> Self {
        CatchPanic { pe, is_resumed: false, future: Some(future) }
    }

    /// The same for the main task, whose start notes no function.
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
            enter_function(Some(std::any::type_name::<T>));
        }
        let polled = this.future.as_mut().as_pin_mut();
        let name = std::any::type_name::<T>();
        let result = match polled.map(|future| caught(name, || future.poll(cx))) {
            Some(Ok(Poll::Pending)) => return Poll::Pending,
            Some(Ok(Poll::Ready(value))) => Ok(value),
            Some(Err(message)) => Err(TaskError::Panicked { pe: *this.pe, message }),
            None => panic!("a future is polled again after it has ended"),
        };
        discard_as(std::any::type_name::<T>(), || this.future.set(None));
        Poll::Ready(result)
    }
}

pin_project_lite::pin_project! {
    /// A function that may wait, on its way to its end.
    pub(crate) struct Running<T, R> {
        // Dropped before `end`: first the futures inside it are aborted, then its own ends.
        #[pin]
        future: CatchPanic<T>,
        // `None` once it has ended.
        end: Option<End<R>>,
    }
}

impl<T, R> Running<T, R> {
    pub(crate) fn new(pe: Pe, future: T, end: End<R>) -> Self {
        Running { future: CatchPanic::new(pe, future), end: Some(end) }
    }
}

impl<T: std::future::Future<Output = R>, R> std::future::Future for Running<T, R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let this = self.project();
        let result = std::task::ready!(this.future.poll(cx));
        if let Some(end) = this.end.take() {
            end.end_with(result);
        }
        Poll::Ready(())
    }
}
