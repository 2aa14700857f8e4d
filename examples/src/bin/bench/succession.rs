//! The time from the death of the root until each survivor knows which PE has taken its place, and
//! until the main task begins anew there. The root kills itself; on each survivor a thread checks
//! ten thousand times a second.
//!
//! All PEs are on one host, so their clocks agree.

use crate::child::now;
use crate::launch::Bench;
use crate::{Goal, Report, Sample, Unit, cores};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 15;
const PES: u32 = 8;
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// How long the others are idle before the root dies.
const CALM: Duration = Duration::from_millis(300);
/// A survivor checks at most for this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Milliseconds from the root's death.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// By survivor: until it knew.
    known: Sample,
    /// Until the main task began anew.
    began: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    report.text(&format!("{PES} idle PEs on {} cores", cores()));
    let job = bench.on(PES, &bench.child("--threads 1 succession"));
    let jobs: Vec<Measurements> = bench.repeat_quietly(ROUNDS, job)?;
    let each = jobs.iter().flat_map(|job| job.known.values());
    report.figure("known to a survivor after", &each.collect(), Unit::MILLIS);
    let last = Sample::of(&jobs, |job| job.known.max());
    report.goal("known to all after", &last, Unit::MILLIS, Goal::AtMost(50.0));
    let began = Sample::of(&jobs, |job| job.began);
    report.figure("the main task begins anew after", &began, Unit::MILLIS);
    Ok(())
}

/// What a PE that is not the root has found out.
static FOUND: OnceLock<Found> = OnceLock::new();

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Found {
    /// When the root died; since 1970, as the other.
    died: Duration,
    /// When this PE knew who is root now.
    knew: Duration,
}

/// A job whose root dies once.
pub(crate) async fn job(cx: &Context) -> Result<Measurements> {
    let began = now();
    if cx.attempt() == 1 {
        return die(cx).await;
    }
    let survivors = (1..cx.pes()).map(Pe::new);
    let answers: Vec<_> = survivors.map(|pe| cx.spawn_at(pe, tell, ())).collect();
    let (mut known, mut died) = (Sample::new(), began);
    for answer in answers {
        let found = answer.await?;
        let found = found.ok_or_else(|| Error::other("a survivor has heard of no new root"))?;
        known.push(millis(found.died, found.knew));
        died = found.died;
    }
    Ok(Measurements { known, began: millis(died, began) })
}

async fn die(cx: &Context) -> Result<Measurements> {
    let at = now() + CALM;
    for n in 1..cx.pes() {
        cx.spawn_at(Pe::new(n), watch, at).await?;
    }
    std::thread::sleep(at.saturating_sub(now()));
    kill_process(getpid(), Signal::KILL).map_err(|error| Error::Io(error.into()))?;
    Err(Error::other("this process was killed, and goes on"))
}

/// Begins to look out for a new root. The first dies at this moment.
async fn watch(cx: Context, died: Duration) {
    std::thread::spawn(move || {
        let start = Instant::now();
        while cx.root() == Pe::ROOT && start.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_EVERY);
        }
        if cx.root() != Pe::ROOT {
            FOUND.get_or_init(|| Found { died, knew: now() });
        }
    });
}

/// What this PE has found out; waits until it has.
async fn tell(cx: Context, (): ()) -> Option<Found> {
    let start = Instant::now();
    while FOUND.get().is_none() && start.elapsed() < PATIENCE {
        cx.sleep(LOOK_EVERY * 10).await;
    }
    FOUND.get().copied()
}

fn millis(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64() * 1e3
}
