//! The time that the main task takes to react while all workers of its PE, and so all cores, run
//! long tasks.

use crate::child::needs_pes;
use crate::launch::Bench;
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use ultramarine::prelude::*;
use ultramarine::{Error, Histogram, Result, shutdown_requested};

const ROUNDS: usize = 3;
const NEAR: Pe = Pe::new(1);
/// The number of events of each kind.
const EVENTS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(5);

/// The delays.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    timers: Histogram,
    results: Histogram,
    signal_millis: f64,
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn compute(_: usize) {
    while !IS_OVER.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Reacts to events.
pub(crate) async fn job(cx: &Context) -> Result<Measurements> {
    needs_pes(cx, 2)?;
    let busy = fork_on_workers(cx);
    cx.sleep(PAUSE * 4).await;
    let (mut timers, mut results) = (Histogram::default(), Histogram::default());
    for _ in 0..EVENTS {
        let start = Instant::now();
        cx.sleep(PAUSE).await;
        timers.record(start.elapsed().saturating_sub(PAUSE));
        let end = async |cx: Context, ()| {
            cx.sleep(PAUSE).await;
            SystemTime::now()
        };
        let ended = cx.spawn_at(NEAR, end, ()).await?;
        results.record(ended.elapsed().unwrap_or_default());
    }
    let sent = std::thread::spawn(|| {
        std::thread::sleep(PAUSE * 4);
        let sent = Instant::now();
        kill_process(getpid(), Signal::TERM).map(|()| sent)
    });
    shutdown_requested().await;
    let heard = Instant::now();
    IS_OVER.store(true, Ordering::Relaxed);
    let sent = sent.join().map_err(|_| Error::other("the sender panicked"))??;
    for task in busy {
        task.await?;
    }
    let signal_millis = (heard - sent).as_secs_f64() * 1e3;
    Ok(Measurements { timers, results, signal_millis })
}

/// Keeps each worker of this PE busy.
fn fork_on_workers(cx: &Context) -> Vec<ultramarine::Future<()>> {
    (0..cx.threads()).map(|n| cx.spawn_fn(Distance::ZERO, compute, n)).collect()
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let job = bench.on(2, &bench.child("--threads 2 reaction"));
    let found: Vec<Measurements> = bench.repeat(ROUNDS, job)?;
    for (what, millis) in [
        ("to a timer, p99", Sample::of(&found, |found| 1e3 * seconds_at(&found.timers, 0.99))),
        ("to a result, p99", Sample::of(&found, |found| 1e3 * seconds_at(&found.results, 0.99))),
        ("to SIGTERM", Sample::of(&found, |found| found.signal_millis)),
    ] {
        report.goal(what, &millis, Unit::MILLIS, Goal::AtMost(5.0));
    }
    Ok(())
}
