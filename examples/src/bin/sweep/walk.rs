//! What is computed: random walks through a table, some much longer than others.

use clap::builder::RangedI64ValueParser;
use serde::{Deserialize, Serialize};
use ultramarine_examples::random;

/// The table, and the points of the sweep.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub(crate) struct Walks {
    /// How many points the sweep has; each is a walk.
    #[arg(long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub(crate) points: u64,
    /// How many steps the shortest walks have; the longest have 64 times as many.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub(crate) steps: u64,
    /// How large the table is, in millions of bytes.
    #[arg(long, value_name = "MB", default_value_t = 50, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub(crate) table_mb: u32,
    /// Which table and which walks.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Walks {
    /// How many numbers the table has.
    pub(crate) fn length(&self) -> usize {
        self.table_mb as usize * 1_000_000 / size_of::<f64>()
    }

    pub(crate) fn table(&self) -> Vec<f64> {
        let mut random = random(self.seed);
        (0..self.length()).map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64).collect()
    }

    /// The mean of what is met on the walk of a point. Each number met says where the next one is.
    pub(crate) fn walk(&self, table: &[f64], point: u64) -> f64 {
        let mut random = random(self.seed ^ random(point)());
        // Half of all walks are the shortest, and so on.
        let steps = self.steps << random().trailing_zeros().min(6);
        let (mut sum, mut last) = (0.0_f64, 0.0_f64);
        for _ in 0..steps {
            last = table[(random() ^ last.to_bits()) as usize % table.len()];
            sum += last;
        }
        sum / steps as f64
    }
}

/// A number that says what came out at a point; the sum of all is that of the sweep.
pub(crate) fn digest(point: u64, value: f64) -> u64 {
    random(point ^ value.to_bits())()
}
