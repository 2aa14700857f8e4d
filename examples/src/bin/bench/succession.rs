//! The time from the death of the root until each survivor knows which PE has taken its place, and
//! until the main task begins anew there. The root kills itself; on each survivor a thread checks
//! ten thousand times a second.
//!
//! All PEs are on one host, so their clocks agree.

use crate::Bench;
use crate::launch;
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};
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
    known: Vec<f64>,
    /// Until the main task began anew.
    began: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.text(&format!("{PES} idle PEs on {cores} cores"));
    let job = |_| {
        let mut job = bench.launcher.child();
        job.args(["--threads", "1", "succession"]);
        launch::run_quietly(&mut bench.launcher.launched(PES, &job))?.json::<Measurements>()
    };
    let jobs = (0..bench.rounds(ROUNDS)).map(job).collect::<Result<Vec<_>, _>>();
    let Some(jobs) = report.accept("succession", jobs) else { return };
    let each: Sample = jobs.iter().flat_map(|job| &job.known).copied().collect();
    let last = jobs.iter().map(|job| job.known.iter().copied().fold(f64::NAN, f64::max));
    report.figure("known to a survivor after", &each, Unit::MILLIS);
    report.goal("known to all after", &last.collect(), Unit::MILLIS, Goal::AtMost(50.0));
    let began = jobs.iter().map(|job| job.began);
    report.figure("the main task begins anew after", &began.collect(), Unit::MILLIS);
}

/// A job whose root dies once.
#[derive(clap::Args)]
pub(crate) struct Job {}

/// What a PE that is not the root has found out.
static FOUND: OnceLock<Found> = OnceLock::new();

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Found {
    /// When the root died; since 1970, as the other.
    died: Duration,
    /// When this PE knew who is root now.
    knew: Duration,
}

impl Job {
    #[allow(clippy::unused_self, reason = "as the others")]
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let began = now();
        if cx.attempt() == 1 {
            return Self::die(cx).await;
        }
        let survivors = (1..cx.pes()).map(Pe::new);
        let answers: Vec<_> = survivors.map(|pe| cx.spawn_at(pe, tell, ())).collect();
        let (mut known, mut died) = (Vec::new(), began);
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

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn millis(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64() * 1e3
}
