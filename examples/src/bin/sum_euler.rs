//! The sum of Euler's totient over a range: the running example of the papers (SymGridPar2 §6.2).
//!
//! The totient is computed naively, by counting coprime numbers, so that the work grows with the
//! square of the bound and a task costs the more the larger its numbers are.

use clap::Parser;
use clap::builder::RangedI64ValueParser;
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use std::ops::Range;
use std::pin::pin;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result, shutdown_requested};
use ultramarine_examples::{JobFlags, Report, Skeleton, TASKS_MAX, print};

/// Sum Euler's totient over 1, 2, …, N.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The last number; the sum must fit 64 bits.
    #[arg(long, value_name = "N", default_value_t = 20_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    upto: u64,
    /// How many tasks the range is cut into.
    #[arg(long, value_name = "K", default_value_t = 400, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=TASKS_MAX))]
    tasks: u32,
    /// How the work is spread.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMap)]
    skeleton: Skeleton,
    /// Compute sequentially too, and print the efficiency.
    #[arg(long)]
    efficiency: bool,
    /// End when asked to, by SIGTERM or Ctrl-C, with the sum of those ranges that are done by then.
    /// (The work is spread by `par_map_stream`, whatever the skeleton.)
    #[arg(long, conflicts_with = "efficiency")]
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.options.clone().run(async move |cx| sum_euler(cx, arguments).await)
}

/// The sums of as many ranges as there is time for.
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
    let ranges = chunks(1..arguments.upto + 1, arguments.tasks as usize);
    let start = Instant::now();
    let count = ranges.len() as u64;
    let total = if arguments.partial {
        Some(count)
    } else {
        arguments.job.progress.then(|| arguments.skeleton.tasks(&cx, ranges.len()))
    };
    let work = async {
        if arguments.partial {
            sums_in_time(&cx, ranges).await
        } else {
            arguments.skeleton.map(&cx, sum_totient, ranges).await
        }
    };
    let sums = arguments.job.progress(&cx, total, work).await?;
    let sum: u64 = sums.iter().sum();

    let mut report =
        Report::gather(&cx, "sum_euler", (arguments.skeleton, &arguments.job), start, sum).await?;
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
