//! The cost of a task on one PE, from spawn to awaited result, in batches of a million; against
//! rayon, in turn in the same process.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 7;

/// Nanoseconds per task, by round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    plain_zero: Vec<f64>,
    async_zero: Vec<f64>,
    plain_one: Vec<f64>,
    async_one: Vec<f64>,
    rayon_spawn: Vec<f64>,
    rayon_scope: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for threads in [1, 2] {
        let found = run(bench, threads);
        let job = if threads == 1 { "1 thread" } else { "2 threads" };
        let Some(found) = report.accept(job, found) else { continue };
        let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
        let named = |what: &str| format!("{job}: {what}");
        let rayon = sample(&found.rayon_spawn);
        report.figure(&named("rayon::spawn with a result"), &rayon, Unit::NANOS);
        let scope = sample(&found.rayon_scope);
        report.figure(&named("rayon scope.spawn, no result"), &scope, Unit::NANOS);
        for (form, zero, one) in [
            ("spawn_fn", &found.plain_zero, &found.plain_one),
            ("spawn", &found.async_zero, &found.async_one),
        ] {
            let (zero, one) = (sample(zero), sample(one));
            report.figure(&named(&format!("{form}, radius 0")), &zero, Unit::NANOS);
            let what = named(&format!("{form}, radius 0, over rayon::spawn"));
            report.goal(&what, &zero.over(&rayon), Unit::TIMES, Goal::AtMost(2.0));
            report.figure(
                &named(&format!("{form}, radius 0, over scope.spawn")),
                &zero.over(&scope),
                Unit::TIMES,
            );
            let what = named(&format!("{form}, radius 1, not stolen"));
            report.goal(&what, &one, Unit::NANOS, Goal::AtMost(250.0));
        }
    }
}

fn run(bench: &Bench, threads: usize) -> Result<Measurements, LaunchError> {
    let mut child = bench.launcher.child();
    child.args(["--pes", "1", "--threads", &threads.to_string(), "spawn"]);
    child.arg("--rounds").arg(bench.rounds(ROUNDS).to_string());
    launch::run(&mut child)?.json()
}

/// Runs batches of tasks, ours and rayon's in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// The number of tasks of a batch.
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
    #[arg(long)]
    rounds: usize,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let rayon = rayon::ThreadPoolBuilder::new().num_threads(cx.threads()).build();
        let rayon = rayon?;
        let mut found = Measurements {
            plain_zero: vec![],
            async_zero: vec![],
            plain_one: vec![],
            async_one: vec![],
            rayon_spawn: vec![],
            rayon_scope: vec![],
        };
        // The first round warms up.
        for round in 0..=self.rounds {
            let nanos = [
                self.plain(cx, Distance::ZERO).await?,
                self.rayon_spawn(&rayon),
                self.future(cx, Distance::ZERO).await?,
                self.rayon_scope(&rayon),
                self.plain(cx, Distance::ONE).await?,
                self.future(cx, Distance::ONE).await?,
            ];
            if round > 0 {
                found.plain_zero.push(nanos[0]);
                found.rayon_spawn.push(nanos[1]);
                found.async_zero.push(nanos[2]);
                found.rayon_scope.push(nanos[3]);
                found.plain_one.push(nanos[4]);
                found.async_one.push(nanos[5]);
            }
        }
        Ok(found)
    }

    async fn plain(&self, cx: &Context, radius: Distance) -> Result<f64> {
        let start = Instant::now();
        let spawn = |n| cx.spawn_fn(radius, |n: u64| n + 1, n);
        let futures: Vec<_> = (0..self.tasks).map(spawn).collect();
        let mut sum = 0;
        for future in futures {
            sum += future.await?;
        }
        self.per_task(start, sum)
    }

    async fn future(&self, cx: &Context, radius: Distance) -> Result<f64> {
        let start = Instant::now();
        let spawn = |n| cx.spawn(radius, async |_: Context, n: u64| n + 1, n);
        let futures: Vec<_> = (0..self.tasks).map(spawn).collect();
        let mut sum = 0;
        for future in futures {
            sum += future.await?;
        }
        self.per_task(start, sum)
    }

    /// The nearest that rayon offers: each task fills a slot, and the spawner, itself one of the
    /// threads, runs tasks until its slot is filled.
    fn rayon_spawn(&self, rayon: &ThreadPool) -> f64 {
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
            let slots: Vec<_> = (0..self.tasks).map(spawn).collect();
            let wait = |slot: Arc<OnceLock<u64>>| loop {
                match slot.get() {
                    Some(value) => break *value,
                    None => rayon::yield_now(),
                };
            };
            slots.into_iter().map(wait).sum::<u64>()
        });
        black_box(sum);
        self.nanos_per_task(start)
    }

    fn rayon_scope(&self, rayon: &ThreadPool) -> f64 {
        let start = Instant::now();
        rayon.scope(|scope| {
            for n in 0..self.tasks {
                scope.spawn(move |_| {
                    black_box(n + 1);
                });
            }
        });
        self.nanos_per_task(start)
    }

    fn per_task(&self, start: Instant, sum: u64) -> Result<f64> {
        let nanos = self.nanos_per_task(start);
        if sum != self.tasks * (self.tasks + 1) / 2 {
            return Err(Error::other(format!("{sum} came out")));
        }
        Ok(nanos)
    }

    fn nanos_per_task(&self, start: Instant) -> f64 {
        start.elapsed().as_nanos() as f64 / self.tasks as f64
    }
}
