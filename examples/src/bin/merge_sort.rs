//! Merge sort of many numbers: each task gets some of them, megabytes, and sends them back in
//! order; the root merges what comes. What counts here is how fast data gets to a task and back.
//!
//! The arguments are arrays, which travel as they are. The results are structures, which are
//! encoded.

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};
use ultramarine_examples::{JobFlags, Report, Skeleton, TASKS_MAX, random};

/// Sort random numbers, and print a digest of them in order.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How many numbers, of 8 bytes each.
    #[arg(long, value_name = "N", default_value_t = 20_000_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=NUMBERS_MAX))]
    numbers: usize,
    /// How many tasks they are dealt out to.
    #[arg(long, value_name = "K", default_value_t = 40, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=TASKS_MAX))]
    tasks: u32,
    /// Which numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the work is spread.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMap)]
    skeleton: Skeleton,
    #[command(flatten)]
    job: JobFlags,
}

/// All of them lie on the root, twice.
const NUMBERS_MAX: u64 = 1_000_000_000;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.options.clone().run(async move |cx| merge_sort(cx, arguments).await)
}

async fn merge_sort(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { numbers, tasks, seed, skeleton, job } = arguments;
    let cx = job.begin(cx)?;
    let mut random = random(seed);
    let parts: Vec<Vec<u64>> = chunks(0..numbers as u64, tasks as usize)
        .into_iter()
        .map(|part| part.map(|_| random()).collect())
        .collect();
    let start = Instant::now();
    let total = job.progress.then(|| skeleton.tasks(&cx, parts.len()));
    let work = skeleton.map(&cx, Run::of, parts);
    let runs = job.progress(&cx, total, work).await?;
    let whole = |runs: &[Run]| runs.iter().all(Run::is_whole);
    if !whole(&runs) || runs.iter().map(|run| run.numbers.len()).sum::<usize>() != numbers {
        return Err(Error::other("some numbers are not what was sent"));
    }
    let digest = digest(merge(&runs)).cast_signed();
    Report::gather(&cx, "merge_sort", (skeleton, &job), start, digest).await?.print(&job)
}

/// Numbers in order.
#[derive(Serialize, Deserialize)]
struct Run {
    numbers: Vec<u64>,
    digest: u64,
}

impl Run {
    fn of(mut numbers: Vec<u64>) -> Run {
        numbers.sort_unstable();
        let digest = digest(numbers.iter().copied());
        Run { numbers, digest }
    }

    /// Whether it is as it was made.
    fn is_whole(&self) -> bool {
        self.digest == digest(self.numbers.iter().copied()) && self.numbers.is_sorted()
    }
}

/// The numbers of all runs, in order.
fn merge(runs: &[Run]) -> impl Iterator<Item = u64> {
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

/// A number that says what the others are, and in which order.
fn digest(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, |digest, number| (digest.rotate_left(5) ^ number).wrapping_mul(MULTIPLIER))
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_sorting() {
        let mut random = random(7);
        let parts: Vec<Vec<u64>> =
            (0..9).map(|n| (0..n * 10).map(|_| random()).collect()).collect();
        let mut all = parts.concat();
        all.sort_unstable();
        let runs: Vec<Run> = parts.into_iter().map(Run::of).collect();
        assert!(merge(&runs).eq(all));
    }

    #[test]
    fn a_change_is_seen() {
        let mut run = Run::of((0..1000).rev().collect());
        assert!(run.is_whole());
        run.numbers[500] += 1;
        assert!(!run.is_whole());
    }
}
