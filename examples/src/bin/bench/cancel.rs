//! The time from cancelling a million waiting tasks on several PEs until none of them is left.

use crate::child::on_each_pe;
use crate::launch::Bench;
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Future, Result};

const ROUNDS: usize = 3;
const PES: u32 = 4;
/// On all PEs together.
const TASKS: u64 = 1_000_000;

/// Cancels waiting tasks.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// The tasks are not placed, but wait at the root to be stolen.
    #[arg(long)]
    spawned: bool,
}

/// Times in seconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// Until the caller continued.
    abort: f64,
    /// Until all PEs had nothing left to do.
    all: f64,
}

static IS_OPEN: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Blocks the worker, so that all other tasks wait.
fn block() {
    while !IS_OPEN.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn count(_: u64) {
    STARTED.fetch_add(1, Ordering::Relaxed);
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let pes = u64::from(cx.pes());
        let block = |pe| cx.spawn_at(Pe::new(pe), async |_, ()| block(), ());
        let blocking: Vec<_> = (0..cx.pes()).map(block).collect();
        let spawn = |n: u64| {
            if self.spawned {
                return cx.spawn_fn(Distance::ONE, count, n);
            }
            cx.spawn_at(Pe::new((n % pes) as u32), async |_, n| count(n), n)
        };
        let tasks: Vec<Future<()>> = (0..TASKS).map(spawn).collect();
        // All tasks arrive and wait.
        cx.sleep(Duration::from_secs(2)).await;
        let start = Instant::now();
        Future::abort_all(&tasks);
        let abort = start.elapsed().as_secs_f64();
        // This message arrives after the cancellation, on PEs whose workers do nothing else.
        cx.tell_all_fn(|_, ()| IS_OPEN.store(true, Ordering::Relaxed), ())?;
        for blocking in blocking {
            blocking.await?;
        }
        let started = on_each_pe(cx, async |_, ()| STARTED.load(Ordering::Relaxed)).await?;
        let started: u64 = started.iter().sum();
        let all = start.elapsed().as_secs_f64();
        if started > 0 {
            return Err(Error::other(format!("{started} tasks were run that had been cancelled")));
        }
        Ok(Measurements { abort, all })
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for (what, flag) in [("placed", ""), ("that wait at the root", "--spawned")] {
        let job = bench.child(&format!("--threads 1 cancel {flag}"));
        let found: Vec<Measurements> = bench.repeat(ROUNDS, bench.on(PES, &job))?;
        let abort = Sample::of(&found, |found| found.abort);
        report.figure(&format!("a million {what}, the caller"), &abort, Unit::SECONDS);
        let (all, goal) = (Sample::of(&found, |found| found.all), Goal::AtMost(0.2));
        report.goal(&format!("a million {what}, all PEs"), &all, Unit::SECONDS, goal);
    }
    Ok(())
}
