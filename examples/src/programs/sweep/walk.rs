//! The computation: random walks through a table, some much longer than others.

use crate::random;
use crate::ranged;
use serde::{Deserialize, Serialize};

/// The table, and the points of the sweep.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub struct Walks {
    /// The number of points. Each is one walk.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    pub points: u64,
    /// The number of steps of the shortest walks. The longest have 64 times as many.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    pub steps: u64,
    /// The size of the table in megabytes (10^6 bytes).
    #[arg(long, value_name = "MB", default_value_t = 50, value_parser = ranged::<u32>(1..=4_000))]
    pub table_mb: u32,
    /// The seed of the table and of the walks.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Walks {
    /// The number of entries of the table.
    pub fn length(&self) -> usize {
        self.table_mb as usize * 1_000_000 / size_of::<f64>()
    }

    /// The table: random numbers between 0 and 1.
    pub fn table(&self) -> Vec<f64> {
        let mut random = random(self.seed);
        (0..self.length()).map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64).collect()
    }

    /// The mean of the entries on the walk of a point. Each entry determines the next one.
    pub fn walk(&self, table: &[f64], point: u64) -> f64 {
        let mut random = random(self.seed ^ random(point)());
        // Half of all walks have the shortest length, a quarter twice that, and so on.
        let steps = self.steps << random().trailing_zeros().min(6);
        let (mut sum, mut last) = (0.0_f64, 0.0_f64);
        for _ in 0..steps {
            last = table[(random() ^ last.to_bits()) as usize % table.len()];
            sum += last;
        }
        sum / steps as f64
    }
}

/// A digest of the result of a point. The digest of the sweep is the sum of these.
pub fn digest(point: u64, value: f64) -> u64 {
    random(point ^ value.to_bits())()
}
