//! Heat spreads through a plate: neighbours exchange their edges at each step, and go back to the
//! last checkpoint if one of them dies.
//!
//! Each PE has a band of rows. At each step it sends its first and last row to the PEs above and
//! below, and receives theirs, through a mailbox. After a round of many steps the root collects all
//! bands: the checkpoint. If a PE dies, its neighbours get an error instead of a row, and the
//! survivors begin the round again.
//!
//! [`plate`] has what is computed.

pub mod plate;

use crate::{Job, name_of, ranged, run_program};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use plate::{Plate, digest};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{AbortOnDrop, Result};

/// Let heat spread through a plate that is divided among the PEs.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    plate: Plate,
    /// The number of steps between two checkpoints: the most that a death can cost.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    round: u64,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Bands)]
    skeleton: Skeleton,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A band of rows for each PE.
    Bands,
    /// All rows on one thread of the root.
    Sequential,
}

/// The part of a round that one PE computes.
#[derive(Serialize, Deserialize)]
struct Band {
    columns: usize,
    steps: u64,
    mail: Key,
    /// The PEs that have the neighbouring rows.
    above: Option<Pe>,
    below: Option<Pe>,
    /// Its own rows, and one on each side.
    points: Vec<f64>,
}

impl Band {
    /// The points of its own rows after the round.
    async fn run(cx: Context, band: Band) -> Result<Vec<f64>, TaskError> {
        let Band { columns, steps, mail, above, below, points: mut old } = band;
        let mail = cx.mailbox::<Vec<f64>>(mail);
        let mut new = old.clone();
        let rows = old.len() / columns - 2;
        let last = rows * columns;
        let above = above.map(|pe| (pe, columns, 0));
        let below = below.map(|pe| (pe, last, last + columns));
        let neighbours: Vec<_> = above.into_iter().chain(below).collect();
        for _ in 0..steps {
            // First the rows that the neighbours wait for: they travel while the rest is computed.
            plate::step(columns, 1..2, &old, &mut new);
            plate::step(columns, rows..rows + 1, &old, &mut new);
            for (neighbour, own, _) in &neighbours {
                mail.send(*neighbour, new[*own..own + columns].to_vec())?;
            }
            for row in 2..rows {
                plate::step(columns, row..row + 1, &old, &mut new);
                cx.poll_runtime();
            }
            std::mem::swap(&mut old, &mut new);
            for (neighbour, _, beside) in &neighbours {
                let row = mail.receive(*neighbour).await?;
                old[*beside..beside + columns].copy_from_slice(&row);
            }
        }
        old.truncate(last + columns);
        old.drain(..columns);
        Ok(old)
    }
}

/// Computes some steps on these PEs; returns all points.
async fn round(
    cx: &Context,
    pes: &[Pe],
    (plate, points): (Plate, &[f64]),
    (mail, steps): (Key, u64),
) -> Result<Vec<f64>, TaskError> {
    let Plate { columns, rows, .. } = plate;
    let bands = split_range(0..rows as u64, pes.len());
    let tasks = bands.iter().enumerate().map(|(n, rows)| {
        let above = n.checked_sub(1).map(|n| pes[n]);
        let below = (n + 1 < bands.len()).then(|| pes[n + 1]);
        let rows = rows.start as usize..rows.end as usize;
        let points = points[plate.around(&rows)].to_vec();
        let band = Band { columns, steps, mail, above, below, points };
        // Unsupervised: a band cannot be run again alone, because its neighbours must go back, too.
        let task = AbortOnDrop::new(cx.unsupervised().spawn_at(pes[n], Band::run, band));
        async { task.await.flatten() }
    });
    // The first error cancels the others: they may wait for each other.
    let bands = try_join_all(tasks).await?;
    let edge = points.len() - columns;
    let inside = bands.iter().flatten();
    Ok(points[..columns].iter().chain(inside).chain(&points[edge..]).copied().collect())
}

/// Computes all steps; returns the points and the number of rounds begun.
async fn spread(cx: &Context, plate: Plate, length: u64) -> Result<(Vec<f64>, u64)> {
    let mut points = plate.points();
    let mut pes: Vec<Pe> = (0..cx.pes()).map(Pe::new).collect();
    let (mut mail, mut left, mut rounds) = (cx.new_key(), plate.steps, 0);
    while left > 0 {
        let steps = length.min(left);
        rounds += 1;
        match round(cx, &pes, (plate, &points), (mail, steps)).await {
            Ok(after) => {
                points = after;
                left -= steps;
            }
            Err(TaskError::Lost { pe } | TaskError::Died { pe }) => {
                if !cx.is_supervised() {
                    return Err(TaskError::Lost { pe }.into());
                }
                pes.retain(|one| *one != pe && !cx.is_dead(*one));
                // Rows of the lost round may still arrive under the old key.
                mail = cx.new_key();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((points, rounds))
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("stencil", stencil)
}

async fn stencil(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { plate, round, skeleton } = arguments;
    let start = Instant::now();
    let (points, rounds) = match skeleton {
        Skeleton::Bands => job.progress(None, spread(&job.cx, plate, round)).await?,
        Skeleton::Sequential => {
            let mut old = plate.points();
            let mut new = old.clone();
            for _ in 0..plate.steps {
                plate::step(plate.columns, 1..plate.rows + 1, &old, &mut new);
                std::mem::swap(&mut old, &mut new);
            }
            (old, 1)
        }
    };
    let result = digest(0, &points).cast_signed();
    let report = job.report(name_of(&skeleton), start, result).await?;
    let step_us = report.elapsed().as_secs_f64() * 1e6 / plate.steps as f64;
    report.with("rounds", rounds).with("step_us", step_us).print()
}
