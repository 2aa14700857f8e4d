//! Fibonacci numbers by the naive recursion, `F(n) = F(n - 1) + F(n - 2)`: a divide and conquer
//! with nothing in it but the dividing, so that its time is what the skeletons cost (SymGridPar2
//! figure 9).
//!
//! The time grows as `F(n)` does, by three fifths with each `n`: 40 takes seconds, and 93, the last
//! whose number fits 64 bits, longer than anybody waits.

use clap::Parser;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine_examples::{Division, JobFlags, Report, Ways, name_of};

/// Compute F(N), where F(0) = 0 and F(1) = 1, by dividing and conquering.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Which number; the last fits 64 bits.
    #[arg(long, value_name = "N", default_value_t = 35, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=N_MAX))]
    n: u32,
    /// Solve problems up to this one by a plain recursion, without dividing them.
    #[arg(long, value_name = "T", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=N_MAX))]
    threshold: u32,
    /// How the work is spread.
    #[arg(long, value_enum, default_value_t = Division::ParDivideAndConquer)]
    skeleton: Division,
    #[command(flatten)]
    job: JobFlags,
}

/// `F(94)` is greater than `u64::MAX`.
const N_MAX: i64 = 93;

/// From this number on a problem is worth a message to anybody: `F(24)` takes milliseconds.
const FAR: u32 = 24;

/// From this on, to a PE nearby: `F(16)` takes tens of microseconds.
const NEAR: u32 = 16;

/// This many levels of the recursion are placed: at most 2⁵ - 1 problems, a few for each PE of a
/// small job. A PE that dies takes no more with it than those of them that it had, and what they
/// placed.
const LEVELS_PLACED: u32 = 5;

/// A part of the problem, and what all parts need to know.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Problem {
    n: u32,
    threshold: u32,
    /// How often the whole was divided to get here.
    level: u32,
}

impl Problem {
    fn is_trivial(&self) -> bool {
        self.n < 2 || self.n <= self.threshold
    }

    fn parts(&self) -> [Problem; 2] {
        [1, 2].map(|less| Problem { n: self.n - less, level: self.level + 1, ..*self })
    }

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

fn fibonacci(n: u32) -> u64 {
    if n < 2 { n.into() } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn sequential(problem: Problem) -> u64 {
    fibonacci(problem.n)
}

fn with_rayon(problem: Problem) -> u64 {
    if problem.is_trivial() {
        return sequential(problem);
    }
    let [one_less, two_less] = problem.parts();
    let (a, b) = rayon::join(|| with_rayon(one_less), || with_rayon(two_less));
    a + b
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.options.clone().run(async move |cx| run(cx, arguments).await)
}

async fn run(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { n, threshold, skeleton, job } = arguments;
    let cx = job.begin(cx)?;
    let ways = Ways {
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
    };
    let start = Instant::now();
    let work = skeleton.conquer(&cx, ways, Problem { n, threshold, level: 0 });
    let result = job.progress(&cx, None, work).await?;
    Report::gather(&cx, "fibonacci", (name_of(&skeleton), &job), start, result).await?.print(&job)
}
