//! The time during which the detector's thread was able to run.

use std::time::{Duration, Instant};

/// Time that passes only while the thread runs, or sleeps for as long as it asked. A process that
/// was stopped, or got no core, has not waited for the others: what they sent meanwhile is still
/// unread. So all deadlines are in this time.
pub(super) struct RunningClock {
    /// How much later than asked a sleep may end without counting as a stall.
    slack: Duration,
    last: Instant,
    lived: Duration,
}

impl RunningClock {
    pub(super) fn new(slack: Duration, now: Instant) -> Self {
        RunningClock { slack, last: now, lived: Duration::ZERO }
    }

    /// The time since the start, without stalls.
    pub(super) fn now(&self) -> Duration {
        self.lived
    }

    /// Says that it is `now`, after some work and a sleep of at most `asked`. Returns whether the
    /// thread stood still for longer than that.
    pub(super) fn advance(&mut self, now: Instant, asked: Duration) -> bool {
        let passed = now.saturating_duration_since(self.last);
        let at_most = asked.saturating_add(self.slack);
        self.last = now;
        self.lived = self.lived.saturating_add(passed.min(at_most));
        passed > at_most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_takes_no_time() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut clock = RunningClock::new(second, start);
        assert!(!clock.advance(start + second * 3, second * 5), "woken early");
        assert_eq!(clock.now(), second * 3);
        assert!(!clock.advance(start + second * 6, second * 2), "a little late");
        assert_eq!(clock.now(), second * 6);
        assert!(clock.advance(start + second * 1000, second));
        assert_eq!(clock.now(), second * 8);
        assert!(!clock.advance(start, second), "never backwards");
        assert_eq!(clock.now(), second * 8);
    }
}
