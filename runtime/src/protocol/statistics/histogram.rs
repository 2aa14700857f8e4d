//! How durations are spread.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Durations, counted in buckets that are an eighth of a power of two wide: quantiles are right to
/// 12.5 %.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Bucket `8 * e + m` counts durations of `(8 + m) * 2^(e - 3)` nanoseconds and more.
    buckets: Vec<u64>,
}

impl Histogram {
    /// From 1 ns to 2^40 ns (18 minutes); longer ones count in the last bucket.
    const BUCKETS: usize = 8 * 41;

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1);
        let exponent = nanos.ilog2();
        let eighth = ((nanos << 3) >> exponent) & 7;
        let bucket = (8 * exponent as usize + eighth as usize).min(Self::BUCKETS - 1);
        self.buckets[bucket] += 1;
    }

    /// The number of durations counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The duration that the fraction `q` (0 to 1) of those counted does not exceed, rounded down
    /// to its bucket. `None` if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * q).ceil().max(1.0) as u64;
        self.rows()
            .scan(0, |seen, (at, n)| {
                Some((at, {
                    *seen += n;
                    *seen
                }))
            })
            .find(|(_, seen)| *seen >= rank)
            .map(|(at, _)| at)
    }

    /// The non-empty buckets: the lower bound and the count of each.
    pub fn rows(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.buckets.iter().enumerate().filter(|(_, n)| **n > 0).map(|(bucket, n)| {
            let (exponent, eighth) = (bucket / 8, bucket as u64 % 8);
            (Duration::from_nanos(((8 + eighth) << exponent) >> 3), *n)
        })
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(a, b)| *a += b);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: vec![0; Self::BUCKETS] }
    }
}

/// The buckets that are not empty.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.rows()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (q, exact) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(q).expect("not empty").as_secs_f64() * 1e6;
            assert!(found <= exact && found > exact * 0.875, "{q}: {found} for {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn extreme_durations_are_counted() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!(histogram.count(), 2);
    }

    #[test]
    fn buckets_begin_at_eighths_of_powers_of_two() {
        let mut histogram = Histogram::default();
        let nanos = |n| Duration::from_nanos(n);
        for n in [0, 1, 8, 9, 15, 16, 17, 18, 1 << 40, (1 << 40) + (1 << 39)] {
            histogram.record(nanos(n));
        }
        let rows: Vec<(u64, u64)> =
            histogram.rows().map(|(at, count)| (at.as_nanos() as u64, count)).collect();
        let last = (1 << 40) + (1 << 39);
        let expected = [(1, 2), (8, 1), (9, 1), (15, 1), (16, 2), (18, 1), (1 << 40, 1), (last, 1)];
        assert_eq!(rows, expected);
        assert_eq!(histogram.quantile(0.0), Some(nanos(1)));
        assert_eq!(histogram.quantile(0.2), Some(nanos(1)));
        assert_eq!(histogram.quantile(0.21), Some(nanos(8)));
        assert_eq!(histogram.quantile(1.0), Some(nanos(last)));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.quantile(1.0), Some(nanos(15 << 37)), "the last bucket");
        let mut both = histogram.clone();
        both.merge(&histogram);
        assert_eq!(both.count(), 22);
    }
}
