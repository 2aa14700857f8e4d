//! The time of a superstep in which nothing is done, beside that of an `MPI_Barrier`.

use super::{PES, ROUNDS};
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit, cores};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, bsp};

const EACH_PES: [u32; 5] = [1, 2, 4, 8, 16];
/// Supersteps of a batch, whose time counts: where each PE has a core, and where PEs share cores.
const BATCH: u64 = 2000;
const BATCH_SHARED: u64 = 5;
/// `MPI_Barrier` takes up to 0.1 s where PEs share cores.
const ROUNDS_SHARED: usize = 3;
/// The number of batches, but for the first, which counts nowhere.
const BATCHES: u64 = 21;

/// Runs supersteps in which nothing is done.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    batch: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Times {
    micros: f64,
}

/// It does nothing, but for noting the time.
#[derive(Serialize, Deserialize)]
struct Empty {
    batch: u64,
    #[serde(skip)]
    since: Option<Instant>,
    micros: Vec<f64>,
}

impl Program for Empty {
    type Argument = u64;
    type Stage = ();
    type Message = ();
    type Output = f64;

    fn new(_: &Start, batch: &u64) -> Self {
        Empty { batch: *batch, since: None, micros: Vec::new() }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if comm.superstep().is_multiple_of(self.batch) {
            let since = self.since.replace(Instant::now());
            let seconds = since.map(|since| since.elapsed().as_secs_f64());
            self.micros.extend(seconds.map(|seconds| seconds * 1e6 / self.batch as f64));
        }
        if comm.superstep() < (BATCHES + 1) * self.batch {
            return Next::Stage(());
        }
        self.micros.remove(0);
        self.micros.sort_by(f64::total_cmp);
        Next::End(self.micros[self.micros.len() / 2])
    }
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Times> {
        Ok(Times { micros: bsp::<Empty>(self.batch).run(cx).await?[0] })
    }
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for pes in EACH_PES {
        let shares = pes as usize > cores();
        let batch = if shares { BATCH_SHARED } else { BATCH };
        let barrier = bench.program("mpi_barrier", &batch.to_string());
        let job = bench.child(&format!("--threads 1 barrier --batch {batch}"));
        let mut jobs = [bench.on(pes, &barrier), bench.on(pes, &job)];
        let mut found = [(); 2].map(|()| Sample::new());
        for _ in 0..bench.rounds(if shares { ROUNDS_SHARED } else { ROUNDS }) {
            for (job, found) in jobs.iter_mut().zip(&mut found) {
                found.push(launch::run(job)?.json::<Times>()?.micros);
            }
        }
        let [barrier, superstep] = found;
        let on = match pes {
            1 => "1 PE".to_owned(),
            _ if shares => format!("{pes} PEs on {} cores", cores()),
            _ => format!("{pes} PEs"),
        };
        report.figure(&format!("MPI_Barrier, {on}"), &barrier, Unit::MICROS);
        let what = format!("a superstep in which nothing is done, {on}");
        report.figure(&what, &superstep, Unit::MICROS);
        if pes == PES {
            let beyond = superstep.with(&barrier, |ours, barrier| ours - 3.0 * barrier);
            let goal = Goal::AtMost(2.0);
            report.goal("beyond three times MPI_Barrier", &beyond, Unit::MICROS, goal);
        }
    }
    Ok(())
}
