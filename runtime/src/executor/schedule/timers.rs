//! Tasks that sleep, by the time at which they wake.

use crate::executor::task::caught::discard_with;
use crate::lock::Lock;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The sleepers of a PE by the time at which they wake. The number tells equal times apart.
#[derive(Default)]
pub(crate) struct Timers {
    sleepers: Lock<Sleepers>,
    /// How many have been woken.
    woken: AtomicU64,
}

thread_local! {
    /// How many had been woken when this thread last asked.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

#[derive(Default)]
struct Sleepers {
    by_time: BTreeMap<(Instant, u64), Waker>,
    last: u64,
}

impl Timers {
    /// Wakes the sleepers whose time has come. Returns how long the next one still sleeps.
    pub(crate) fn fire(&self, now: Instant) -> Option<Duration> {
        loop {
            let mut sleepers = self.sleepers.lock();
            let first = sleepers.by_time.first_entry()?;
            let time = first.key().0;
            if time > now {
                return Some(time - now);
            }
            let waker = first.remove();
            drop(sleepers);
            discard_with(|| waker.wake());
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether any has been woken since the calling thread last asked. It may be the task that this
    /// thread is inside of, which is in no queue.
    pub(crate) fn have_fired(&self) -> bool {
        let woken = self.woken.load(Ordering::Relaxed);
        SEEN.replace(woken) != woken
    }

    /// Wakes all sleepers so that they are dropped: the job is ending.
    pub(crate) fn clear(&self) {
        let sleepers = std::mem::take(&mut *self.sleepers.lock());
        sleepers.by_time.into_values().for_each(|waker| discard_with(|| waker.wake()));
    }

    /// Enters a sleeper. If it has a number already, its waker is replaced.
    pub(crate) fn enter(&self, until: Instant, number: &mut Option<u64>, waker: Waker) {
        let mut sleepers = self.sleepers.lock();
        sleepers.last += 1;
        let number = *number.get_or_insert(sleepers.last);
        let old = sleepers.by_time.insert((until, number), waker);
        drop(sleepers);
        drop(old);
    }

    /// Removes a sleeper.
    pub(crate) fn remove(&self, until: Instant, number: u64) {
        // Dropped after the lock: a waker may own other sleepers.
        let waker = self.sleepers.lock().by_time.remove(&(until, number));
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use ultramarine_testkit::Woken;

    #[test]
    fn each_sleeper_is_woken_once_when_its_time_has_come() {
        let (timers, start) = (Timers::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let woken: [Arc<Woken>; 5] = Default::default();
        let waker = |n: usize| woken[n].waker();
        let count = || woken.each_ref().map(|one| one.count());
        let mut numbers = [None; 5];
        // The first two at the same time; the third is replaced by the fourth; the fifth goes.
        timers.enter(at(2), &mut numbers[0], waker(0));
        timers.enter(at(2), &mut numbers[1], waker(1));
        timers.enter(at(5), &mut numbers[2], waker(2));
        timers.enter(at(5), &mut numbers[2], waker(3));
        timers.enter(at(3), &mut numbers[4], waker(4));
        timers.remove(at(3), numbers[4].expect("it has one"));
        assert_eq!(timers.fire(at(1)), Some(Duration::from_secs(1)));
        assert_eq!(count(), [0; 5]);
        assert_eq!(timers.fire(at(2)), Some(Duration::from_secs(3)));
        assert_eq!(count(), [1, 1, 0, 0, 0]);
        assert_eq!(timers.fire(at(9)), None);
        assert_eq!(count(), [1, 1, 0, 1, 0]);
        timers.enter(at(99), &mut None, waker(4));
        timers.clear();
        assert_eq!((count(), timers.fire(at(100))), ([1, 1, 0, 1, 1], None));
    }
}
