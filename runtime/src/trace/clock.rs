//! The clock of a recording: nanoseconds since 1970, as this process knows them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How wrong the clock is made, for testing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// By how much at the beginning, in nanoseconds.
    pub ahead_ns: i64,
    /// How much faster it goes than it should, in millionths.
    pub drift_ppm: f64,
}

/// A clock that began with the recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) origin: Instant,
    since_1970: Duration,
    pub(super) skew: Skew,
}

impl Clock {
    pub(super) fn new(skew: Skew) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { origin: Instant::now(), since_1970, skew }
    }

    /// What it says, this many nanoseconds after its beginning.
    pub(super) fn at(&self, since_origin: u64) -> u64 {
        let Skew { ahead_ns, drift_ppm } = self.skew;
        let drift = (since_origin as f64 * drift_ppm / 1e6) as i64;
        self.right_at(since_origin).saturating_add_signed(ahead_ns.saturating_add(drift))
    }

    /// What it would say if it were right.
    pub(super) fn right_at(&self, since_origin: u64) -> u64 {
        (self.since_1970.as_nanos() as u64).saturating_add(since_origin)
    }

    pub(super) fn now(&self) -> u64 {
        self.at(self.origin.elapsed().as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skewed_clock_is_ahead_and_goes_faster() {
        let skew = Skew { ahead_ns: -5, drift_ppm: 100.0 };
        let clock = Clock { skew, ..Clock::new(skew) };
        assert_eq!(clock.at(1_000_000) as i64 - clock.right_at(1_000_000) as i64, 100 - 5);
    }
}
