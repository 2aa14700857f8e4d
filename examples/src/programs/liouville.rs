//! The Summatory Liouville function, with which the papers measure recovery from failures
//! (SymGridPar2 §6.3, HdpH-RS §6.5): `L(n) = λ(1) + λ(2) + … + λ(n)`, where `λ(k)` is 1 if `k` has
//! an even number of prime factors, counted with multiplicity, and -1 if it has an odd number.
//!
//! Each task counts the prime factors of its own numbers: it sieves them, block by block, with the
//! primes up to the square root of the largest, which it finds itself. So tasks only compute, tasks
//! of equal length take nearly equal time, and an argument is two numbers.

use crate::{Job, MapFlags, TASKS_MAX, ranged, run_program};
use std::ops::Range;
use ultramarine::Result;
use ultramarine::prelude::*;

/// Sum Liouville's function over 1, 2, …, N.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The last number.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    #[arg(value_parser = ranged::<u64>(1..=UPTO_MAX as i64))]
    upto: u64,
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 100)]
    #[arg(value_parser = ranged::<u32>(1..=TASKS_MAX))]
    tasks: u32,
    #[command(flatten)]
    map: MapFlags,
}

/// The largest `--upto`. Each task sieves with all primes up to its square root, a million.
pub const UPTO_MAX: u64 = 1_000_000_000_000;

/// The number of numbers sieved at a time. Their products fit the first cache of a core.
pub const BLOCK: usize = 1 << 15;

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("liouville", liouville)
}

async fn liouville(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { upto, tasks, map } = arguments;
    let ranges = split_range(1..upto + 1, tasks as usize);
    let (sums, map) = map.run(&job, sum_liouville, ranges).await?;
    map.report(&job, sums.iter().sum::<i64>()).await?.print()
}

/// The sum of `λ` over the range, which is not empty and starts at 1 or later.
pub fn sum_liouville(range: Range<u64>) -> i64 {
    let primes = primes_up_to((range.end - 1).isqrt());
    let mut products = vec![1; BLOCK.min((range.end - range.start) as usize)];
    let starts = range.clone().step_by(BLOCK);
    starts
        .map(|start| {
            let length = (range.end - start).min(BLOCK as u64) as usize;
            let products = &mut products[..length];
            sieve(start, products, &primes);
            let liouville = |(n, product): (u64, &i64)| {
                // At most one prime factor is missing: one greater than the square root.
                let is_whole = product.unsigned_abs() == n;
                if is_whole { product.signum() } else { -product.signum() }
            };
            (start..).zip(&*products).map(liouville).sum::<i64>()
        })
        .sum()
}

/// Computes for each number from `start` on the product of its prime factors among `primes`, each
/// negated, so that the sign tells whether the number of factors is even.
fn sieve(start: u64, products: &mut [i64], primes: &[u64]) {
    products.fill(1);
    let end = start + products.len() as u64;
    for &prime in primes.iter().take_while(|prime| *prime * *prime < end) {
        // Each power of the prime adds one factor to its multiples.
        let mut power = prime;
        while power < end {
            let first = (start.next_multiple_of(power) - start) as usize;
            for product in products.iter_mut().skip(first).step_by(power as usize) {
                *product *= -(prime as i64);
            }
            power *= prime;
        }
    }
}

/// The sieve of Eratosthenes.
fn primes_up_to(last: u64) -> Vec<u64> {
    let mut is_composite = vec![false; last as usize + 1];
    let mut primes = Vec::new();
    for n in 2..=last {
        if !is_composite[n as usize] {
            primes.push(n);
            is_composite
                .iter_mut()
                .skip((n * n) as usize)
                .step_by(n as usize)
                .for_each(|c| *c = true);
        }
    }
    primes
}
