//! Numbers on the command line. What is not a number of the allowed range is refused with the
//! range.

use super::ExperimentError;
use crate::machine::CORES_MAX;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

/// What clap calls to read a value.
pub(super) trait Parser<T>:
    Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
{
}
impl<T, F: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static> Parser<T> for F {}

/// Reads a whole number of this range.
pub(super) fn whole_number<T>(range: RangeInclusive<T>) -> impl Parser<T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    within("a whole number", range)
}

/// The same for numbers of 64 bits.
pub(super) fn whole(range: RangeInclusive<u64>) -> impl Parser<u64> {
    whole_number(range)
}

/// Reads how many cores there are, this many at least.
pub(super) fn cores_from(least: u64) -> impl Parser<u64> {
    whole(least..=CORES_MAX)
}

/// Reads a number of this range.
pub(super) fn real_number(range: RangeInclusive<f64>) -> impl Parser<f64> {
    within("a number", range)
}

fn within<T>(what: &'static str, range: RangeInclusive<T>) -> impl Parser<T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected {what} from {} to {}", range.start(), range.end()))
    }
}

/// The longest time, in nanoseconds: an hour.
const TIME_NS_MAX: u64 = 3_600_000_000_000;

/// A time with its unit.
pub(super) fn nanoseconds(text: &str) -> Result<u64, String> {
    let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let split = |(unit, ns): (&str, f64)| Some((text.strip_suffix(unit)?, ns));
    let number = units.into_iter().find_map(split);
    let time = number.and_then(|(number, ns)| Some(number.parse::<f64>().ok()? * ns));
    let time = time.filter(|ns| (0.0..=TIME_NS_MAX as f64).contains(ns));
    let wrong =
        || format!("has `{text}` for a time, and times are from 0s to 3600s, in s, ms or us");
    time.map(|ns| ns.round() as u64).ok_or_else(wrong)
}

/// How long tasks compute: from one time to another, which may be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskTimes {
    /// The shortest, in nanoseconds.
    pub(super) least_ns: u64,
    /// The longest, in nanoseconds.
    pub(super) most_ns: u64,
}

impl FromStr for TaskTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let [least_ns, most_ns] = [nanoseconds(least)?, nanoseconds(most)?];
        if least_ns > most_ns {
            return Err("the first time is the longer one".to_owned());
        }
        Ok(TaskTimes { least_ns, most_ns })
    }
}

/// The seeds of this number of runs.
pub(super) fn seeds(first: u64, runs: u64) -> Result<Range<u64>, ExperimentError> {
    let refusal = || {
        let most = u64::MAX - runs;
        ExperimentError::Refused(format!(
            "there are no {runs} seeds from {first} on; --seed may be at most {most} with --runs \
             {runs}"
        ))
    };
    Ok(first..first.checked_add(runs).ok_or_else(refusal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_take_a_time_or_a_range_of_times() {
        let times = |least_ns, most_ns| Ok(TaskTimes { least_ns, most_ns });
        assert_eq!("80ms..0.4s".parse(), times(80_000_000, 400_000_000));
        assert_eq!("5us".parse(), times(5000, 5000));
        for text in ["400ms..80ms", "80..400ms", "..1s", "1s..", "4000s", "-1s", "1s..2s..3s", ""] {
            assert!(text.parse::<TaskTimes>().is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_have_ends() {
        let read = whole(1..=1000);
        assert_eq!((read("1"), read("1000")), (Ok(1), Ok(1000)));
        for text in ["0", "1001", "-5", "99999999999999999999", "", "1e3", "2.0", " 2", "many"] {
            assert_eq!(read(text), Err("expected a whole number from 1 to 1000".to_owned()));
        }
    }

    #[test]
    fn other_numbers_have_ends_too() {
        let read = real_number(0.0..=60e6);
        assert_eq!((read("2.5"), read("1e3")), (Ok(2.5), Ok(1000.0)));
        for text in ["-1", "1e9", "NaN", "fast", ""] {
            assert_eq!(read(text), Err("expected a number from 0 to 60000000".to_owned()));
        }
    }
}
