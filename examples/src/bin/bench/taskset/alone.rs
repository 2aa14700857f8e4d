//! A task of one worker, in a set and by other schedulers, in turn in one process.

use super::{CODE, folder, open};
use crate::launch::{self, Bench};
use crate::spawn;
use crate::{Goal, Report, Sample, Unit};
use crossbeam_deque::Worker as Deque;
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Of a batch: as many as in `spawn`, which it uses.
const TASKS: u64 = spawn::TASKS;

/// Nanoseconds per task, by round.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Measurements {
    add: Sample,
    run: Sample,
    sweep: Sample,
    rayon_spawn: Sample,
    rayon_run: Sample,
    crossbeam: Sample,
    awaited: Sample,
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let flags = format!("--pes 1 --threads 1 set-alone --rounds {}", bench.rounds(super::ROUNDS));
    let found: Measurements = launch::run(&mut bench.child(&flags))?.json()?;
    let Measurements { add, run, sweep, rayon_spawn, rayon_run, crossbeam, awaited } = &found;
    report.figure("a task: add", add, Unit::NANOS);
    let goal = Goal::AtMost(150.0);
    report.goal("a task: claim + run + finish", run, Unit::NANOS, goal);
    report.figure("a task: its part of the sweep at the end", sweep, Unit::NANOS);
    report.figure("rayon scope.spawn: spawn", rayon_spawn, Unit::NANOS);
    report.figure("rayon scope.spawn: run", rayon_run, Unit::NANOS);
    report.figure("crossbeam-deque: push + pop", crossbeam, Unit::NANOS);
    report.figure("spawn_fn and await, radius 1, not stolen", awaited, Unit::NANOS);
    let goal = Goal::AtMost(2.0);
    report.goal("claim + run + finish, over rayon's run", &run.over(rayon_run), Unit::TIMES, goal);
    let whole = |set: &Sample, more: &Sample| set.with(more, |set, more| set + more);
    let (set, rayon) = (whole(&whole(add, run), sweep), whole(rayon_spawn, rayon_run));
    report.figure("add, run and sweep, over rayon's both", &set.over(&rayon), Unit::TIMES);
    report.figure("add, run and sweep, over spawn_fn", &set.over(awaited), Unit::TIMES);
    Ok(())
}

/// Runs batches of tasks, those of a set and others in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    rounds: usize,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let rayon = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        let folder = folder()?;
        let mut found = Measurements::default();
        // The first round warms up.
        for round in 0..=self.rounds {
            let [add, run, sweep] = in_set(&folder.path().join(round.to_string()))?;
            let [rayon_spawn, rayon_run] = by_rayon(&rayon);
            let nanos = [
                (&mut found.add, add),
                (&mut found.run, run),
                (&mut found.sweep, sweep),
                (&mut found.rayon_spawn, rayon_spawn),
                (&mut found.rayon_run, rayon_run),
                (&mut found.crossbeam, by_crossbeam()),
                (&mut found.awaited, spawn::plain(cx, Distance::ONE).await?),
            ];
            if round > 0 {
                nanos.into_iter().for_each(|(found, nanos)| found.push(nanos));
            }
        }
        Ok(found)
    }
}

fn each(time: Duration) -> f64 {
    time.as_nanos() as f64 / TASKS as f64
}

/// Adding, running, and the sweep that ends the set.
fn in_set(file: &Path) -> Result<[f64; 3]> {
    let arena = open(file, 1)?;
    let worker = arena.join()?;
    let set = worker.set("alone")?;
    let begun = Instant::now();
    for number in 0..TASKS {
        set.add(number, CODE, &[])?;
    }
    let added = begun.elapsed();
    let (mut count, mut ran) = (0, Duration::ZERO);
    let begun = Instant::now();
    set.run(|call| {
        count += 1;
        if count == TASKS {
            ran = begun.elapsed();
        }
        call.number().to_le_bytes()
    })?;
    let all = begun.elapsed();
    if count != TASKS {
        return Err(Error::other(format!("{count} tasks were run of {TASKS}")));
    }
    std::fs::remove_file(file)?;
    Ok([added, ran, all.saturating_sub(ran)].map(each))
}

/// Spawning, and running.
fn by_rayon(rayon: &ThreadPool) -> [f64; 2] {
    let (spawned, all) = rayon.install(|| {
        let begun = Instant::now();
        let mut spawned = Duration::ZERO;
        rayon::scope(|scope| {
            for number in 0..TASKS {
                scope.spawn(move |_| _ = black_box(number));
            }
            spawned = begun.elapsed();
        });
        (spawned, begun.elapsed())
    });
    [spawned, all.saturating_sub(spawned)].map(each)
}

fn by_crossbeam() -> f64 {
    let deque = Deque::new_lifo();
    let begun = Instant::now();
    (0..TASKS).for_each(|number| deque.push(number));
    while let Some(number) = deque.pop() {
        black_box(number);
    }
    each(begun.elapsed())
}
