//! Adaptive quadrature by Simpson's rule (Lyness, Notes on the adaptive Simpson quadrature routine,
//! 1969): a divide and conquer whose shape is unknown in advance.
//!
//! An interval is halved until the sum of its halves nearly equals the whole. Halves are always
//! added in the same order, so the sum has the same bits on any number of PEs. The integrand over x
//! is itself an integral over y, by the same rule, so a single value takes longer near a peak, too.

use crate::{DivideFlags, Job, Solvers, name_of, run_program};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Integrate a function of x and y over a square. The function is hard to integrate in some places.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The function to integrate.
    #[arg(long, value_enum, default_value_t = Function::Peak)]
    function: Function,
    /// The lower limit of both x and y.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[arg(value_parser = |x: &str| number(x, -1e6..=1e6))]
    from: f64,
    /// The upper limit of both x and y.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    #[arg(value_parser = |x: &str| number(x, -1e6..=1e6))]
    to: f64,
    /// The largest error of the integral over an interval that is not divided.
    #[arg(long, value_name = "T", default_value_t = 1e-8)]
    #[arg(value_parser = |t: &str| number(t, 1e-15..=1.0))]
    tolerance: f64,
    #[command(flatten)]
    divide: DivideFlags,
}

fn number(text: &str, range: RangeInclusive<f64>) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().map_err(|e| e.to_string())?;
    let reason = || format!("{text} is not from {:e} to {:e}", range.start(), range.end());
    if range.contains(&number) { Ok(number) } else { Err(reason()) }
}

#[derive(Clone, Copy, ValueEnum, Serialize, Deserialize)]
enum Function {
    /// 1 / ((x - 0.3)² + 10⁻⁶) / ((y - 0.3)² + 10⁻⁶), with a peak of 10¹².
    Peak,
    /// 1 / √(|x - 0.3| |y - 0.3|), which has poles.
    Poles,
    /// The height of a half ball of radius 1, which is steep at its edge.
    Dome,
}

impl Function {
    fn at(self, x: f64, y: f64) -> f64 {
        let peak = |x: f64| 1.0 / ((x - 0.3) * (x - 0.3) + 1e-6);
        match self {
            Function::Peak => peak(x) * peak(y),
            Function::Poles => 1.0 / ((x - 0.3) * (y - 0.3)).abs().sqrt(),
            Function::Dome => (1.0 - x * x - y * y).max(0.0).sqrt(),
        }
    }
}

/// The smallest number of halvings, so that no peak between five points is overlooked.
const LEVELS_MIN: u32 = 4;
/// The largest number of halvings. Then the points of an interval hardly differ.
const LEVELS_MAX: u32 = 50;
/// Intervals of this number of levels are placed; smaller ones stay on their parent's PE.
const LEVELS_PLACED: u32 = 6;

/// The function to integrate, and its limits.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Integrand {
    function: Function,
    /// The limits of both x and y.
    range: (f64, f64),
    tolerance: f64,
    /// A fixed x: then the integral is over y only.
    x: Option<f64>,
}

impl Integrand {
    fn at(self, point: f64) -> f64 {
        match self.x {
            Some(x) => self.function.at(x, point),
            None => sequential(Interval::whole(Integrand { x: Some(point), ..self })),
        }
    }
}

/// A part of the problem, with the values at five points at equal distances.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Interval {
    integrand: Integrand,
    from: f64,
    to: f64,
    values: [f64; 5],
    /// The number of halvings from the whole to this interval.
    level: u32,
}

impl Interval {
    fn whole(integrand: Integrand) -> Self {
        let (from, to) = integrand.range;
        let middle = from.midpoint(to);
        let points = [from, from.midpoint(middle), middle, middle.midpoint(to), to];
        Interval { integrand, from, to, values: points.map(|x| integrand.at(x)), level: 0 }
    }

    /// The integral by Simpson's rule for two halves, and an estimate of its error.
    fn estimate(&self) -> (f64, f64) {
        let values = &self.values;
        let sixth = (self.to - self.from) / 6.0;
        let ends = values[0] + values[4];
        let whole = sixth * (ends + 4.0 * values[2]);
        let halves = 0.5 * sixth * (ends + 4.0 * (values[1] + values[3]) + 2.0 * values[2]);
        (halves, (halves - whole) / 15.0)
    }

    fn is_trivial(&self) -> bool {
        let error = self.estimate().1.abs();
        let is_exact = error <= self.integrand.tolerance || error.is_nan();
        is_exact && self.level >= LEVELS_MIN || self.level == LEVELS_MAX
    }

    fn integral(self) -> f64 {
        let (halves, error) = self.estimate();
        halves + error
    }

    fn halves(&self) -> [Self; 2] {
        let middle = self.from.midpoint(self.to);
        let half = |from: f64, to: f64, values: &[f64]| {
            let middle = from.midpoint(to);
            let [left, right] =
                [from.midpoint(middle), middle.midpoint(to)].map(|x| self.integrand.at(x));
            let values = [values[0], left, values[1], right, values[2]];
            Interval { from, to, values, level: self.level + 1, ..*self }
        };
        [half(self.from, middle, &self.values[..3]), half(middle, self.to, &self.values[2..])]
    }

    fn stolen_within(_: &Self) -> Distance {
        Distance::ONE
    }

    fn placed_within(&self) -> Distance {
        if self.level <= LEVELS_PLACED { Distance::ONE } else { Distance::ZERO }
    }
}

fn with_rayon(interval: Interval) -> f64 {
    if interval.is_trivial() {
        return interval.integral();
    }
    let [left, right] = interval.halves();
    let (left, right) = rayon::join(|| with_rayon(left), || with_rayon(right));
    left + right
}

fn sequential(interval: Interval) -> f64 {
    if interval.is_trivial() {
        return interval.integral();
    }
    let [left, right] = interval.halves().map(sequential);
    left + right
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("quadrature", quadrature)
}

async fn quadrature(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { function, from, to, tolerance, divide } = arguments;
    if from >= to {
        return Err(Error::other(format!("--from must be less than --to, not {from} and {to}")));
    }
    let solvers = Solvers {
        algorithm: DivideAndConquer::new(
            Interval::is_trivial,
            Interval::integral,
            Interval::halves,
            |_, [left, right]| left + right,
        ),
        stolen_within: Interval::stolen_within,
        placed_within: Interval::placed_within,
        rayon: with_rayon,
        sequential,
    };
    let integrand = Integrand { function, range: (from, to), tolerance, x: None };
    let whole = Interval::whole(integrand);
    let (integral, report) = divide.solve(&job, solvers, whole).await?;
    if !integral.is_finite() {
        let reason = "is the function finite there, at the ends too?";
        let name = name_of(&function);
        return Err(Error::other(format!(
            "from {from} to {to} the integral of {name} is {integral}: {reason}"
        )));
    }
    report.print()
}
