//! What is computed: a plate whose edges keep their heat, and the heat inside after some steps of
//! Jacobi's method.

use clap::builder::RangedI64ValueParser;
use std::ops::Range;
use ultramarine_examples::random;

/// The plate, and how long its heat spreads.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Plate {
    /// How many rows of points the plate has, without the two at its edges.
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<usize>::new().range(1..=20_000))]
    pub(crate) rows: usize,
    /// How many points a row has, with the two at its edges.
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<usize>::new().range(3..=20_000))]
    pub(crate) columns: usize,
    /// For how many steps the heat spreads.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub(crate) steps: u64,
    /// Which plate.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Plate {
    /// All points, row after row, the edges as well, as they are at first.
    pub(crate) fn points(&self) -> Vec<f64> {
        let mut random = random(self.seed);
        let points = 0..(self.rows + 2) * self.columns;
        points.map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64).collect()
    }

    /// Which of these points are those of some rows and of the two beside them.
    pub(crate) fn around(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start * self.columns..(rows.end + 2) * self.columns
    }
}

/// One step for some rows, counted from 0 at the upper edge: each point that is not at the end of
/// its row becomes the mean of its four neighbours.
pub(crate) fn step(columns: usize, rows: Range<usize>, old: &[f64], new: &mut [f64]) {
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

/// A number that says what came out at some points, the first of which has this index. The sum for
/// all points is that of the plate.
pub(crate) fn digest(first: usize, points: &[f64]) -> u64 {
    let digests = (first..).zip(points).map(|(n, point)| random(n as u64 ^ point.to_bits())());
    digests.fold(0, u64::wrapping_add)
}
