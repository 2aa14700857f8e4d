//! Ultrametric distances (SymGridPar2 §4.1): 0, or a power of two from 1 downwards.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// The distance between two PEs, also the radius of a ball: 0 or `2^-n`, stored as `n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Distance(u8);

impl Distance {
    /// The distance of a PE from itself.
    pub const ZERO: Distance = Distance(u8::MAX);
    /// The whole machine: no distance is greater.
    pub const ONE: Distance = Distance(0);

    /// `2^-n`, for `n` up to 254; beyond that [`Distance::ZERO`].
    pub const fn from_exponent(n: u8) -> Self {
        Distance(n)
    }

    /// The next smaller power of two. Half of 0 is 0.
    pub const fn half(self) -> Self {
        Distance(self.0.saturating_add(1))
    }

    /// `n` for `2^-n`; `None` for 0.
    pub const fn exponent(self) -> Option<u8> {
        if self.0 == u8::MAX { None } else { Some(self.0) }
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exponent() {
            None => f.write_str("0"),
            Some(0) => f.write_str("1"),
            Some(n @ 1..=63) => write!(f, "1/{}", 1u64 << n),
            Some(n) => write!(f, "2^-{n}"),
        }
    }
}
