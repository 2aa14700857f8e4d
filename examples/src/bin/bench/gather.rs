//! Arrays from several PEs to one, all at once, beside `MPI_Gatherv`.

use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit, cores};
use serde::{Deserialize, Serialize};
use std::mem::take;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 5;
const PES: u32 = 5;
/// The length of each array, in bytes.
const BYTES: usize = 8_000_000;
const REPEATS: usize = 21;

/// The value that the next task on this PE returns.
static NUMBERS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

fn made() -> Vec<f64> {
    take(&mut *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn make() {
    *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner) = vec![0.5; BYTES / 8];
}

/// The median time.
#[derive(Serialize, Deserialize)]
pub(crate) struct Median {
    millis: f64,
}

pub(crate) async fn job(cx: &Context) -> Result<Median> {
    needs_pes(cx, PES)?;
    let mut found = Sample::new();
    for _ in 0..REPEATS {
        for task in (1..PES).map(|pe| cx.spawn_at(Pe::new(pe), async |_, ()| make(), ())) {
            task.await?;
        }
        let start = Instant::now();
        let all: Vec<_> =
            (1..PES).map(|pe| cx.spawn_at(Pe::new(pe), async |_, ()| made(), ())).collect();
        let mut arrays = Vec::new();
        for task in all {
            arrays.push(task.await?);
        }
        found.push(start.elapsed().as_secs_f64() * 1e3);
        if arrays.iter().any(|array| array.len() != BYTES / 8) {
            return Err(Error::other("an array is shorter than it was"));
        }
    }
    Ok(Median { millis: found.median() })
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut mpi = bench.on(PES, &bench.program("mpi_gather", &BYTES.to_string()));
    let mut copied = bench.on(PES, &bench.child("--threads 1 gather"));
    let mut in_pieces = bench.on(PES, &bench.child("--threads 1 --set single_copy=false gather"));
    let (mut theirs, mut ours, mut pieces) = (Sample::new(), Sample::new(), Sample::new());
    for _ in 0..bench.rounds(ROUNDS) {
        theirs.push(launch::run(&mut mpi)?.json::<Median>()?.millis);
        ours.push(launch::run(&mut copied)?.json::<Median>()?.millis);
        pieces.push(launch::run(&mut in_pieces)?.json::<Median>()?.millis);
    }
    if cores() < PES as usize {
        let cores = cores();
        report.text(&format!("{PES} processes on {cores} cores: MPI's take cores while they wait"));
    }
    report.figure("MPI_Gatherv", &theirs, Unit::MILLIS);
    for (name, found) in [("results of tasks", ours), ("the same, without single copy", pieces)] {
        report.figure(name, &found, Unit::MILLIS);
        let goal = Some(Goal::AtMost(1.5));
        report.goal(&format!("{name}, over MPI"), &found.over(&theirs), Unit::TIMES, goal);
    }
    Ok(())
}
