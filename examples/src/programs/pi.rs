//! π by the midpoint rule: the smallest bulk-synchronous program.

use crate::supersteps::Skeleton;
use crate::{Job, SuperstepFlags, name_of, own_range, ranged, run_program};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, op};

/// Compute π as the area below 4 / (1 + x²) between 0 and 1.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    intervals: Intervals,
    #[command(flatten)]
    supersteps: SuperstepFlags,
}

/// How finely.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub struct Intervals {
    /// The number of intervals.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    #[arg(value_parser = ranged::<usize>(1..=1_000_000_000_000))]
    intervals: usize,
}

impl Intervals {
    /// The area above the intervals of a rank.
    pub fn area(self, rank: u32, ranks: u32) -> f64 {
        let width = 1.0 / self.intervals as f64;
        let height = |n| 4.0 / (1.0 + (width * (n as f64 + 0.5)).powi(2));
        own_range(self.intervals, rank, ranks).map(height).sum::<f64>() * width
    }
}

#[derive(Serialize, Deserialize)]
struct Area(f64);

impl Program for Area {
    type Argument = Intervals;
    type Stage = ();
    type Message = ();
    type Output = f64;

    fn new(start: &Start, intervals: &Intervals) -> Self {
        Area(intervals.area(start.rank, start.ranks))
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if let Some(area) = comm.result() {
            return Next::End(area);
        }
        comm.all_reduce(&self.0, op::sum::<f64>);
        Next::Stage(())
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("pi", pi)
}

async fn pi(job: Job, Arguments { intervals, supersteps }: Arguments) -> Result<()> {
    let start = Instant::now();
    let pi = match supersteps.skeleton {
        Skeleton::Ranks => supersteps.run::<Area>(&job, intervals, intervals.intervals).await?[0],
        Skeleton::Sequential => intervals.area(0, 1),
    };
    job.report(name_of(&supersteps.skeleton), start, pi).await?.print()
}
