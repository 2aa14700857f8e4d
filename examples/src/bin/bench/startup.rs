//! The start-up time of a job of four PEs, compared with an empty MPI program, in turn; and of a
//! job of 64 PEs on this machine.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
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
struct Jobs {
    first_task: Sample,
    whole: Sample,
    /// An empty MPI program with the same number of processes.
    empty: Sample,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let Some(jobs) = report.accept("start-up on 4 PEs", take_turns(bench, PES, ROUNDS)) else {
        return;
    };
    report.figure("empty MPI program, whole", &jobs.empty, Unit::SECONDS);
    report.figure("ours, until all PEs have run a task", &jobs.first_task, Unit::SECONDS);
    report.figure("ours, whole", &jobs.whole, Unit::SECONDS);
    let beyond = |own: &Sample| own.with(&jobs.empty, |own, empty| own - empty);
    let (first, goal) = (beyond(&jobs.first_task), Goal::AtMost(0.5));
    report.goal("first tasks, beyond the empty program", &first, Unit::SECONDS, goal);
    report.figure("whole, beyond the empty program", &beyond(&jobs.whole), Unit::SECONDS);

    let crowd = take_turns(bench, CROWD_PES, CROWD_ROUNDS);
    let Some(jobs) = report.accept("start-up on 64 PEs", crowd) else { return };
    report.figure("64 processes: empty MPI program, whole", &jobs.empty, Unit::SECONDS);
    let goal = Goal::AtMost(5.0);
    report.goal("64 PEs: until all have run a task", &jobs.first_task, Unit::SECONDS, goal);
    report.figure("64 PEs: whole", &jobs.whole, Unit::SECONDS);
}

/// Runs our job and the empty program in turn.
fn take_turns(bench: &Bench, pes: u32, rounds: usize) -> Result<Jobs, LaunchError> {
    let (mut first_task, mut whole, mut empty) = (vec![], vec![], vec![]);
    // The first round warms up: it reads the programs from the disk.
    for round in 0..=bench.rounds(rounds) {
        let ((first, own), mpi) = (own(bench, pes)?, baseline(bench, pes)?);
        if round > 0 {
            first_task.push(first);
            whole.push(own);
            empty.push(mpi);
        }
    }
    let [first_task, whole, empty] =
        [first_task, whole, empty].map(|values| values.into_iter().collect::<Sample>());
    Ok(Jobs { first_task, whole, empty })
}

/// The time of our job until its first tasks have run, and in whole.
fn own(bench: &Bench, pes: u32) -> Result<(f64, f64), LaunchError> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut job = bench.launcher.child();
    job.args(["--threads", "1", "startup", "--launched"]).arg(since.as_nanos().to_string());
    let finished = launch::run(&mut bench.launcher.launched(pes, &job))?;
    Ok((finished.json::<Measurements>()?.seconds, finished.seconds))
}

fn baseline(bench: &Bench, pes: u32) -> Result<f64, LaunchError> {
    let empty = bench.launcher.sibling("mpi_empty");
    Ok(launch::run(&mut bench.launcher.launched(pes, &empty))?.seconds)
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
        let task = |n| cx.spawn_at(Pe::new(n), async |cx: Context, ()| cx.pe().number(), ());
        for answer in (0..cx.pes()).map(task).collect::<Vec<_>>() {
            answer.await?;
        }
        let launched = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.launched);
        let since = SystemTime::now().duration_since(launched)?;
        Ok(Measurements { seconds: since.as_secs_f64() })
    }
}
