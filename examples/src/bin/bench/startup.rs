//! How much later than an empty MPI program a job of four PEs gets to work, in turn.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 7;
const PES: u32 = 4;

#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    /// From launching until each PE has run a task.
    seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let (mut first_task, mut whole, mut empty) = (vec![], vec![], vec![]);
    // The first round warms up: programs are read from the disk.
    for round in 0..=bench.rounds(ROUNDS) {
        let pair = own(bench).and_then(|own| Ok((own, baseline(bench)?)));
        let Some(((first, own), mpi)) = report.accept("start-up on 4 PEs", pair) else { return };
        if round > 0 {
            first_task.push(first);
            whole.push(own);
            empty.push(mpi);
        }
    }
    let [first_task, whole, empty] =
        [first_task, whole, empty].map(|values| values.into_iter().collect::<Sample>());
    report.figure("empty MPI program, whole", &empty, Unit::SECONDS);
    report.figure("ours, until all PEs have run a task", &first_task, Unit::SECONDS);
    report.figure("ours, whole", &whole, Unit::SECONDS);
    let beyond = |own: &Sample| own.with(&empty, |own, empty| own - empty);
    let goal = Goal::AtMost(0.5);
    report.goal("first tasks, beyond the empty program", &beyond(&first_task), Unit::SECONDS, goal);
    report.figure("whole, beyond the empty program", &beyond(&whole), Unit::SECONDS);
}

/// Until the first tasks, and in whole.
fn own(bench: &Bench) -> Result<(f64, f64), LaunchError> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut job = bench.launcher.child();
    job.args(["--threads", "1", "startup", "--launched"]).arg(since.as_nanos().to_string());
    let finished = launch::run(&mut bench.launcher.launched(PES, &job))?;
    Ok((finished.json::<Found>()?.seconds, finished.seconds))
}

fn baseline(bench: &Bench) -> Result<f64, LaunchError> {
    let empty = bench.launcher.sibling("mpi_empty");
    Ok(launch::run(&mut bench.launcher.launched(PES, &empty))?.seconds)
}

/// One task for each PE.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// When the launcher was started, in nanoseconds since 1970.
    #[arg(long)]
    launched: u64,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Found> {
        let task = |n| cx.spawn_at(Pe::new(n), async |cx: Context, ()| cx.pe().number(), ());
        for answer in (0..cx.pes()).map(task).collect::<Vec<_>>() {
            answer.await?;
        }
        let launched = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.launched);
        let since = SystemTime::now().duration_since(launched).map_err(Error::other)?;
        Ok(Found { seconds: since.as_secs_f64() })
    }
}
