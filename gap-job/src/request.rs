//! What a request asks for: `gap/pkg/ultramarine/lib/link.g` and `coordinate.g` make them.

use crate::Answer;
use num_bigint::BigInt;
use num_rational::BigRational;
use std::collections::BTreeMap;
use ultramarine::Distance;
use ultramarine_gap::Value;

/// An operation with what it works on.
pub(crate) struct Request {
    pub(crate) operation: String,
    /// Expressions of GAP, each of which is a function.
    pub(crate) functions: Vec<String>,
    pub(crate) arguments: Vec<Value>,
    pub(crate) options: CallOptions,
}

impl TryFrom<Value> for Request {
    type Error = String;

    fn try_from(value: Value) -> Answer<Self> {
        let parts = Vec::<Value>::try_from(value).map_err(|error| error.to_string())?;
        let Ok([operation, functions, arguments, options]) = <[Value; 4]>::try_from(parts) else {
            return Err("a request has four parts".to_owned());
        };
        Ok(Request {
            operation: typed("the operation", operation)?,
            functions: typed("the source text of the functions", functions)?,
            arguments: typed("the arguments", arguments)?,
            options: CallOptions::of(typed("the options", options)?)?,
        })
    }
}

/// The options of a call.
pub(crate) struct CallOptions {
    pub(crate) radius: Distance,
    pub(crate) chunk: Option<usize>,
    pub(crate) supervised: bool,
    pub(crate) progress: bool,
    /// The second argument of a map's function.
    pub(crate) given: Option<Value>,
    /// Whether of an orbit only its length is wanted.
    pub(crate) length: bool,
}

impl CallOptions {
    fn of(mut options: BTreeMap<String, Value>) -> Answer<Self> {
        let given = options.remove("given");
        let mut is_set = |name: &str| {
            options.remove(name).map_or(Ok(false), |value| typed(&format!("option {name}"), value))
        };
        let (supervised, progress) = (is_set("supervised")?, is_set("progress")?);
        let length = is_set("length")?;
        let chunk: Option<usize> =
            options.remove("chunk").map(|value| typed("option chunk", value)).transpose()?;
        if chunk == Some(0) {
            return Err("option chunk: a task has at least one item".to_owned());
        }
        let radius = options.remove("radius").map_or(Ok(Distance::ONE), radius)?;
        Ok(CallOptions { radius, chunk, supervised, progress, given, length })
    }
}

/// A value of this type.
pub(crate) fn typed<T: TryFrom<Value>>(what: &str, value: Value) -> Answer<T>
where
    T::Error: std::fmt::Display,
{
    T::try_from(value).map_err(|error| format!("{what}: {error}"))
}

/// 0, or a power of two that is at most 1.
fn radius(value: Value) -> Answer<Distance> {
    let radius: BigRational = typed("option radius", value)?;
    if *radius.numer() == BigInt::ZERO {
        return Ok(Distance::ZERO);
    }
    let exponent = radius.denom().bits() - 1;
    let is_power = radius.denom().trailing_zeros() == Some(exponent);
    match u8::try_from(exponent) {
        Ok(exponent) if exponent < u8::MAX && is_power && *radius.numer() == BigInt::from(1) => {
            Ok(Distance::from_exponent(exponent))
        }
        _ => Err(format!(
            "option radius: {radius} is no distance: it can be 0, or a power of two that is at \
             most 1, such as 1/2"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_radii() {
        let of = |numerator: i64, denominator: i64| {
            radius(BigRational::new(numerator.into(), denominator.into()).into())
        };
        assert_eq!(of(0, 1), Ok(Distance::ZERO));
        assert_eq!(of(1, 1), Ok(Distance::ONE));
        assert_eq!(of(1, 4), Ok(Distance::ONE.half().half()));
        for (numerator, denominator) in [(2, 1), (-1, 2), (1, 3), (3, 4)] {
            let refused = of(numerator, denominator).expect_err("it is no distance");
            assert!(refused.contains("is no distance"), "{refused}");
        }
        let refused = radius("near".into()).expect_err("it is no number");
        assert_eq!(refused, "option radius: expected a rational, found a string");
    }
}
