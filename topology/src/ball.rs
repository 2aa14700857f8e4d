//! A ball: all PEs within a radius of one of them.

use crate::Pe;
use std::ops::Range;

/// The closed ball `D(p; r)`, all PEs at most `r` away from `p` (`SymGridPar2` §4.1).
///
/// PEs are numbered in hierarchy order, so a ball is a range of numbers: membership is two
/// comparisons and a random member one multiplication. A ball holds its centre, so it is never
/// empty; every PE in it is its centre (B1), so it does not remember which one it was asked for.
///
/// ```
/// use ultramarine_topology::{Distance, Pe, Topology};
/// let job = Topology::flat(4);
/// let ball = job.ball(Pe::new(2), Distance::ONE);
/// assert!(ball.contains(Pe::new(0)));
/// assert_eq!(ball.len(), 4);
/// assert_eq!(ball.pick(u64::MAX), Pe::new(3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ball {
    first: u32,
    end: u32,
}

#[expect(clippy::len_without_is_empty, reason = "a ball is never empty")]
impl Ball {
    /// The PEs numbered `first..end`; the caller sees to it that there is one.
    pub(crate) fn new(first: u32, end: u32) -> Self {
        debug_assert!(first < end, "a ball holds its centre");
        Ball { first, end }
    }

    /// Whether this PE is in the ball.
    pub fn contains(self, pe: Pe) -> bool {
        self.first <= pe.number() && pe.number() < self.end
    }

    /// How many PEs it holds, at least 1.
    pub fn len(self) -> u32 {
        self.end - self.first
    }

    /// The PE with the smallest number.
    pub fn first(self) -> Pe {
        Pe::new(self.first)
    }

    /// The numbers of its PEs.
    pub fn numbers(self) -> Range<u32> {
        self.first..self.end
    }

    /// Its PEs, by ascending number.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Pe> + DoubleEndedIterator {
        self.numbers().map(Pe::new)
    }

    /// The `i`-th PE, counted from 0.
    ///
    /// # Panics
    /// When the ball has no more than `i` PEs.
    pub fn at(self, i: u32) -> Pe {
        assert!(i < self.len(), "a ball of {} PEs has no PE at index {i}", self.len());
        Pe::new(self.first + i)
    }

    /// The PE that a uniformly random number picks. All PEs are equally likely, to within one
    /// part in 2^32.
    pub fn pick(self, random: u64) -> Pe {
        // The high word of the product is uniform in 0..len; unlike `%`, no division.
        let i = (u128::from(random) * u128::from(self.len())) >> u64::BITS;
        self.at(i as u32)
    }
}
