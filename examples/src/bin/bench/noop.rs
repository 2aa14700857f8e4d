//! Empty tasks that the root spawns and awaits: with a second PE that steals, against mpi4py's pool
//! of one worker process, in turn; and placed on the second PE, all at once or one after another.

use crate::launch::{self, Bench};
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Histogram, Result};

const ROUNDS: usize = 5;
const THERE: Pe = Pe::new(1);
const TASKS: u64 = 1_000_000;
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

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut ours = bench.on(2, &bench.child("--threads 1 noop"));
    let mut placing = bench.on(2, &bench.child("--threads 1 placed"));
    let mut python = bench.script(&["-m", "mpi4py.futures", SCRIPT], 2);
    let (mut own, mut placed, mut theirs) = (vec![], vec![], Sample::new());
    for _ in 0..bench.rounds(ROUNDS) {
        own.push(launch::run(&mut ours)?.json::<Measurements>()?);
        placed.push(launch::run(&mut placing)?.json::<Placed>()?);
        if let Some(found) = report.other::<Measurements>("mpi4py.futures", &mut python) {
            theirs.push(found.tasks_per_second / 1e3);
        }
    }
    let unit = Unit::THOUSAND_PER_SECOND;
    let thousands = Sample::of(&own, |found| found.tasks_per_second / 1e3);
    report.goal("2 PEs x 1 thread", &thousands, unit, Goal::AtLeast(1000.0));
    let stolen = Sample::of(&own, |found| found.stolen as f64 / 1e3);
    report.figure("of these stolen, in thousands per million", &stolen, Unit::COUNT);
    let rates = Sample::of(&placed, |found| found.tasks_per_second / 1e3);
    report.goal("placed on the other PE", &rates, unit, Goal::AtLeast(3000.0));
    let medians = Sample::of(&placed, |found| 1e6 * seconds_at(&found.round_trip, 0.5));
    report.goal("one placed task there and back, p50", &medians, Unit::MICROS, Goal::AtMost(4.0));
    if python.is_some() {
        report.figure("mpi4py.futures, 1 worker", &theirs, unit);
        let goal = Goal::AtLeast(100.0);
        report.goal("over mpi4py.futures", &thousands.over(&theirs), Unit::TIMES, goal);
    } else if bench.python.is_none() {
        report.missing("over mpi4py.futures", "no Python with mpi4py was given (--python)");
    }
    Ok(())
}

/// Runs a million empty tasks, after a tenth of that to warm up.
pub(crate) async fn job(cx: &Context) -> Result<Measurements> {
    submit_and_gather(cx, TASKS / 10, false).await?;
    let before = stolen(cx).await?;
    let start = Instant::now();
    submit_and_gather(cx, TASKS, false).await?;
    let tasks_per_second = TASKS as f64 / start.elapsed().as_secs_f64();
    let stolen = (stolen(cx).await? - before) * 1_000_000 / TASKS;
    Ok(Measurements { tasks_per_second, stolen })
}

/// Places them on the second PE.
pub(crate) async fn placed_job(cx: &Context) -> Result<Placed> {
    submit_and_gather(cx, TASKS / 10, true).await?;
    let start = Instant::now();
    submit_and_gather(cx, TASKS, true).await?;
    let tasks_per_second = TASKS as f64 / start.elapsed().as_secs_f64();
    Ok(Placed { tasks_per_second, round_trip: trips(cx).await? })
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
