//! When the next checkpoint is due, where that is a matter of time, and when PEs are compared.

use super::machine::Key;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The first checkpoint, with which its cost is measured, is taken after this time.
const FIRST: Duration = Duration::from_secs(10);

/// How often it is seen whether PEs are unevenly busy.
const WEIGHED_EVERY: Duration = Duration::from_secs(1);

/// When checkpoints are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Interval {
    Never,
    /// This number of supersteps.
    Supersteps(u64),
    Time(Duration),
    /// The best one for what a checkpoint costs.
    Best,
}

/// A PE's clock for checkpoints.
pub(super) struct Pace {
    interval: Interval,
    /// Between two failures of the job.
    mtbf: Duration,
    /// The last checkpoint, and when it was begun.
    begun: Option<Key>,
    last: Instant,
    /// How long the last checkpoint has kept this PE, and this one so far.
    cost: Option<Duration>,
    spent: Duration,
    /// Whether ranks may move; when PEs were compared last, and when they are again.
    is_balanced: bool,
    weighed: Instant,
    weighing: Duration,
}

impl Pace {
    pub(super) fn new(interval: Interval, mtbf: Duration, is_balanced: bool) -> Self {
        let now = Instant::now();
        Pace {
            interval,
            mtbf,
            begun: None,
            last: now,
            cost: None,
            spent: Duration::ZERO,
            is_balanced,
            weighed: now,
            weighing: WEIGHED_EVERY,
        }
    }

    /// Whether it is to be seen how busy PEs are.
    pub(super) fn is_weighing_due(&self, now: Instant) -> bool {
        self.is_balanced && now.duration_since(self.weighed) >= self.weighing
    }

    /// That was seen. The more often it was uneven, the later it is seen again: where moves do not
    /// help, or there are none, that costs less and less.
    pub(super) fn weighed(&mut self, is_uneven: bool) {
        self.weighed = Instant::now();
        if is_uneven {
            self.weighing *= 2;
        }
    }

    /// Whether a checkpoint is due, if the last one has kept a PE for so long; `None`: there was
    /// none.
    pub(super) fn is_due(&self, now: Instant, cost: Option<Duration>) -> bool {
        let interval = match self.interval {
            Interval::Never | Interval::Supersteps(_) => return false,
            Interval::Time(time) => time,
            Interval::Best => cost.map_or(FIRST, |cost| best_interval(cost, self.mtbf)),
        };
        now.duration_since(self.last) >= interval
    }

    /// This is the checkpoint that was begun last.
    pub(super) fn see(&mut self, begun: Option<Key>) {
        if begun != self.begun {
            (self.begun, self.last, self.spent) = (begun, Instant::now(), Duration::ZERO);
        }
    }

    /// The checkpoint that was begun last has kept this PE for this time.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
        self.cost = Some(self.spent);
    }

    /// How long the last checkpoint has kept this PE, so far.
    pub(super) fn cost(&self) -> Option<Duration> {
        self.cost
    }
}

/// The interval that costs least, if half of it is lost with each failure (Young, A first order
/// approximation to the optimum checkpoint interval, 1974; Daly, 2006).
fn best_interval(cost: Duration, mtbf: Duration) -> Duration {
    let seconds = (2.0 * cost.as_secs_f64() * mtbf.as_secs_f64()).sqrt();
    Duration::from_secs_f64(seconds).min(mtbf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_interval_grows_with_the_root_of_cost_and_lifetime() {
        let interval =
            |cost, mtbf| best_interval(Duration::from_secs(cost), Duration::from_secs(mtbf));
        assert_eq!(interval(2, 10_000), Duration::from_secs(200));
        assert_eq!(interval(8, 10_000), Duration::from_secs(400));
        assert_eq!(interval(8, 1), Duration::from_secs(1), "it is no longer than the lifetime");
    }

    #[test]
    fn the_cost_is_that_of_the_last_checkpoint() {
        let mut pace = Pace::new(Interval::Best, Duration::from_hours(1), true);
        let now = Instant::now();
        assert!(!pace.is_due(now, pace.cost()));
        let key = |superstep| Some(Key { generation: 0, superstep });
        pace.see(key(1));
        pace.spend(Duration::from_secs(1));
        pace.see(key(1));
        pace.spend(Duration::from_secs(2));
        assert_eq!(pace.cost(), Some(Duration::from_secs(3)));
        pace.see(key(2));
        assert_eq!(pace.cost(), Some(Duration::from_secs(3)), "the new one has taken nothing yet");
        pace.spend(Duration::from_secs(1));
        assert_eq!(pace.cost(), Some(Duration::from_secs(1)));
        let always = Pace::new(Interval::Time(Duration::ZERO), Duration::MAX, true);
        assert!(always.is_due(Instant::now(), None));
    }
}
