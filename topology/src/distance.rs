//! Distances between PEs (`SymGridPar2` §4.1): 0, or a power of two that is at most 1.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// The distance between two PEs, or the radius of a ball: 0 or `2^-n` with `n` from 0 to 254.
///
/// One byte stores `n`. Distances are ordered like the numbers that they stand for: more shared
/// levels, a larger `n`, a smaller distance. Half of the smallest positive distance is 0.
///
/// Distances have no addition. They are ultrametric: from `p` by way of `q` to `s` it is never
/// farther than the longer of the two steps.
///
/// ```
/// use ultramarine_topology::Distance;
/// let rack = Distance::ONE.half();
/// assert!(Distance::ZERO < rack && rack < Distance::ONE);
/// assert_eq!(rack.to_string(), "1/2");
/// assert_eq!(rack.exponent(), Some(1));
///
/// # use ultramarine_topology::{Pe, Topology};
/// # let (job, [p, q, s]) = (Topology::flat(3), [0, 1, 2].map(Pe::new));
/// assert!(job.distance(p, s) <= job.distance(p, q).max(job.distance(q, s)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Distance(u8);

impl Distance {
    /// The distance of a PE from itself. As a radius: this PE alone.
    pub const ZERO: Distance = Distance(u8::MAX);
    /// The largest distance. As a radius: all PEs of the job.
    pub const ONE: Distance = Distance(0);

    /// `2^-n` for `n` up to 254; [`Distance::ZERO`] for 255.
    pub const fn from_exponent(n: u8) -> Self {
        Distance(n)
    }

    /// Half of it: the radius of the next smaller balls. Half of 0 is 0.
    #[must_use]
    pub const fn half(self) -> Self {
        Distance(self.0.saturating_add(1))
    }

    /// `n` of `2^-n`; `None` for 0.
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

    /// The distance as a number, by definition. It is exact: `f64` has larger exponents.
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
