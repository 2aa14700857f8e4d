//! The sum of Euler's totient over a range: the running example of the papers (SymGridPar2 §6.2).
//!
//! The totient is computed naively, by counting coprime numbers. So the work grows with the square
//! of the bound, and tasks with larger numbers take longer.

use crate::{JobFlags, MapFlags, MapRun, Report, TASKS_MAX, print};
use clap::Parser;
use clap::builder::RangedI64ValueParser;
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use std::ops::Range;
use std::pin::pin;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result, shutdown_requested};

/// Sum Euler's totient over 1, 2, …, N.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    /// The last number.
    #[arg(long, value_name = "N", default_value_t = 20_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    upto: u64,
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 400, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=TASKS_MAX))]
    tasks: u32,
    #[command(flatten)]
    map: MapFlags,
    /// Also compute the sum sequentially, and print the efficiency.
    #[arg(long)]
    efficiency: bool,
    /// On SIGTERM or Ctrl-C, end with the sum of the ranges done so far. (The work is then spread
    /// by `par_map_stream`, and --skeleton is ignored.)
    #[arg(long, conflicts_with_all = ["efficiency", "record", "journal"])]
    partial: bool,
    #[command(flatten)]
    job: JobFlags,
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

fn sum_totient(range: Range<u64>) -> u64 {
    range.map(totient).sum()
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, sum_euler)
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

async fn sum_euler(cx: Context, arguments: Arguments) -> Result<()> {
    let cx = arguments.job.begin(cx)?;
    let ranges = split_range(1..arguments.upto + 1, arguments.tasks as usize);
    let mut run = MapRun::begin(&arguments.map, &cx).await?;
    let start = Instant::now();
    let count = ranges.len() as u64;
    let total = if arguments.partial {
        Some(count)
    } else {
        arguments.job.progress.then(|| arguments.map.skeleton.tasks(&cx, ranges.len()))
    };
    let work = async {
        if arguments.partial {
            Ok(sums_in_time(&cx, ranges).await?)
        } else {
            run.map(&cx, sum_totient, ranges).await
        }
    };
    let sums = arguments.job.progress(&cx, total, work).await?;
    let sum: u64 = sums.iter().sum();

    let flags = (arguments.map.skeleton, &arguments.job);
    let mut report = Report::gather(&cx, "sum_euler", flags, start, sum).await?;
    run.finish(&report)?;
    if arguments.partial {
        report = report.with("ranges", sums.len()).with("of", count);
    }
    if arguments.efficiency {
        let start = Instant::now();
        let expected = sum_totient(1..arguments.upto + 1);
        let sequential = start.elapsed().as_secs_f64();
        if expected != sum {
            return Err(Error::other(format!("{sum} came out, but sequentially {expected}")));
        }
        let cores = cx.topology().power_of(cx.topology().ball(Pe::ROOT, Distance::ONE));
        let used = cores.min(std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
        let speedup = sequential / report.elapsed().as_secs_f64();
        print(format_args!(
            "sequentially {sequential:.3} s: {speedup:.2} times faster on {cores} workers, {used} \
             cores here: efficiency {:.1} %\n",
            100.0 * speedup / used as f64
        ))?;
    }
    report.print(&arguments.job)
}
