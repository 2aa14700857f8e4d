//! The time that the main task takes to react while all workers of its PE, and so all cores, run
//! long tasks.

use crate::Bench;
use crate::launch;
use crate::report::{Goal, Report};
use crate::sample::Unit;
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use ultramarine::prelude::*;
use ultramarine::{Error, Histogram, Result, shutdown_requested};

const ROUNDS: usize = 3;
const NEAR: Pe = Pe::new(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Reacts to events.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// The number of events of each kind.
    #[arg(long, default_value_t = 300)]
    events: u32,
}

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

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        if cx.pes() != 2 {
            return Err(Error::other("this job needs two PEs"));
        }
        let busy = fork_on_workers(cx);
        cx.sleep(PAUSE * 4).await;
        let (mut timers, mut results) = (Histogram::default(), Histogram::default());
        for _ in 0..self.events {
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
}

/// Keeps each worker of this PE busy.
fn fork_on_workers(cx: &Context) -> Vec<ultramarine::Future<()>> {
    (0..cx.threads()).map(|n| cx.spawn_fn(Distance::ZERO, compute, n)).collect()
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let (mut timers, mut results, mut signals) = (vec![], vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        let mut job = bench.launcher.child();
        job.args(["--threads", "2", "reaction"]);
        let found = launch::run(&mut bench.launcher.launched(2, &job));
        let Some(found) =
            report.accept("reaction", found.and_then(|done| done.json::<Measurements>()))
        else {
            return;
        };
        let millis = |events: &Histogram| {
            events.quantile(0.99).map_or(f64::NAN, |late| late.as_secs_f64() * 1e3)
        };
        timers.push(millis(&found.timers));
        results.push(millis(&found.results));
        signals.push(found.signal_millis);
    }
    for (what, millis) in
        [("to a timer, p99", timers), ("to a result, p99", results), ("to SIGTERM", signals)]
    {
        report.goal(what, &millis.into_iter().collect(), Unit::MILLIS, Goal::AtMost(5.0));
    }
}
