//! Fibonacci numbers by the naive recursion, `F(n) = F(n - 1) + F(n - 2)`: a divide and conquer
//! that does nothing but divide, so that its time is the overhead of the skeletons (SymGridPar2
//! figure 9).
//!
//! The time grows like `F(n)`, by three fifths with each `n`: 40 takes seconds, and 93, the last
//! whose number fits 64 bits, would take thousands of years.

use crate::arena::{ArenaFlags, Units, numbers_in, run_in_arena, unit_of};
use crate::{DivideFlags, Job, Solvers, ranged, run_program};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;
use ultramarine::{Result, Stateless};

/// Compute the Fibonacci number F(N), where F(0) = 0 and F(1) = 1, by divide and conquer.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The index of the number to compute. F(93) is the last that fits 64 bits.
    #[arg(long, value_name = "N", default_value_t = 35, value_parser = ranged::<u32>(1..=N_MAX))]
    n: u32,
    /// Do not divide problems F(T) and smaller; compute them by a plain recursion.
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = ranged::<u32>(0..=N_MAX))]
    threshold: u32,
    #[command(flatten)]
    divide: DivideFlags,
    #[command(flatten)]
    arena: ArenaFlags,
}

/// `F(94)` is greater than `u64::MAX`.
const N_MAX: i64 = 93;

/// Problems from here on are worth a message to any PE: `F(24)` takes milliseconds.
const FAR: u32 = 24;

/// Problems from here on are worth a message to a near PE: `F(16)` takes tens of microseconds.
const NEAR: u32 = 16;

/// The number of levels whose problems are placed: at most 2⁵ - 1 problems, a few for each PE of a
/// small job. A PE that dies loses only its own placed problems, and those placed by them.
const LEVELS_PLACED: u32 = 5;

/// A number to compute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Problem {
    n: u32,
    threshold: u32,
    /// The number of divisions from the whole problem to this part.
    level: u32,
}

impl Problem {
    /// The number F(n), which is divided down to F(threshold).
    pub fn new(n: u32, threshold: u32) -> Self {
        Problem { n, threshold, level: 0 }
    }

    /// Whether it is not divided.
    #[inline]
    pub fn is_trivial(&self) -> bool {
        self.n < 2 || self.n <= self.threshold
    }

    /// The two numbers whose sum it is.
    #[inline]
    pub fn parts(&self) -> [Problem; 2] {
        [1, 2].map(|less| Problem { n: self.n - less, level: self.level + 1, ..*self })
    }

    #[inline]
    fn stolen_within(&self) -> Distance {
        match self.n {
            FAR.. => Distance::ONE,
            NEAR..FAR => Distance::ONE.half(),
            _ => Distance::ZERO,
        }
    }

    fn placed_within(&self) -> Distance {
        if self.level <= LEVELS_PLACED { Distance::ONE } else { Distance::ZERO }
    }
}

/// The parts as units. Each costs a task, and so more than the problems of a small threshold.
impl Units for Problem {
    type Found = u64;

    fn whole(&self) -> Vec<u8> {
        unit_of([self.n, self.level].map(u64::from))
    }

    fn run(&self, unit: &[u8], left: &mut Vec<Vec<u8>>) -> Option<u64> {
        let [n, level] = numbers_in(unit)?.map(|number| number as u32);
        let part = Problem { n, level, ..*self };
        if part.is_trivial() {
            return Some(sequential(part));
        }
        left.extend(part.parts().map(|part| part.whole()));
        Some(0)
    }

    fn add(sum: &mut u64, more: u64) {
        *sum += more;
    }
}

fn fibonacci(n: u32) -> u64 {
    if n < 2 { n.into() } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// The number, by a plain recursion.
#[inline]
pub fn sequential(problem: Problem) -> u64 {
    fibonacci(problem.n)
}

/// The number, by a recursion with [`rayon::join`].
pub fn with_rayon(problem: Problem) -> u64 {
    if problem.is_trivial() {
        return sequential(problem);
    }
    let [one_less, two_less] = problem.parts();
    let (a, b) = rayon::join(|| with_rayon(one_less), || with_rayon(two_less));
    a + b
}

/// How skeletons compute the number, and how it is computed without them.
pub fn solvers() -> Solvers<
    impl Algorithm<Problem = Problem, Solution = u64>,
    impl Fn(&Problem) -> Distance + Stateless,
    impl Fn(&Problem) -> Distance + Stateless,
> {
    Solvers {
        algorithm: DivideAndConquer::new(
            Problem::is_trivial,
            sequential,
            Problem::parts,
            |_, [one_less, two_less]| one_less + two_less,
        ),
        stolen_within: Problem::stolen_within,
        placed_within: Problem::placed_within,
        rayon: with_rayon,
        sequential,
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("fibonacci", run)
}

async fn run(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { n, threshold, divide, arena } = arguments;
    if let Some(file) = arena.file {
        let run = run_in_arena(&job, &file, &Problem::new(n, threshold)).await?;
        return run.report(&job, run.found).await?.print();
    }
    let (_, report) = divide.solve(&job, solvers(), Problem::new(n, threshold)).await?;
    report.print()
}
