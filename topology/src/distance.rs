//! Ultrametric distances (`SymGridPar2` §4.1): 0, or a power of two from 1 downwards.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// The distance between two PEs, also the radius of a ball: 0 or `2^-n`, stored as `n`.
///
/// Ordered as numbers are. Halves can be taken without end: below the smallest, 0 follows.
///
/// ```
/// use ultramarine_topology::Distance;
/// let rack = Distance::ONE.half();
/// assert!(Distance::ZERO < rack && rack < Distance::ONE);
/// assert_eq!(rack.to_string(), "1/2");
/// assert_eq!(rack.exponent(), Some(1));
/// ```
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
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The distance as a number, by the definition. Exact: `f64` has exponents to spare.
    fn value(d: Distance) -> f64 {
        d.exponent().map_or(0.0, |n| 2f64.powi(-i32::from(n)))
    }

    proptest! {
        #[test]
        fn ordered_as_the_numbers_they_stand_for(a: u8, b: u8) {
            let [a, b] = [a, b].map(Distance::from_exponent);
            prop_assert_eq!(a.partial_cmp(&b), value(a).partial_cmp(&value(b)));
            prop_assert_eq!(a == b, a.cmp(&b).is_eq());
            prop_assert!(Distance::ZERO <= a && a <= Distance::ONE);
        }
    }

    #[test]
    fn half_is_half_down_to_zero() {
        for n in 0..254 {
            let d = Distance::from_exponent(n);
            assert_eq!(value(d.half()).to_bits(), (value(d) / 2.0).to_bits());
        }
        assert_eq!(Distance::from_exponent(254).half(), Distance::ZERO);
        assert_eq!(Distance::ZERO.half(), Distance::ZERO);
    }

    #[test]
    fn written_as_a_fraction() {
        let text = |n| Distance::from_exponent(n).to_string();
        assert_eq!(
            [text(0), text(1), text(10), text(63)],
            ["1", "1/2", "1/1024", "1/9223372036854775808"]
        );
        assert_eq!([text(64), text(254), text(255)], ["2^-64", "2^-254", "0"]);
    }
}
