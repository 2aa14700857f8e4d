//! The start-up time of a job of four PEs, compared with an empty MPI program, in turn; and of a
//! job of 64 PEs on this machine.

use crate::child::{now, on_each_pe};
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use ultramarine::Result;
use ultramarine::prelude::*;

const ROUNDS: usize = 7;
const PES: u32 = 4;

/// A job of many PEs on one machine, most of which wait for a core most of the time.
const CROWD_PES: u32 = 64;
const CROWD_ROUNDS: usize = 3;

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// From the launch until each PE has run a task.
    seconds: f64,
}

/// Times of jobs of one size, by round.
#[derive(Default)]
struct Jobs {
    first_task: Sample,
    whole: Sample,
    /// An empty MPI program with the same number of processes.
    empty: Sample,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let jobs = take_turns(bench, PES, ROUNDS)?;
    report.figure("empty MPI program, whole", &jobs.empty, Unit::SECONDS);
    report.figure("ours, until all PEs have run a task", &jobs.first_task, Unit::SECONDS);
    report.figure("ours, whole", &jobs.whole, Unit::SECONDS);
    let beyond = |own: &Sample| own.with(&jobs.empty, |own, empty| own - empty);
    let (first, goal) = (beyond(&jobs.first_task), Goal::AtMost(0.5));
    report.goal("first tasks, beyond the empty program", &first, Unit::SECONDS, goal);
    report.figure("whole, beyond the empty program", &beyond(&jobs.whole), Unit::SECONDS);

    let jobs = take_turns(bench, CROWD_PES, CROWD_ROUNDS)?;
    report.figure("64 processes: empty MPI program, whole", &jobs.empty, Unit::SECONDS);
    let goal = Goal::AtMost(5.0);
    report.goal("64 PEs: until all have run a task", &jobs.first_task, Unit::SECONDS, goal);
    report.figure("64 PEs: whole", &jobs.whole, Unit::SECONDS);
    Ok(())
}

/// Runs our job and the empty program in turn.
fn take_turns(bench: &Bench, pes: u32, rounds: usize) -> Result<Jobs> {
    let mut jobs = Jobs::default();
    let mut empty = bench.on(pes, &bench.program("mpi_empty", ""));
    // The first round warms up: it reads the programs from the disk.
    for round in 0..=bench.rounds(rounds) {
        let flags = format!("--threads 1 startup --launched {}", now().as_nanos());
        let own = launch::run(&mut bench.on(pes, &bench.child(&flags)))?;
        let mpi = launch::run(&mut empty)?;
        if round > 0 {
            jobs.first_task.push(own.json::<Measurements>()?.seconds);
            jobs.whole.push(own.seconds);
            jobs.empty.push(mpi.seconds);
        }
    }
    Ok(jobs)
}

/// Runs one task on each PE.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// When the launcher was started, in nanoseconds since 1970.
    #[arg(long)]
    launched: u64,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        on_each_pe(cx, async |cx: Context, ()| cx.pe().number()).await?;
        let since = now().saturating_sub(Duration::from_nanos(self.launched));
        Ok(Measurements { seconds: since.as_secs_f64() })
    }
}
