//! Empty tasks that the root submits and gathers, with a second PE to help; against mpi4py's pool
//! of one worker process, in turn.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;

const ROUNDS: usize = 5;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/mpi4py_futures.py");

#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    tasks_per_second: f64,
    /// How many ran on the other PE.
    #[serde(default)]
    stolen: u64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let mut job = bench.launcher.child();
    job.args(["--threads", "1", "noop"]);
    let mut ours = bench.launcher.launched(2, &job);
    let mut python = bench.python.as_deref().map(|python| {
        let mut script = Command::new(python);
        script.args(["-m", "mpi4py.futures", SCRIPT]);
        bench.launcher.launched(2, &script)
    });
    let (mut own, mut theirs) = (vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        let Some(found) = report.accept("2 PEs x 1 thread", run(&mut ours)) else { return };
        own.push(found);
        if let Some(command) = &mut python {
            match report.accept("mpi4py.futures", run(command)) {
                Some(found) => theirs.push(found.tasks_per_second / 1e3),
                None => python = None,
            }
        }
    }
    let thousands: Sample = own.iter().map(|found| found.tasks_per_second / 1e3).collect();
    let unit = Unit::THOUSAND_PER_SECOND;
    report.goal("2 PEs x 1 thread", &thousands, unit, Goal::AtLeast(1000.0));
    let stolen = own.iter().map(|found| found.stolen as f64 / 1e3).collect();
    report.figure("of these stolen, in thousands per million", &stolen, Unit::COUNT);
    if python.is_some() {
        let theirs: Sample = theirs.into_iter().collect();
        report.figure("mpi4py.futures, 1 worker", &theirs, unit);
        let goal = Goal::AtLeast(100.0);
        report.goal("over mpi4py.futures", &thousands.over(&theirs), Unit::TIMES, goal);
    } else if bench.python.is_none() {
        report.missing("over mpi4py.futures", "no Python with mpi4py was given (--python)");
    }
}

fn run(command: &mut Command) -> Result<Found, LaunchError> {
    launch::run(command)?.json()
}

/// A million empty tasks, after a tenth of that to warm up.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Found> {
        submit_and_gather(cx, self.tasks / 10).await?;
        let before = stolen(cx).await?;
        let start = Instant::now();
        submit_and_gather(cx, self.tasks).await?;
        let tasks_per_second = self.tasks as f64 / start.elapsed().as_secs_f64();
        let stolen = (stolen(cx).await? - before) * 1_000_000 / self.tasks;
        Ok(Found { tasks_per_second, stolen })
    }
}

async fn submit_and_gather(cx: &Context, tasks: u64) -> Result<()> {
    let submit = |n| cx.spawn_fn(Distance::ONE, |_: u64| (), n);
    let futures: Vec<_> = (0..tasks).map(submit).collect();
    for future in futures {
        future.await?;
    }
    Ok(())
}

async fn stolen(cx: &Context) -> Result<u64> {
    Ok(cx.statistics().await?.by_distance.iter().map(|row| row.steals).sum())
}
