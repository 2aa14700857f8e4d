//! The sum of Euler's totient over a range: the running example of the papers (SymGridPar2 §6.2).
//!
//! The totient is computed naively, by counting coprime numbers. So the work grows with the square
//! of the bound, and tasks with larger numbers take longer. Or GAP computes it.

use crate::arena::{ArenaFlags, Units, numbers_in, run_in_arena, unit_of};
use crate::{Job, MapFlags, TASKS_MAX, name_of, print, ranged, run_program};
use clap::ValueEnum;
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::pin::pin;
use std::sync::LazyLock;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result, shutdown_requested};
use ultramarine_gap::{GapError, Pool, Settings};

/// The GAPs of this process.
static GAP: LazyLock<Pool> = LazyLock::new(|| {
    Pool::new(
        Settings::default().library("SumPhi := { from, to } -> Sum([ from .. to - 1 ], Phi);"),
    )
});

/// How the totient is computed.
#[derive(Clone, Copy, ValueEnum)]
enum Phi {
    /// By counting coprime numbers
    Naive,
    /// By GAP, which factorises
    Gap,
}

/// Sum Euler's totient over 1, 2, …, N.
#[derive(Clone, clap::Args)]
#[command(mut_arg("record", |record| record.conflicts_with("arena")))]
struct Arguments {
    /// The last number.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    upto: u64,
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 400)]
    #[arg(value_parser = ranged::<u32>(1..=TASKS_MAX))]
    tasks: u32,
    /// How the totient is computed.
    #[arg(long, value_enum, default_value_t = Phi::Naive, conflicts_with = "arena")]
    phi: Phi,
    #[command(flatten)]
    map: MapFlags,
    #[command(flatten)]
    arena: ArenaFlags,
    /// Also compute the sum sequentially, and print the efficiency.
    #[arg(long, conflicts_with = "arena")]
    efficiency: bool,
    /// On SIGTERM or Ctrl-C, end with the sum of the ranges done so far. (The work is then spread
    /// by `par_map_stream`, and --skeleton is ignored.)
    #[arg(long, conflicts_with_all = ["arena", "efficiency", "record", "journal", "phi"])]
    partial: bool,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn totient(n: u64) -> u64 {
    (1..=n).filter(|k| gcd(n, *k) == 1).count() as u64
}

/// The sum of totients of a range.
pub fn sum_totient(range: Range<u64>) -> u64 {
    range.map(totient).sum()
}

/// The same, by GAP.
fn sum_phi(range: Range<u64>) -> std::result::Result<u64, GapError> {
    Ok(GAP.call("SumPhi", &[range.start.into(), range.end.into()])?.try_into()?)
}

/// Has each PE start its first GAP, which takes a second, before the clock runs.
async fn start_gaps(cx: &Context) -> std::result::Result<(), GapError> {
    let start = |pe| cx.spawn_at(Pe::new(pe), async |_, ()| GAP.available(), ());
    for started in (0..cx.pes()).map(start).collect::<Vec<_>>() {
        // A PE that has died needs none.
        if let Ok(started) = started.await {
            started?;
        }
    }
    Ok(())
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    let ended = run_program("sum_euler", sum_euler);
    GAP.end_idle();
    ended
}

/// The sums of the ranges that are done before the job is asked to end.
async fn sums_in_time(
    cx: &Context,
    ranges: Vec<Range<u64>>,
) -> std::result::Result<Vec<u64>, TaskError> {
    let window = 4 * cx.topology().power_of(cx.topology().ball(Pe::ROOT, Distance::ONE)) as usize;
    let mut asked = pin!(shutdown_requested());
    let mut sums = pin!(par_map_stream(cx, window, sum_totient, ranges));
    let mut done = Vec::new();
    while let Either::Right((Some(sum), _)) = select(&mut asked, sums.next()).await {
        done.push(sum?.1);
    }
    Ok(done)
}

/// The sum as units: first the division into ranges, then each range.
#[derive(Serialize, Deserialize)]
struct Ranges {
    upto: u64,
    tasks: u32,
}

impl Units for Ranges {
    type Found = u64;

    fn whole(&self) -> Vec<u8> {
        Vec::new()
    }

    fn run(&self, unit: &[u8], left: &mut Vec<Vec<u8>>) -> Option<u64> {
        if unit.is_empty() {
            let ranges = split_range(1..self.upto + 1, self.tasks as usize);
            left.extend(ranges.into_iter().map(|range| unit_of([range.start, range.end])));
            return Some(0);
        }
        let [start, end] = numbers_in(unit)?;
        Some(sum_totient(start..end))
    }

    fn add(sum: &mut u64, more: u64) {
        *sum += more;
    }
}

async fn sum_euler(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { upto, tasks, phi, map, arena, efficiency, partial } = arguments;
    if let Some(file) = arena.file {
        let run = run_in_arena(&job, &file, &Ranges { upto, tasks }).await?;
        return run.report(&job, run.found).await?.print();
    }
    let ranges = split_range(1..upto + 1, tasks as usize);
    if partial {
        let (start, count) = (Instant::now(), ranges.len() as u64);
        let sums = job.progress(count, sums_in_time(&job.cx, ranges)).await?;
        let report = job.report(name_of(&map.skeleton), start, sums.iter().sum::<u64>()).await?;
        return report.with("ranges", sums.len()).with("of", count).print();
    }
    let (sums, map) = match phi {
        Phi::Naive => map.run(&job, sum_totient, ranges).await?,
        Phi::Gap => {
            start_gaps(&job.cx).await?;
            let (sums, map) = map.run(&job, sum_phi, ranges).await?;
            (sums.into_iter().collect::<std::result::Result<_, _>>()?, map)
        }
    };
    let sum: u64 = sums.iter().sum();
    let report = map.report(&job, sum).await?;
    if efficiency {
        print_efficiency(&job.cx, (upto, sum), report.elapsed().as_secs_f64())?;
    }
    report.print()
}

/// Computes the sum again, sequentially, and compares result and time.
fn print_efficiency(cx: &Context, (upto, sum): (u64, u64), seconds: f64) -> Result<()> {
    let start = Instant::now();
    let expected = sum_totient(1..upto + 1);
    let sequential = start.elapsed().as_secs_f64();
    if expected != sum {
        return Err(Error::other(format!("{sum} came out, but sequentially {expected}")));
    }
    let cores = cx.topology().power_of(cx.topology().ball(Pe::ROOT, Distance::ONE));
    let used = cores.min(std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
    let speedup = sequential / seconds;
    print(format_args!(
        "sequentially {sequential:.3} s: {speedup:.2} times faster on {cores} workers, {used} \
         cores here: efficiency {:.1} %\n",
        100.0 * speedup / used as f64
    ))
}
