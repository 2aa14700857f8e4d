//! Balls: all PEs within a radius of a PE.

use crate::Pe;
use std::ops::Range;

/// The closed ball `D(p; r)`, all PEs at most `r` away from `p` (`SymGridPar2` §4.1).
///
/// *Invariants:* a ball is a contiguous range of PE numbers, because PEs are numbered in hierarchy
/// order; so membership takes two comparisons and a random member one multiplication. A ball is
/// never empty, because it contains its centre. Every member is a centre (B1), so a ball does not
/// store one.
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
    /// The PEs numbered `first..end`, a range that the caller keeps non-empty.
    pub(crate) fn new(first: u32, end: u32) -> Self {
        debug_assert!(first < end, "a ball contains its centre");
        Ball { first, end }
    }

    /// Whether this PE is in the ball.
    pub fn contains(self, pe: Pe) -> bool {
        self.first <= pe.number() && pe.number() < self.end
    }

    /// The number of PEs in it, at least 1.
    pub fn len(self) -> u32 {
        self.end - self.first
    }

    /// The member with the smallest number.
    pub fn first(self) -> Pe {
        Pe::new(self.first)
    }

    /// The numbers of its members.
    pub fn numbers(self) -> Range<u32> {
        self.first..self.end
    }

    /// Its members by ascending number.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Pe> + DoubleEndedIterator {
        self.numbers().map(Pe::new)
    }

    /// The `i`-th member, counted from 0.
    ///
    /// # Panics
    /// If `i` is not less than [`len`](Self::len).
    pub fn at(self, i: u32) -> Pe {
        assert!(i < self.len(), "a ball of {} PEs has no PE at index {i}", self.len());
        Pe::new(self.first + i)
    }

    /// Maps a uniformly random 64-bit number to a member. All members are equally likely, to within
    /// one part in 2^32.
    pub fn pick(self, random: u64) -> Pe {
        // The high word of the product is uniform in 0..len; unlike `%`, this needs no division.
        let i = (u128::from(random) * u128::from(self.len())) >> u64::BITS;
        self.at(i as u32)
    }
}
