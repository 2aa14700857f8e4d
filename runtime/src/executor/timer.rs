//! Sleeping without blocking a worker.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::caught::discard_with;
use super::context::Context;
use super::future::AbortOnDrop;
use super::processor::Processor;

/// The sleepers of a PE by the time at which they wake; the number tells equal times apart.
#[derive(Default)]
pub(super) struct Timers {
    sleepers: Mutex<Sleepers>,
}

#[derive(Default)]
struct Sleepers {
    by_time: BTreeMap<(Instant, u64), Waker>,
    last: u64,
}

impl Timers {
    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those whose time has come. Returns how long the next one still sleeps.
    pub(super) fn fire(&self, now: Instant) -> Option<Duration> {
        loop {
            let mut sleepers = self.sleepers();
            let first = sleepers.by_time.first_entry()?;
            let time = first.key().0;
            if time > now {
                return Some(time - now);
            }
            let waker = first.remove();
            drop(sleepers);
            discard_with(|| waker.wake());
        }
    }

    /// Wakes all sleepers, for them to be dropped: the job is ending.
    pub(super) fn clear(&self) {
        let sleepers = std::mem::take(&mut *self.sleepers());
        sleepers.by_time.into_values().for_each(|waker| discard_with(|| waker.wake()));
    }
}

/// Ends at a point in time.
pub(super) struct Sleep {
    pub(super) pe: Arc<Processor>,
    pub(super) until: Instant,
    /// Its number among the sleepers, once it is one of them.
    pub(super) number: Option<u64>,
}

impl std::future::Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        let pe = self.pe.clone();
        let mut sleepers = pe.timers.sleepers();
        sleepers.last += 1;
        let number = *self.number.get_or_insert(sleepers.last);
        let old = sleepers.by_time.insert((self.until, number), cx.waker().clone());
        drop(sleepers);
        drop(old);
        pe.nudge();
        Poll::Pending
    }
}

/// More than a job ever lasts, and less than the clock can count.
const LONGEST: Duration = Duration::from_hours(30 * 365 * 24);

/// The time was up before a future had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time was up")]
pub struct Elapsed;

impl Context {
    /// Ends after this time, or after 30 years if that is longer. Blocks no worker.
    pub fn sleep(
        &self,
        duration: Duration,
    ) -> impl std::future::Future<Output = ()> + Send + use<> {
        let until = Instant::now() + duration.min(LONGEST);
        Sleep { pe: self.pe.clone(), until, number: None }
    }

    /// What the future ends with, if it does within this time. Else it is dropped, and the tasks
    /// whose futures it holds are [cancelled](super::Future::abort).
    ///
    /// # Errors
    ///
    /// The time was up.
    pub async fn timeout<T>(&self, duration: Duration, future: T) -> Result<T::Output, Elapsed>
    where
        T: std::future::Future,
    {
        let (mut future, mut sleep) = (pin!(AbortOnDrop::new(future)), pin!(self.sleep(duration)));
        std::future::poll_fn(|waker| match future.as_mut().poll(waker) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending => sleep.as_mut().poll(waker).map(|()| Err(Elapsed)),
        })
        .await
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // Dropped after the lock: a waker may own other sleepers.
            let waker = self.pe.timers.sleepers().by_time.remove(&(self.until, number));
            drop(waker);
        }
    }
}
