//! Tasks that sleep instead of computing. So eight PEs on two cores behave like eight PEs on eight
//! cores, as far as the runtime itself needs no core. `cargo xtask simulate validate` compares such
//! jobs with simulated ones.

use crate::{JobFlags, MapFlags, MapRun, Report, TASKS_MAX, random};
use clap::Parser;
use clap::builder::RangedI64ValueParser;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Sleep in each task for a random time.
///
/// The result is the sum of these times, in microseconds.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 400, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=TASKS_MAX))]
    tasks: u32,
    /// The shortest time of a task, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 1_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=NAP_MAX_US))]
    shortest: u64,
    /// The longest time of a task, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 10_000, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<u64>::new().range(1..=NAP_MAX_US))]
    longest: u64,
    /// The seed of the times.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    map: MapFlags,
    #[command(flatten)]
    job: JobFlags,
}

/// The longest time of a task, in microseconds. A worker that does nothing for longer is reported.
const NAP_MAX_US: i64 = 1_000_000;

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, naps)
}

async fn naps(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { tasks, shortest, longest, seed, map, job } = arguments;
    if shortest > longest {
        return Err(Error::other(format!(
            "--shortest {shortest} is more than --longest {longest}; give at most that"
        )));
    }
    let cx = job.begin(cx)?;
    let mut random = random(seed);
    let times: Vec<u64> =
        (0..tasks).map(|_| shortest + random() % (longest - shortest + 1)).collect();
    let mut run = MapRun::begin(&map, &cx).await?;
    let start = Instant::now();
    let total = job.progress.then(|| map.skeleton.tasks(&cx, times.len()));
    let slept = job.progress(&cx, total, run.map(&cx, nap, times)).await?;
    let sum: u64 = slept.iter().sum();
    let report = Report::gather(&cx, "naps", (map.skeleton, &job), start, sum).await?;
    run.finish(&report)?;
    report.print(&job)
}

/// Sleeps for this number of microseconds.
fn nap(us: u64) -> u64 {
    std::thread::sleep(Duration::from_micros(us));
    us
}
