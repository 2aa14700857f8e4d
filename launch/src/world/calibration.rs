//! Measuring how fast a worker thread of this process computes.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Long enough for the clock of a processor to settle, short enough for a start-up.
const LENGTH: Duration = Duration::from_millis(20);

/// Rounds between two looks at the clock: about a microsecond.
const ROUNDS: u64 = 256;

/// Millions of rounds a second of a fixed piece of integer arithmetic, on one thread; at least 1.
/// Comparable between processes that run at the same time.
pub(crate) fn speed() -> u64 {
    let (start, mut state, mut rounds) = (Instant::now(), 1u64, 0u64);
    while start.elapsed() < LENGTH {
        for _ in 0..ROUNDS {
            state ^= state << 13;
            state ^= state >> 7;
            state = black_box(state ^ (state << 17));
        }
        rounds += ROUNDS;
    }
    (rounds / LENGTH.as_micros() as u64).max(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_processor_has_some_speed() {
        assert!((1..1_000_000).contains(&super::speed()));
    }
}
