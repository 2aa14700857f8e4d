//! Heat spreads through a plate: a bulk-synchronous program, whose ranks have a band of rows each
//! and send their first and last row to their neighbours after each step. If a process dies, all go
//! back to the last checkpoint.
//!
//! [`plate`] has what is computed.

pub mod plate;

use crate::{Job, name_of, ranged, run_program};
use clap::ValueEnum;
use plate::{Plate, digest};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, bsp};

/// Let heat spread through a plate that is divided among ranks.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    plate: Plate,
    /// The number of ranks, if the plate has as many rows [default: that of the PEs].
    #[arg(long, value_name = "N")]
    #[arg(value_parser = ranged::<u32>(1..=20_000))]
    ranks: Option<u32>,
    /// The number of steps between two checkpoints: the most that a death can cost.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    checkpoint_every: u64,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Bands)]
    skeleton: Skeleton,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A band of rows for each rank.
    Bands,
    /// All rows on one thread of the root.
    Sequential,
}

/// The band of a rank.
#[derive(Serialize, Deserialize)]
struct Band {
    plate: Plate,
    rows: Range<usize>,
    /// Its own rows, and one on each side.
    points: Vec<f64>,
    /// Where the next points are computed.
    #[serde(skip)]
    next: Vec<f64>,
}

impl Program for Band {
    type Argument = Plate;
    type Stage = ();
    type Message = Vec<f64>;
    type Output = Vec<f64>;

    fn new(start: &Start, plate: &Plate) -> Self {
        let [rank, ranks] = [start.rank, start.ranks].map(|n| n as usize);
        let rows = plate.rows * rank / ranks..plate.rows * (rank + 1) / ranks;
        let points = plate.points()[plate.around(&rows)].to_vec();
        let next = points.clone();
        Band { plate: *plate, rows, points, next }
    }

    fn restored(&mut self, _: &Start, _: &Plate) {
        self.next.clone_from(&self.points);
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        let Band { plate: Plate { columns, steps, .. }, points, next, .. } = self;
        let (columns, rank) = (*columns, comm.rank());
        let last = points.len() - 2 * columns;
        while let Some((from, row)) = comm.next() {
            let beside = if from < rank { 0 } else { last + columns };
            points[beside..beside + columns].copy_from_slice(&row);
        }
        if comm.superstep() == *steps {
            return Next::End(points[columns..last + columns].to_vec());
        }
        plate::step(columns, 1..self.rows.len() + 1, points, next);
        std::mem::swap(points, next);
        if rank > 0 {
            comm.send(rank - 1, points[columns..2 * columns].to_vec());
        }
        if rank + 1 < comm.ranks() {
            comm.send(rank + 1, points[last..last + columns].to_vec());
        }
        Next::Stage(())
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("stencil", stencil)
}

async fn stencil(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { plate, ranks, checkpoint_every, skeleton } = arguments;
    let start = Instant::now();
    let mut points = plate.points();
    match skeleton {
        Skeleton::Bands => {
            let ranks = ranks.unwrap_or(job.cx.pes()).min(plate.rows as u32);
            let run = bsp::<Band>(plate).ranks(ranks);
            let every = NonZeroU64::new(checkpoint_every).unwrap_or(NonZeroU64::MIN);
            let bands = run.checkpoint_every(every).run(&job.cx);
            let bands = job.progress(None, bands).await?.concat();
            points[plate.columns..][..bands.len()].copy_from_slice(&bands);
        }
        Skeleton::Sequential => {
            let mut next = points.clone();
            for _ in 0..plate.steps {
                plate::step(plate.columns, 1..plate.rows + 1, &points, &mut next);
                std::mem::swap(&mut points, &mut next);
            }
        }
    }
    let result = digest(0, &points).cast_signed();
    let report = job.report(name_of(&skeleton), start, result).await?;
    let step_us = report.elapsed().as_secs_f64() * 1e6 / plate.steps as f64;
    report.with("step_us", step_us).print()
}
