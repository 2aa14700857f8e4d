//! What travels between a program and GAP.

use crate::error::WrongType;
use num_bigint::BigInt;
use num_rational::BigRational;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// A value of GAP. It can be the argument or the result of a task, too.
///
/// ```
/// use ultramarine_gap::Value;
///
/// let matrix = Value::from(vec![vec![1, 2], vec![3, 4]]);
/// let rows: Vec<Vec<i64>> = matrix.try_into()?;
/// assert_eq!(rows[1], [3, 4]);
/// # Ok::<(), ultramarine_gap::GapError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// What a call of a function without a result gives. It cannot be an argument.
    Nothing,
    /// GAP's `fail`.
    Fail,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of any size.
    Integer(BigInt),
    /// A rational. One whose denominator is 1 comes back from GAP as an integer.
    Rational(BigRational),
    /// A string of GAP, which is of bytes.
    String(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A list without holes. A matrix is the list of its rows.
    List(Vec<Value>),
    /// A permutation.
    Permutation(Permutation),
    /// A record, by the names of its components.
    Record(BTreeMap<String, Value>),
}

impl Value {
    /// What kind of value it is, in words.
    fn kind(&self) -> &'static str {
        match self {
            Value::Nothing => "nothing",
            Value::Fail => "fail",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Rational(_) => "a rational",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Permutation(_) => "a permutation",
            Value::Record(_) => "a record",
        }
    }

    fn is_not(&self, expected: &str) -> WrongType {
        WrongType { expected: expected.to_owned(), found: self.kind().to_owned() }
    }
}

/// A permutation of 1, 2, …, n, as GAP's `ListPerm` gives it: without the points after the last one
/// that it moves.
///
/// ```
/// use ultramarine_gap::Permutation;
///
/// let swap = Permutation::new(vec![2, 1, 3]).expect("each point once");
/// assert_eq!(swap.images(), [2, 1]);
/// assert_eq!((swap.image(1), swap.image(7)), (2, 7));
/// assert_eq!(Permutation::new(vec![2, 2]), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct Permutation {
    images: Vec<u32>,
}

impl Permutation {
    /// The permutation with these images of 1, 2, …; `None` unless each of these points is there
    /// once.
    pub fn new(mut images: Vec<u32>) -> Option<Self> {
        let mut is_there = vec![false; images.len()];
        for image in &images {
            let there = is_there.get_mut((*image as usize).checked_sub(1)?)?;
            if std::mem::replace(there, true) {
                return None;
            }
        }
        while images.last().is_some_and(|image| *image as usize == images.len()) {
            images.pop();
        }
        Some(Permutation { images })
    }

    /// The images of the points up to the last one that it moves. The identity has none.
    pub fn images(&self) -> &[u32] {
        &self.images
    }

    /// The image of a point, which is at least 1.
    pub fn image(&self, point: u32) -> u32 {
        let at = (point as usize).wrapping_sub(1);
        self.images.get(at).copied().unwrap_or(point)
    }
}

impl TryFrom<Vec<u32>> for Permutation {
    type Error = &'static str;

    fn try_from(images: Vec<u32>) -> Result<Self, Self::Error> {
        Permutation::new(images).ok_or("the images of a permutation are not each there once")
    }
}

impl From<Permutation> for Vec<u32> {
    fn from(permutation: Permutation) -> Self {
        permutation.images
    }
}

impl From<Infallible> for WrongType {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A variant whose value is taken as it is.
macro_rules! held {
    ($($type:ty, $variant:ident, $kind:literal;)+) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Value::$variant(value)
            }
        }

        impl TryFrom<Value> for $type {
            type Error = WrongType;

            fn try_from(value: Value) -> Result<Self, WrongType> {
                match value {
                    Value::$variant(value) => Ok(value),
                    other => Err(other.is_not($kind)),
                }
            }
        }
    )+};
}

held! {
    bool, Bool, "a boolean";
    BigInt, Integer, "an integer";
    Permutation, Permutation, "a permutation";
    BTreeMap<String, Value>, Record, "a record";
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Value::Integer(value.into())
            }
        }

        impl TryFrom<Value> for $type {
            type Error = WrongType;

            fn try_from(value: Value) -> Result<Self, WrongType> {
                let expected = concat!("an integer of type ", stringify!($type));
                match value {
                    Value::Integer(value) => value.try_into().map_err(|_| WrongType {
                        expected: expected.to_owned(),
                        found: "one that does not fit".to_owned(),
                    }),
                    other => Err(other.is_not(expected)),
                }
            }
        }
    )+};
}

integers! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize }

impl From<BigRational> for Value {
    fn from(value: BigRational) -> Self {
        Value::Rational(value)
    }
}

impl TryFrom<Value> for BigRational {
    type Error = WrongType;

    fn try_from(value: Value) -> Result<Self, WrongType> {
        match value {
            Value::Rational(value) => Ok(value),
            Value::Integer(value) => Ok(value.into()),
            other => Err(other.is_not("a rational")),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text.into())
    }
}

impl TryFrom<Value> for String {
    type Error = WrongType;

    fn try_from(value: Value) -> Result<Self, WrongType> {
        match value {
            Value::String(bytes) => String::from_utf8(bytes).map_err(|_| WrongType {
                expected: "a string in UTF-8".to_owned(),
                found: "other bytes".to_owned(),
            }),
            other => Err(other.is_not("a string")),
        }
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: TryFrom<Value>> TryFrom<Value> for Vec<T>
where
    WrongType: From<T::Error>,
{
    type Error = WrongType;

    fn try_from(value: Value) -> Result<Self, WrongType> {
        match value {
            Value::List(values) => {
                values.into_iter().map(|value| Ok(T::try_from(value)?)).collect()
            }
            other => Err(other.is_not("a list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_kind_is_refused_in_words() {
        let refused = u8::try_from(Value::from("12")).unwrap_err();
        assert_eq!(refused.to_string(), "expected an integer of type u8, found a string");
        let refused = u8::try_from(Value::from(256)).unwrap_err();
        let text = "expected an integer of type u8, found one that does not fit";
        assert_eq!(refused.to_string(), text);
        let refused = Vec::<bool>::try_from(Value::from(vec![1])).unwrap_err();
        assert_eq!(refused.to_string(), "expected a boolean, found an integer");
        assert!(String::try_from(Value::String(vec![0xff])).is_err());
    }

    #[test]
    fn lists_of_any_values_are_taken_apart() {
        let mixed = Value::from(vec![Value::from(1), Value::Fail]);
        assert_eq!(Vec::<Value>::try_from(mixed), Ok(vec![Value::from(1), Value::Fail]));
    }

    #[test]
    fn a_permutation_has_each_point_once() {
        for images in [vec![0, 1], vec![1, 3], vec![1, 1]] {
            assert_eq!(Permutation::new(images), None);
        }
        assert_eq!(Permutation::new(vec![1, 2]), Some(Permutation::default()));
    }
}
