//! Tasks that sleep, by the time at which they wake.

use crate::executor::task::caught::discard_with;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The sleepers of a PE by the time at which they wake. The number tells equal times apart.
#[derive(Default)]
pub(crate) struct Timers {
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

    /// Wakes the sleepers whose time has come. Returns how long the next one still sleeps.
    pub(crate) fn fire(&self, now: Instant) -> Option<Duration> {
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

    /// Wakes all sleepers so that they are dropped: the job is ending.
    pub(crate) fn clear(&self) {
        let sleepers = std::mem::take(&mut *self.sleepers());
        sleepers.by_time.into_values().for_each(|waker| discard_with(|| waker.wake()));
    }

    /// Enters a sleeper. If it has a number already, its waker is replaced.
    pub(crate) fn enter(&self, until: Instant, number: &mut Option<u64>, waker: Waker) {
        let mut sleepers = self.sleepers();
        sleepers.last += 1;
        let number = *number.get_or_insert(sleepers.last);
        let old = sleepers.by_time.insert((until, number), waker);
        drop(sleepers);
        drop(old);
    }

    /// Removes a sleeper.
    pub(crate) fn remove(&self, until: Instant, number: u64) {
        // Dropped after the lock: a waker may own other sleepers.
        let waker = self.sleepers().by_time.remove(&(until, number));
        drop(waker);
    }
}
