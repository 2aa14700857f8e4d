//! An axis: its scale, where its ticks are, and what is written on them.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// How values are laid out along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal steps are equally long. Begins at 0, unless the axis says otherwise.
    Linear,
    /// Doublings are equally long; ticks are powers of two. Values are above 0.
    Log2,
    /// Tenfold steps are equally long; ticks are powers of ten. Values are above 0.
    Log10,
}

/// An axis of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it shows, with its unit: `efficiency, %`.
    pub name: String,
    /// How values are laid out.
    pub scale: Scale,
    /// The range that it shows at least; it grows with the values.
    pub at_least: Option<(f64, f64)>,
}

/// The most ticks. With more, every second one is left out, and so on.
const TICKS_MAX: usize = 14;

impl Axis {
    fn new(name: &str, scale: Scale) -> Self {
        Axis { name: name.to_owned(), scale, at_least: None }
    }

    /// An axis of equal steps from 0.
    pub fn linear(name: &str) -> Self {
        Axis::new(name, Scale::Linear)
    }

    /// An axis of doublings.
    pub fn log2(name: &str) -> Self {
        Axis::new(name, Scale::Log2)
    }

    /// An axis of tenfold steps.
    pub fn log10(name: &str) -> Self {
        Axis::new(name, Scale::Log10)
    }

    /// An axis of percentages, from 0 to 100 at least.
    pub fn percent(name: &str) -> Self {
        Axis::linear(name).showing(0.0, 100.0)
    }

    /// The same axis, which shows this range at least.
    #[must_use]
    pub fn showing(self, low: f64, high: f64) -> Self {
        Axis { at_least: Some((low, high)), ..self }
    }

    /// Whether a value has a place on it.
    pub(super) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// An axis with its ends: places along it are multiples of a step, a doubling or a tenfold step.
#[derive(Clone)]
pub(super) struct Laid {
    scale: Scale,
    /// The places of its ends.
    pub(super) ends: (f64, f64),
    /// The places of its ticks, ascending.
    pub(super) ticks: Vec<f64>,
}

impl Laid {
    /// Lays out an axis for these values, of which there is at least one.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let wanted = axis.at_least.map(|(low, high)| [low, high]).into_iter().flatten();
        let all = values.chain(wanted.filter(|value| axis.can_show(*value)));
        let (low, high) = all
            .map(|value| place(axis.scale, value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
                (low.min(at), high.max(at))
            });
        match axis.scale {
            Scale::Linear if axis.at_least.is_none() => Self::linear(low.min(0.0), high),
            Scale::Linear => Self::linear(low, high),
            Scale::Log2 | Scale::Log10 => Self::logarithmic(axis.scale, low, high),
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 8.0);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let ticks = (0..=(last - first) as u32).map(|n| (first + f64::from(n)) * step);
        // A little room, so that marks at the top are whole.
        let room = (high - low) * 0.03;
        let ends = (first * step, (last * step).max(high + room));
        Laid { scale: Scale::Linear, ends, ticks: ticks.collect() }
    }

    fn logarithmic(scale: Scale, low: f64, high: f64) -> Self {
        let (first, last) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        // Half a tick of room, so that marks at the ends are whole.
        let (begin, end) = match scale {
            Scale::Log2 => (low - 0.4, high + 0.4),
            _ => (first, last),
        };
        let all: Vec<f64> = (0..=(last - first) as u32).map(|n| first + f64::from(n)).collect();
        let stride = all.len().div_ceil(TICKS_MAX);
        let shown = all.into_iter().step_by(stride);
        let ticks = shown.filter(|tick| begin <= *tick && *tick <= end).collect();
        Laid { scale, ends: (begin, end), ticks }
    }

    /// Where a value is along it.
    pub(super) fn place(&self, value: f64) -> f64 {
        place(self.scale, value)
    }

    /// What is written at a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        match self.scale {
            Scale::Linear => short(tick),
            Scale::Log2 if tick >= 0.0 => format!("{}", 2f64.powf(tick).round()),
            Scale::Log2 => format!("1/{}", 2f64.powf(-tick).round()),
            Scale::Log10 => short(10f64.powf(tick)),
        }
    }
}

/// For `plotters`, values are places.
impl Ranged for Laid {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (begin, end): (i32, i32)) -> i32 {
        let part = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        begin + (f64::from(end - begin) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

fn place(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log2 => value.log2(),
        Scale::Log10 => value.log10(),
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not less.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * power)
}

/// A round number in few letters: `0.5`, `20`, `50 k`, `1 M`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    // Six digits: ticks are sums of steps, which are not exact.
    let digits = (scaled * 1e6).round() / 1e6;
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let laid = Laid::of(axis, values.iter().copied());
        laid.ticks.iter().map(|tick| laid.label(*tick)).collect()
    }

    #[test]
    fn cores_have_a_tick_at_each_doubling() {
        let ticks = labels(&Axis::log2("cores"), &[32.0, 131_072.0]);
        assert_eq!(ticks.len(), 13);
        assert_eq!((&*ticks[0], &*ticks[12]), ("32", "131072"));
        assert_eq!(labels(&Axis::log2("cores"), &[16.0, 4_194_304.0])[..3], ["16", "64", "256"]);
        assert_eq!(labels(&Axis::log2("cores"), &[240.0]), ["256"], "one point has room around it");
    }

    #[test]
    fn percentages_go_to_100_at_least() {
        let all = ["0", "20", "40", "60", "80", "100"];
        assert_eq!(labels(&Axis::percent("efficiency, %"), &[71.0, 98.0]), all);
        assert_eq!(labels(&Axis::percent("efficiency, %"), &[103.0]).last().unwrap(), "120");
    }

    #[test]
    fn percentages_may_begin_higher() {
        let axis = Axis::percent("efficiency, %").showing(90.0, 100.0);
        assert_eq!(labels(&axis, &[97.5]), ["90", "92", "94", "96", "98", "100"]);
        assert_eq!(labels(&axis, &[71.0]).first().unwrap(), "70", "nothing is cut off");
    }

    #[test]
    fn large_numbers_are_short() {
        let ticks = labels(&Axis::log10("messages/s"), &[800.0, 3e6]);
        assert_eq!(ticks, ["100", "1000", "10 k", "100 k", "1 M", "10 M"]);
        assert_eq!(labels(&Axis::linear("s"), &[0.35]).last().unwrap(), "0.35");
    }

    #[test]
    fn nothing_but_zeros_has_an_axis_too() {
        assert_eq!(labels(&Axis::linear("s"), &[0.0]).first().unwrap(), "0");
        assert!(!Axis::log2("cores").can_show(0.0) && !Axis::linear("s").can_show(f64::NAN));
    }
}
