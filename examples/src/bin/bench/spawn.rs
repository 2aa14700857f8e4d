//! The cost of a task on one PE, from spawn to awaited result, in batches of a million; against
//! rayon, in turn in the same process.

use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Future, Result};

const ROUNDS: usize = 7;
/// Of a batch.
pub(crate) const TASKS: u64 = 1_000_000;

/// Nanoseconds per task, by round.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Measurements {
    plain_zero: Sample,
    async_zero: Sample,
    plain_one: Sample,
    async_one: Sample,
    rayon_spawn: Sample,
    rayon_scope: Sample,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for (threads, job) in [(1, "1 thread"), (2, "2 threads")] {
        let rounds = bench.rounds(ROUNDS);
        let flags = format!("--pes 1 --threads {threads} spawn --rounds {rounds}");
        let found: Measurements = launch::run(&mut bench.child(&flags))?.json()?;
        let named = |what: &str| format!("{job}: {what}");
        let (rayon, scope) = (&found.rayon_spawn, &found.rayon_scope);
        report.figure(&named("rayon::spawn with a result"), rayon, Unit::NANOS);
        report.figure(&named("rayon scope.spawn, no result"), scope, Unit::NANOS);
        for (form, zero, one) in [
            ("spawn_fn", &found.plain_zero, &found.plain_one),
            ("spawn", &found.async_zero, &found.async_one),
        ] {
            let radius_0 = named(&format!("{form}, radius 0"));
            report.figure(&radius_0, zero, Unit::NANOS);
            let what = format!("{radius_0}, over rayon::spawn");
            report.goal(&what, &zero.over(rayon), Unit::TIMES, Goal::AtMost(0.7));
            let what = format!("{radius_0}, over scope.spawn");
            report.figure(&what, &zero.over(scope), Unit::TIMES);
            let what = named(&format!("{form}, radius 1, not stolen"));
            report.goal(&what, one, Unit::NANOS, Goal::AtMost(250.0));
        }
    }
    Ok(())
}

/// Runs batches of tasks, ours and rayon's in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    rounds: usize,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let rayon = rayon::ThreadPoolBuilder::new().num_threads(cx.threads()).build()?;
        let mut found = Measurements::default();
        // The first round warms up.
        for round in 0..=self.rounds {
            let nanos = [
                (&mut found.plain_zero, plain(cx, Distance::ZERO).await?),
                (&mut found.rayon_spawn, rayon_spawn(&rayon)),
                (&mut found.async_zero, future(cx, Distance::ZERO).await?),
                (&mut found.rayon_scope, rayon_scope(&rayon)),
                (&mut found.plain_one, plain(cx, Distance::ONE).await?),
                (&mut found.async_one, future(cx, Distance::ONE).await?),
            ];
            if round > 0 {
                nanos.into_iter().for_each(|(found, nanos)| found.push(nanos));
            }
        }
        Ok(found)
    }
}

pub(crate) async fn plain(cx: &Context, radius: Distance) -> Result<f64> {
    awaited(|n| cx.spawn_fn(radius, |n: u64| n + 1, n)).await
}

async fn future(cx: &Context, radius: Distance) -> Result<f64> {
    awaited(|n| cx.spawn(radius, async |_: Context, n: u64| n + 1, n)).await
}

/// Spawns all tasks, and then awaits them; returns the nanoseconds for each.
async fn awaited(spawn: impl Fn(u64) -> Future<u64>) -> Result<f64> {
    let start = Instant::now();
    let futures: Vec<_> = (0..TASKS).map(spawn).collect();
    let mut sum = 0;
    for future in futures {
        sum += future.await?;
    }
    let nanos = nanos_per_task(start);
    if sum != TASKS * (TASKS + 1) / 2 {
        return Err(Error::other(format!("{sum} came out")));
    }
    Ok(nanos)
}

/// The nearest that rayon offers: each task fills a slot, and the spawner, itself one of the
/// threads, runs tasks until its slot is filled.
fn rayon_spawn(rayon: &ThreadPool) -> f64 {
    let start = Instant::now();
    let sum = rayon.install(|| {
        let spawn = |n| {
            let slot = Arc::new(OnceLock::new());
            let filled = slot.clone();
            rayon::spawn(move || {
                // Each slot is filled once.
                let _ = filled.set(n + 1);
            });
            slot
        };
        let slots: Vec<_> = (0..TASKS).map(spawn).collect();
        let wait = |slot: Arc<OnceLock<u64>>| loop {
            match slot.get() {
                Some(value) => break *value,
                None => rayon::yield_now(),
            };
        };
        slots.into_iter().map(wait).sum::<u64>()
    });
    black_box(sum);
    nanos_per_task(start)
}

fn rayon_scope(rayon: &ThreadPool) -> f64 {
    let start = Instant::now();
    rayon.scope(|scope| {
        for n in 0..TASKS {
            scope.spawn(move |_| {
                black_box(n + 1);
            });
        }
    });
    nanos_per_task(start)
}

fn nanos_per_task(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / TASKS as f64
}
