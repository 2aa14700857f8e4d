//! The time from cancelling a million waiting tasks on several PEs until none of them is left.

use crate::Bench;
use crate::launch;
use crate::report::{Goal, Report};
use crate::sample::Unit;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Future, Result};

const ROUNDS: usize = 3;
const PES: u32 = 4;

/// Cancels waiting tasks.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// The number of tasks on all PEs together.
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
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
fn block(_: u32) {
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
        let all = || (0..cx.pes()).map(Pe::new);
        let block = async |_, n| block(n);
        let blocking: Vec<_> = all().map(|pe| cx.spawn_at(pe, block, pe.number())).collect();
        let spawn = |n: u64| {
            if self.spawned {
                return cx.spawn_fn(Distance::ONE, count, n);
            }
            cx.spawn_at(Pe::new((n % pes) as u32), async |_, n| count(n), n)
        };
        let tasks: Vec<Future<()>> = (0..self.tasks).map(spawn).collect();
        // All tasks arrive and wait.
        cx.sleep(Duration::from_secs(2)).await;
        let start = Instant::now();
        Future::abort_all(&tasks);
        let abort = start.elapsed().as_secs_f64();
        // This message arrives after the cancellation, on PEs whose workers do nothing else.
        cx.tell_all(async |_, ()| IS_OPEN.store(true, Ordering::Relaxed), ())?;
        for blocking in blocking {
            blocking.await?;
        }
        let last = async |_, ()| STARTED.load(Ordering::Relaxed);
        let asked: Vec<_> = all().map(|pe| cx.spawn_at(pe, last, ())).collect();
        let mut started = 0;
        for answer in asked {
            started += answer.await?;
        }
        let all = start.elapsed().as_secs_f64();
        if started > 0 {
            return Err(Error::other(format!("{started} tasks were run that had been cancelled")));
        }
        Ok(Measurements { abort, all })
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for (what, way) in [("placed", None), ("that wait at the root", Some("--spawned"))] {
        let (mut abort, mut all) = (vec![], vec![]);
        for _ in 0..bench.rounds(ROUNDS) {
            let mut job = bench.launcher.child();
            job.args(["--threads", "1", "cancel"]).args(way);
            let found = launch::run(&mut bench.launcher.launched(PES, &job));
            let found = report.accept("cancel", found.and_then(|done| done.json::<Measurements>()));
            let Some(found) = found else { return };
            abort.push(found.abort);
            all.push(found.all);
        }
        let abort = abort.into_iter().collect();
        report.figure(&format!("a million {what}, the caller"), &abort, Unit::SECONDS);
        let (all, goal) = (all.into_iter().collect(), Goal::AtMost(0.2));
        report.goal(&format!("a million {what}, all PEs"), &all, Unit::SECONDS, goal);
    }
}
