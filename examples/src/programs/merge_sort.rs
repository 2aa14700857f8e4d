//! Merge sort of many numbers: each task gets megabytes of numbers and returns them sorted, and the
//! root merges the results. Its speed depends on how fast data gets to a task and back.
//!
//! The arguments are arrays, which are sent without encoding. The results are structures, which are
//! encoded.

use crate::{Job, MapFlags, TASKS_MAX, random, ranged, run_program};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Sort random numbers, and print a digest of the sorted sequence.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// How many numbers to sort, of 8 bytes each.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    #[arg(value_parser = ranged::<usize>(1..=NUMBERS_MAX))]
    numbers: usize,
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 40)]
    #[arg(value_parser = ranged::<u32>(1..=TASKS_MAX))]
    tasks: u32,
    /// The seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    map: MapFlags,
}

/// The largest `--numbers`. The root holds all of them twice.
const NUMBERS_MAX: i64 = 1_000_000_000;

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("merge_sort", merge_sort)
}

async fn merge_sort(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { numbers, tasks, seed, map } = arguments;
    let mut random = random(seed);
    let parts: Vec<Vec<u64>> = split_range(0..numbers as u64, tasks as usize)
        .into_iter()
        .map(|part| part.map(|_| random()).collect())
        .collect();
    let (runs, map) = map.run(&job, SortedRun::of, parts).await?;
    let whole = |runs: &[SortedRun]| runs.iter().all(SortedRun::is_whole);
    if !whole(&runs) || runs.iter().map(|run| run.numbers.len()).sum::<usize>() != numbers {
        return Err(Error::other("some numbers are not what was sent"));
    }
    map.report(&job, digest(merge(&runs)).cast_signed()).await?.print()
}

/// Sorted numbers.
#[derive(Serialize, Deserialize)]
pub struct SortedRun {
    /// The numbers.
    pub numbers: Vec<u64>,
    digest: u64,
}

impl SortedRun {
    /// Sorts the numbers.
    pub fn of(mut numbers: Vec<u64>) -> SortedRun {
        numbers.sort_unstable();
        let digest = digest(numbers.iter().copied());
        SortedRun { numbers, digest }
    }

    /// Whether it arrived unchanged.
    pub fn is_whole(&self) -> bool {
        self.digest == digest(self.numbers.iter().copied()) && self.numbers.is_sorted()
    }
}

/// The numbers of all runs, in order.
pub fn merge(runs: &[SortedRun]) -> impl Iterator<Item = u64> {
    let mut rests: Vec<_> = runs.iter().map(|run| run.numbers.iter().copied()).collect();
    let firsts = rests.iter_mut().enumerate();
    let mut heads: BinaryHeap<_> =
        firsts.filter_map(|(run, rest)| Some(Reverse((rest.next()?, run)))).collect();
    std::iter::from_fn(move || {
        let mut head = heads.peek_mut()?;
        let Reverse((number, run)) = *head;
        match rests[run].next() {
            Some(next) => *head = Reverse((next, run)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Some(number)
    })
}

/// A digest of the numbers and their order.
fn digest(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, |digest, number| (digest.rotate_left(5) ^ number).wrapping_mul(MULTIPLIER))
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
