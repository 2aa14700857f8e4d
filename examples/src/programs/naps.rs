//! Tasks that sleep instead of computing. So eight PEs on two cores behave like eight PEs on eight
//! cores, as far as the runtime itself needs no core. `cargo xtask simulate validate` compares such
//! jobs with simulated ones.

use crate::{Job, MapFlags, TASKS_MAX, random, ranged, run_program};
use std::time::Duration;
use ultramarine::{Error, Result};

/// Sleep in each task for a random time.
///
/// The result is the sum of these times, in microseconds.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The number of tasks.
    #[arg(long, value_name = "K", default_value_t = 400)]
    #[arg(value_parser = ranged::<u32>(1..=TASKS_MAX))]
    tasks: u32,
    /// The shortest time of a task, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 1_000)]
    #[arg(value_parser = ranged::<u64>(1..=NAP_MAX_US))]
    shortest: u64,
    /// The longest time of a task, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 10_000)]
    #[arg(value_parser = ranged::<u64>(1..=NAP_MAX_US))]
    longest: u64,
    /// The seed of the times.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    map: MapFlags,
}

/// The longest time of a task, in microseconds. A worker that does nothing for longer is reported.
const NAP_MAX_US: i64 = 1_000_000;

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("naps", naps)
}

async fn naps(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { tasks, shortest, longest, seed, map } = arguments;
    if shortest > longest {
        return Err(Error::other(format!(
            "--shortest {shortest} is more than --longest {longest}; give at most that"
        )));
    }
    let mut random = random(seed);
    let times: Vec<u64> =
        (0..tasks).map(|_| shortest + random() % (longest - shortest + 1)).collect();
    let (slept, map) = map.run(&job, nap, times).await?;
    map.report(&job, slept.iter().sum::<u64>()).await?.print()
}

/// Sleeps for this number of microseconds.
fn nap(us: u64) -> u64 {
    std::thread::sleep(Duration::from_micros(us));
    us
}
