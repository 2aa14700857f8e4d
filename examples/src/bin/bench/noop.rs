//! Empty tasks that the root spawns and awaits: with a second PE that steals, against mpi4py's pool
//! of one worker process, in turn; and placed on the second PE, all at once or one after another.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Histogram, Result};

const ROUNDS: usize = 5;
const THERE: Pe = Pe::new(1);
const TRIPS: u64 = 100_000;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/mpi4py_futures.py");

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    tasks_per_second: f64,
    /// The number of tasks that ran on the other PE.
    #[serde(default)]
    stolen: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Placed {
    tasks_per_second: f64,
    /// From placing a task until its result arrives, in a job that does nothing else.
    round_trip: Histogram,
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
    job.arg("--placed");
    let mut placing = bench.launcher.launched(2, &job);
    let (mut own, mut theirs, mut placed) = (vec![], vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        let Some(found) = report.accept("2 PEs x 1 thread", run(&mut ours)) else { return };
        own.push(found);
        let found = launch::run(&mut placing).and_then(|done| done.json::<Placed>());
        let Some(found) = report.accept("placed", found) else { return };
        placed.push(found);
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
    let rates = placed.iter().map(|found| found.tasks_per_second / 1e3).collect();
    report.goal("placed on the other PE", &rates, unit, Goal::AtLeast(2000.0));
    let median = |found: &Placed| found.round_trip.quantile(0.5);
    let medians = placed.iter().filter_map(median).map(|time| time.as_secs_f64() * 1e6).collect();
    report.goal("one placed task there and back, p50", &medians, Unit::MICROS, Goal::AtMost(4.0));
    if python.is_some() {
        let theirs: Sample = theirs.into_iter().collect();
        report.figure("mpi4py.futures, 1 worker", &theirs, unit);
        let goal = Goal::AtLeast(100.0);
        report.goal("over mpi4py.futures", &thousands.over(&theirs), Unit::TIMES, goal);
    } else if bench.python.is_none() {
        report.missing("over mpi4py.futures", "no Python with mpi4py was given (--python)");
    }
}

fn run(command: &mut Command) -> Result<Measurements, LaunchError> {
    launch::run(command)?.json()
}

/// Runs a million empty tasks, after a tenth of that to warm up.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
    /// Place the tasks on the second PE.
    #[arg(long)]
    placed: bool,
}

/// The output of a job.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum JobOutput {
    Shared(Measurements),
    Placed(Placed),
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<JobOutput> {
        let Job { tasks, placed } = *self;
        submit_and_gather(cx, tasks / 10, placed).await?;
        let before = stolen(cx).await?;
        let start = Instant::now();
        submit_and_gather(cx, tasks, placed).await?;
        let tasks_per_second = tasks as f64 / start.elapsed().as_secs_f64();
        if placed {
            return Ok(JobOutput::Placed(Placed {
                tasks_per_second,
                round_trip: trips(cx).await?,
            }));
        }
        let stolen = (stolen(cx).await? - before) * 1_000_000 / tasks;
        Ok(JobOutput::Shared(Measurements { tasks_per_second, stolen }))
    }
}

async fn submit_and_gather(cx: &Context, tasks: u64, placed: bool) -> Result<()> {
    let submit = |n| {
        if placed {
            cx.spawn_at(THERE, async |_, _: u64| (), n)
        } else {
            cx.spawn_fn(Distance::ONE, |_: u64| (), n)
        }
    };
    let futures: Vec<_> = (0..tasks).map(submit).collect();
    for future in futures {
        future.await?;
    }
    Ok(())
}

async fn trips(cx: &Context) -> Result<Histogram> {
    let mut trips = Histogram::default();
    for n in 0..TRIPS {
        let start = Instant::now();
        cx.spawn_at(THERE, async |_, _: u64| (), n).await?;
        trips.record(start.elapsed());
    }
    Ok(trips)
}

async fn stolen(cx: &Context) -> Result<u64> {
    Ok(cx.statistics().await?.by_distance.iter().map(|row| row.steals).sum())
}
