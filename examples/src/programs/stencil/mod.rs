//! Heat spreads through a plate: a bulk-synchronous program, whose ranks have a band of rows each
//! and send their first and last row to their neighbours after each step. If a process dies, all go
//! back to the last checkpoint.
//!
//! [`plate`] has what is computed.

pub mod plate;

use crate::supersteps::Skeleton;
use crate::{Job, SuperstepFlags, name_of, own_range, run_program};
use plate::{Plate, digest};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start};

/// Let heat spread through a plate that is divided among ranks.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    plate: Plate,
    #[command(flatten)]
    supersteps: SuperstepFlags,
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
        let rows = own_range(plate.rows, start.rank, start.ranks);
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

async fn stencil(job: Job, Arguments { plate, supersteps }: Arguments) -> Result<()> {
    let start = Instant::now();
    let mut points = plate.points();
    match supersteps.skeleton {
        Skeleton::Ranks => {
            let bands = supersteps.run::<Band>(&job, plate, plate.rows).await?.concat();
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
    let report = job.report(name_of(&supersteps.skeleton), start, result).await?;
    let step_us = report.elapsed().as_secs_f64() * 1e6 / plate.steps as f64;
    report.with("step_us", step_us).print()
}
