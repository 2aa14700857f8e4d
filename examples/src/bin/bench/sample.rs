//! Samples of repeated measurements, and their units.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use ultramarine::Histogram;

/// Repeated measurements of one figure: at least one when it is looked at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sample {
    values: Vec<f64>,
}

impl Sample {
    pub(crate) const fn new() -> Self {
        Sample { values: Vec::new() }
    }

    pub(crate) fn one(value: f64) -> Self {
        Sample { values: vec![value] }
    }

    /// A figure of each of these.
    pub(crate) fn of<'a, T: 'a>(
        all: impl IntoIterator<Item = &'a T>,
        figure: impl Fn(&T) -> f64,
    ) -> Self {
        all.into_iter().map(figure).collect()
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Combines each measurement with the one of `other` in the same round.
    pub(crate) fn with(&self, other: &Sample, combine: impl Fn(f64, f64) -> f64) -> Sample {
        self.values.iter().zip(&other.values).map(|(a, b)| combine(*a, *b)).collect()
    }

    /// The ratio of each measurement to the one of `other` in the same round.
    pub(crate) fn over(&self, other: &Sample) -> Sample {
        self.with(other, |own, other| own / other)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The measurement that this part of all, from 0 to 1, does not exceed.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        self.sorted()[((self.len() - 1) as f64 * part).round() as usize]
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            sorted[middle - 1].midpoint(sorted[middle])
        }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.len() as f64
    }

    pub(crate) fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The median as text, with the range if there are several measurements.
    pub(crate) fn shown(&self, unit: Unit) -> String {
        let mut text = unit.shown(self.median());
        if self.values.len() > 1 {
            let (min, max) = (unit.number(self.min()), unit.number(self.max()));
            let _ = write!(text, " ({min}–{max})");
        }
        text
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Sample { values: values.into_iter().collect() }
    }
}

/// A quantile of times, in seconds.
pub(crate) fn seconds_at(times: &Histogram, part: f64) -> f64 {
    times.quantile(part).map_or(f64::NAN, |time| time.as_secs_f64())
}

/// The unit of a figure, and its number of digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    name: &'static str,
    digits: usize,
}

impl Unit {
    pub(crate) const SECONDS: Unit = Unit::new(" s", 3);
    pub(crate) const MILLIS: Unit = Unit::new(" ms", 2);
    pub(crate) const MICROS: Unit = Unit::new(" µs", 2);
    pub(crate) const NANOS: Unit = Unit::new(" ns", 0);
    pub(crate) const PERCENT: Unit = Unit::new(" %", 1);
    pub(crate) const TIMES: Unit = Unit::new(" times", 2);
    pub(crate) const BYTES: Unit = Unit::new(" B", 0);
    pub(crate) const MEBIBYTES: Unit = Unit::new(" MiB", 2);
    pub(crate) const COUNT: Unit = Unit::new("", 0);
    pub(crate) const GIGABYTES_PER_SECOND: Unit = Unit::new(" GB/s", 2);
    pub(crate) const MILLION_PER_SECOND: Unit = Unit::new(" M/s", 3);
    pub(crate) const THOUSAND_PER_SECOND: Unit = Unit::new(" k/s", 1);

    const fn new(name: &'static str, digits: usize) -> Self {
        Unit { name, digits }
    }

    fn number(self, value: f64) -> String {
        format!("{value:.*}", self.digits)
    }

    pub(crate) fn shown(self, value: f64) -> String {
        format!("{value:.*}{}", self.digits, self.name)
    }

    /// The value with as few digits as it needs.
    pub(crate) fn shown_exactly(self, value: f64) -> String {
        format!("{value}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_shown_by_its_median_and_range() {
        let sample: Sample = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!(sample.shown(Unit::PERCENT), "2.0 % (1.0–3.0)");
        let even: Sample = [1.0, 4.0].into_iter().collect();
        assert_eq!(even.shown(Unit::NANOS), "2 ns (1–4)");
        assert_eq!(Sample::one(7.0).shown(Unit::BYTES), "7 B");
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let ours: Sample = [2.0, 30.0].into_iter().collect();
        let theirs: Sample = [1.0, 10.0].into_iter().collect();
        let ratio = ours.over(&theirs);
        assert_eq!((ratio.min(), ratio.max()), (2.0, 3.0));
    }
}
