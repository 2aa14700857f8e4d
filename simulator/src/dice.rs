//! Chance: all of it comes from one seed.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::RangeInclusive;

/// A source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in this range.
    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }

    /// True once in this many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }

    /// Mostly near the lower end, now and then near the upper: each power of two is as likely as
    /// any other.
    pub(crate) fn skewed(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = ((*range.start()).max(1), (*range.end()).max(1));
        let bits = self.within(0..=u64::from((high / low).max(1).ilog2()));
        let top = low << bits;
        self.within(top.min(high)..=(2 * top).min(high))
    }
}
