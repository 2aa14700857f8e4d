//! The computation: points that are computed again at each step, from some points of the step
//! before. Which ones depends on the pattern. Patterns and kernel are those of Task Bench
//! (Slaughter et al., SC20, table 2 and §III).

use crate::random;
use crate::ranged;
use clap::ValueEnum;

/// Which points of the step before one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Pattern {
    /// None.
    Trivial,
    /// Itself and its neighbours.
    #[value(name = "stencil_1d")]
    Stencil1d,
    /// Itself, and those 2^s to both sides, with s growing step by step and beginning anew.
    Fft,
    /// A binary tree: the point of half its number; once the tree has all points, itself.
    Tree,
    /// Each of the five nearest with a probability of one half.
    RandomNearest,
}

/// What is to be computed.
#[derive(Clone, Copy, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct Grid {
    /// Which points of the step before one needs.
    #[arg(long, value_enum, default_value_t = Pattern::Stencil1d)]
    pub pattern: Pattern,
    /// The number of points.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = ranged::<u32>(1..=1_000_000))]
    pub width: u32,
    /// The number of steps.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u32>(1..=10_000_000))]
    pub steps: u32,
    /// How often a point's kernel computes its 64 numbers: 128 floating-point operations each.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = ranged::<u32>(0..=1_000_000_000))]
    pub iterations: u32,
}

impl Grid {
    /// The number of points of a step. A tree begins with one and doubles.
    pub fn width_at(&self, step: u32) -> u32 {
        match self.pattern {
            Pattern::Tree => self.width.min(1_u32.checked_shl(step).unwrap_or(u32::MAX)),
            _ => self.width,
        }
    }

    /// The points of the step before that one needs, in order. `step` is not the first.
    pub fn inputs(&self, step: u32, point: u32) -> impl Iterator<Item = u32> + use<> {
        let (pattern, width) = (self.pattern, self.width_at(step - 1));
        let around = |by: u32| {
            let by = i64::from(by);
            [i64::from(point) - by, i64::from(point), i64::from(point) + by]
        };
        let candidates: Vec<i64> = match pattern {
            Pattern::Trivial => vec![],
            Pattern::Stencil1d => around(1).to_vec(),
            Pattern::Fft => {
                let levels = self.width.ilog2().max(1);
                around(1 << ((step - 1) % levels)).to_vec()
            }
            Pattern::Tree if self.width_at(step) > width => vec![i64::from(point / 2)],
            Pattern::Tree => vec![i64::from(point)],
            Pattern::RandomNearest => {
                let seed = u64::from(step) << 32 | u64::from(point);
                let mut draw = random(seed);
                let nearest = i64::from(point) - 2..=i64::from(point) + 2;
                nearest.filter(|_| draw() >> 63 == 0).collect()
            }
        };
        let is_there = move |point: &i64| (0..i64::from(width)).contains(point);
        candidates.into_iter().filter(is_there).map(|point| point as u32)
    }

    /// The points of the step before that no point of this step needs, in order.
    pub fn unread(&self, step: u32) -> Vec<u32> {
        if matches!(self.pattern, Pattern::Stencil1d | Pattern::Fft | Pattern::Tree) {
            return Vec::new();
        }
        let mut is_read = vec![false; self.width_at(step - 1) as usize];
        for point in 0..self.width_at(step) {
            self.inputs(step, point).for_each(|input| is_read[input as usize] = true);
        }
        (0..).zip(is_read).filter(|(_, is_read)| !is_read).map(|(point, _)| point).collect()
    }

    /// The number of all points of all steps.
    pub fn points(&self) -> u64 {
        (0..self.steps).map(|step| u64::from(self.width_at(step))).sum()
    }
}

/// A point, computed from those that it needs. Its kernel is for time only.
pub fn compute(point: u32, iterations: u32, inputs: impl Iterator<Item = u64>) -> u64 {
    let mut numbers = std::hint::black_box([1.2345_f64; 64]);
    for _ in 0..iterations {
        for number in &mut numbers {
            *number = *number * *number + *number;
        }
    }
    std::hint::black_box(numbers);
    let add = |sum: u64, input: u64| sum.rotate_left(5).wrapping_mul(31).wrapping_add(input);
    inputs.fold(u64::from(point) + 1, add)
}
