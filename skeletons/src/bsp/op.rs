//! Functions for [`all_reduce`](super::Comm::all_reduce) and [`scan`](super::Comm::scan).

use std::ops::{Add, BitAnd, BitOr, Mul};

/// The sum.
pub fn sum<T: Add<Output = T>>(one: T, other: T) -> T {
    one + other
}

/// The product.
pub fn product<T: Mul<Output = T>>(one: T, other: T) -> T {
    one * other
}

/// The smaller one; the other if one is a NaN.
pub fn min<T: PartialOrd>(one: T, other: T) -> T {
    if other < one || is_nan(&one) { other } else { one }
}

/// The greater one; the other if one is a NaN.
pub fn max<T: PartialOrd>(one: T, other: T) -> T {
    if other > one || is_nan(&one) { other } else { one }
}

/// Both, bit by bit for integers.
pub fn and<T: BitAnd<Output = T>>(one: T, other: T) -> T {
    one & other
}

/// One or both, bit by bit for integers.
pub fn or<T: BitOr<Output = T>>(one: T, other: T) -> T {
    one | other
}

fn is_nan<T: PartialOrd>(value: &T) -> bool {
    value.partial_cmp(value).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_neither_the_least_nor_the_greatest() {
        for (one, other) in [(1.0, 2.0), (2.0, 1.0)] {
            assert_eq!((min(one, other), max(one, other)), (1.0, 2.0));
        }
        assert_eq!((min(f64::NAN, 1.0), max(1.0, f64::NAN)), (1.0, 1.0));
        assert_eq!((min(1.0, f64::NAN), max(f64::NAN, 1.0)), (1.0, 1.0));
    }
}
