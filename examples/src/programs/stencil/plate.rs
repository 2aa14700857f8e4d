//! The computation: the heat inside a plate whose edges keep their heat, after some steps of
//! Jacobi's method.

use crate::random;
use crate::ranged;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The plate and the number of steps.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub struct Plate {
    /// The number of rows of points, without the two edge rows.
    #[arg(long, value_name = "N", default_value_t = 512)]
    #[arg(value_parser = ranged::<usize>(1..=20_000))]
    pub rows: usize,
    /// The number of points of a row, with the two edge points.
    #[arg(long, value_name = "N", default_value_t = 512)]
    #[arg(value_parser = ranged::<usize>(3..=20_000))]
    pub columns: usize,
    /// The number of steps to compute.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    pub steps: u64,
    /// The seed of the random heat at the start.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Plate {
    /// All points at the start, row after row, edges included.
    pub fn points(&self) -> Vec<f64> {
        let mut random = random(self.seed);
        let points = 0..(self.rows + 2) * self.columns;
        points.map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64).collect()
    }

    /// The range of points of some rows and of the row on each side.
    pub fn around(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start * self.columns..(rows.end + 2) * self.columns
    }
}

/// Computes one step for some rows, counted from 0 at the upper edge: each point that is not at an
/// end of its row becomes the mean of its four neighbours.
pub fn step(columns: usize, rows: Range<usize>, old: &[f64], new: &mut [f64]) {
    for start in rows.map(|row| row * columns) {
        let (above, rest) = old[start - columns..start + 2 * columns].split_at(columns);
        let (row, below) = rest.split_at(columns);
        let beside = row.iter().zip(&row[2..]);
        let across = above[1..].iter().zip(&below[1..]);
        let new = &mut new[start + 1..];
        for ((new, (left, right)), (above, below)) in new.iter_mut().zip(beside).zip(across) {
            *new = 0.25 * ((above + below) + (left + right));
        }
    }
}

/// A digest of some points, the first of which has this index. The digest of the plate is the sum
/// of those of its parts.
pub fn digest(first: usize, points: &[f64]) -> u64 {
    let digests = (first..).zip(points).map(|(n, point)| random(n as u64 ^ point.to_bits())());
    digests.fold(0, u64::wrapping_add)
}
