//! Sleeping and timeouts, without blocking a worker.

use super::context::Context;
use crate::executor::pe::processor::Processor;
use crate::executor::task::future::AbortOnDrop;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A future that ends at a point in time.
pub(crate) struct Sleep {
    pub(crate) pe: Arc<Processor>,
    pub(crate) until: Instant,
    /// Its number among the sleepers, once it is entered there.
    pub(crate) number: Option<u64>,
}

impl std::future::Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        let Sleep { pe, until, number } = &mut *self;
        pe.kept.timers.enter(*until, number, cx.waker().clone());
        pe.nudge();
        Poll::Pending
    }
}

/// Longer than any job, and short enough for the clock to count.
const LONGEST: Duration = Duration::from_hours(30 * 365 * 24);

/// The time was up before a future ended; see [`Context::timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time was up")]
pub struct Elapsed;

impl Context {
    /// Waits for this time, at most 30 years. Blocks no worker.
    pub fn sleep(
        &self,
        duration: Duration,
    ) -> impl std::future::Future<Output = ()> + Send + use<> {
        let until = Instant::now() + duration.min(LONGEST);
        Sleep { pe: self.pe.clone(), until, number: None }
    }

    /// The output of a future, if it ends within this time. Otherwise the future is dropped, and
    /// the tasks whose futures it holds are [cancelled](crate::executor::Future::abort).
    ///
    /// The task that awaits this does that itself, and needs a worker of its PE for it (the main
    /// task does not). If the future computes in this task, or all workers compute until they are
    /// cancelled, and they do not [yield](Self::yield_now) when
    /// [`Demand::is_turn_wanted`](crate::executor::Demand) says so, the time passes and nothing is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] if the time was up.
    pub async fn timeout<T>(&self, duration: Duration, future: T) -> Result<T::Output, Elapsed>
    where
        T: std::future::Future,
    {
        let (mut future, mut sleep) = (pin!(AbortOnDrop::new(future)), pin!(self.sleep(duration)));
        let mut is_begun = false;
        std::future::poll_fn(|waker| {
            if !std::mem::replace(&mut is_begun, true) {
                // The future may compute for long before it waits for anything.
                let _ = sleep.as_mut().poll(waker);
            }
            match future.as_mut().poll(waker) {
                Poll::Ready(result) => Poll::Ready(Ok(result)),
                Poll::Pending => sleep.as_mut().poll(waker).map(|()| Err(Elapsed)),
            }
        })
        .await
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.pe.kept.timers.remove(self.until, number);
        }
    }
}
