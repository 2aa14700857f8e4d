//! Two processes: one steals the tasks of the other, or takes them over when it is killed.

use super::{CODE, folder, open};
use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit, steal};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Histogram, Result};

const THERE: Pe = Pe::new(1);
const STOLEN: u64 = 100_000;
const LEFT: u64 = 1_000_000;
/// Said by the thief when it has stolen half of the tasks.
const ENOUGH: &str = "that is enough";

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (mut stolen, mut left) = (vec![], vec![]);
    let mut without = [steal::Way::Memory, steal::Way::Messages].map(|way| (way, vec![]));
    for _ in 0..bench.rounds(super::ROUNDS) {
        let folder = folder()?;
        let job = |name: &str| {
            let mut child = bench.child(&format!("--threads 1 {name}"));
            child.arg("--file").arg(folder.path().join(name));
            bench.on(2, &child)
        };
        stolen.push(launch::run(&mut job("set-stolen"))?.json::<Histogram>()?);
        for (way, found) in &mut without {
            found.push(steal::run(bench, 1, *way, "")?);
        }
        left.push(launch::run_quietly(&mut job("set-left"))?.json::<Taken>()?);
    }
    let micros = |part| Sample::of(&stolen, |found| 1e6 * seconds_at(found, part));
    let goal = Goal::AtMost(0.5);
    report.goal("steal + claim + run + finish, p50", &micros(0.5), Unit::MICROS, goal);
    report.figure("steal + claim + run + finish, p99", &micros(0.99), Unit::MICROS);
    for (way, found) in &without {
        let way = way.name();
        let task_to_task = Sample::of(found, |found| 1e6 * found.task_to_task(0.5));
        let what = format!("without an arena, {way}, task to task, p50");
        report.figure(&what, &task_to_task, Unit::MICROS);
        let what = format!("without an arena, {way}, over that with one");
        report.figure(&what, &task_to_task.over(&micros(0.5)), Unit::TIMES);
    }
    let first = Sample::of(&left, |found| found.first_seconds * 1e3);
    let goal = Goal::AtMost(10.0);
    report.goal(
        "10^6 tasks of a dead worker: until another runs the first",
        &first,
        Unit::MILLIS,
        goal,
    );
    let all = Sample::of(&left, |found| found.all_seconds);
    report.figure("10^6 tasks of a dead worker: until all have run", &all, Unit::SECONDS);
    Ok(())
}

/// The second PE steals the tasks of the first, which waits.
#[derive(clap::Args)]
pub(crate) struct Stolen {
    #[arg(long)]
    file: PathBuf,
}

impl Stolen {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Histogram> {
        needs_pes(cx, 2)?;
        let arena = open(&self.file, 1)?;
        add(&arena)?;
        let rob = async |_, file: PathBuf| rob(&file).map_err(Failure::from);
        Ok(cx.spawn_at(THERE, rob, self.file.clone()).await??)
    }
}

fn add(arena: &ultramarine::taskset::Arena) -> Result<()> {
    let worker = arena.join()?;
    let set = worker.set("stolen")?;
    for number in 0..STOLEN {
        set.add(number, CODE, &[])?;
    }
    // It does not leave, or the thief would have its slot, and the queue.
    std::mem::forget(worker);
    Ok(())
}

/// From the start of one task to that of the next.
fn rob(file: &Path) -> Result<Histogram> {
    let arena = open(file, 1)?;
    let worker = arena.join()?;
    let (mut times, mut count) = (Histogram::default(), 0);
    let mut last = Instant::now();
    let run = worker.set("stolen")?.try_run(|call| {
        let now = Instant::now();
        times.record(now - last);
        last = now;
        count += 1;
        if count == STOLEN / 2 {
            Err(Error::other(ENOUGH))
        } else {
            Ok(call.number().to_le_bytes())
        }
    });
    match run {
        // The set does not end while the other, which waits, does not meet this worker.
        Err(error) if error.to_string() == ENOUGH => Ok(times),
        Err(error) => Err(error),
        Ok(()) => Err(Error::other("the set has ended, and the worker that has its tasks waits")),
    }
}

/// The second PE adds tasks and is killed; the first runs them.
#[derive(clap::Args)]
pub(crate) struct Left {
    #[arg(long)]
    file: PathBuf,
}

/// Times since the first looked for work, when the second was dead.
#[derive(Serialize, Deserialize)]
pub(crate) struct Taken {
    first_seconds: f64,
    all_seconds: f64,
}

impl Left {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Taken> {
        needs_pes(cx, 2)?;
        let arena = open(&self.file, 1)?;
        let die = async |_, file: PathBuf| -> std::result::Result<(), Failure> {
            let arena = open(&file, 1)?;
            let worker = arena.join()?;
            let set = worker.set("left")?;
            for number in 0..LEFT {
                set.add(number, CODE, &[])?;
            }
            kill_process(getpid(), Signal::KILL)?;
            Ok(())
        };
        match cx.spawn_at(THERE, die, self.file.clone()).await {
            Err(TaskError::Lost { .. }) => take(&arena),
            _ => Err(Error::other("the other process has not died")),
        }
    }
}

fn take(arena: &ultramarine::taskset::Arena) -> Result<Taken> {
    let worker = arena.join()?;
    let set = worker.set("left")?;
    let (mut count, mut first) = (0, Duration::ZERO);
    let begun = Instant::now();
    set.run(|call| {
        if count == 0 {
            first = begun.elapsed();
        }
        count += 1;
        call.number().to_le_bytes()
    })?;
    let all_seconds = begun.elapsed().as_secs_f64();
    if count == LEFT {
        Ok(Taken { first_seconds: first.as_secs_f64(), all_seconds })
    } else {
        Err(Error::other(format!("{count} tasks were run of {LEFT}")))
    }
}
