//! Round trips to one PE while a large structure goes to another: does a PE still respond while it
//! encodes, sends or decodes?

use crate::child::needs_pes;
use crate::launch::Bench;
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Histogram, Result};

const ROUNDS: usize = 5;
const NEAR: Pe = Pe::new(1);
const FAR: Pe = Pe::new(2);

/// The number of elements of the structure: 192 MB.
const ELEMENTS: usize = 24_000_000;

/// Without a structure, trips are measured for this time.
const ALONE_FOR: Duration = Duration::from_millis(500);

/// How the structure travels in the background.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Background {
    Nothing,
    /// As the argument of a placed task.
    Placed,
    /// As the result of a placed task.
    Returned,
}

/// Measures round trips.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    beside: Background,
}

#[derive(Serialize, Deserialize)]
struct Structure {
    name: String,
    values: Vec<f64>,
}

fn structure() -> Structure {
    Structure { name: "values".to_owned(), values: vec![1.5; ELEMENTS] }
}

/// The times of the trips, and the time of the structure in milliseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    trips: Histogram,
    millis: f64,
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Runs on the root until the structure has arrived.
async fn trips(cx: Context, (): ()) -> Histogram {
    let mut trips = Histogram::default();
    while !IS_OVER.load(Ordering::Relaxed) {
        let start = Instant::now();
        if cx.spawn_at(NEAR, async |_, ()| (), ()).await.is_err() {
            break;
        }
        trips.record(start.elapsed());
    }
    trips
}

fn length(structure: Structure) -> usize {
    black_box(structure).values.len()
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        needs_pes(cx, 3)?;
        let made = structure();
        let trips = cx.spawn(Distance::ZERO, trips, ());
        let start = Instant::now();
        let arrived = match self.beside {
            Background::Nothing => {
                cx.sleep(ALONE_FOR).await;
                ELEMENTS
            }
            Background::Placed => cx.spawn_at(FAR, async |_, made| length(made), made).await?,
            Background::Returned => length(cx.spawn_at(FAR, async |_, ()| structure(), ()).await?),
        };
        let millis = start.elapsed().as_secs_f64() * 1e3;
        IS_OVER.store(true, Ordering::Relaxed);
        if arrived != ELEMENTS {
            return Err(Error::other(format!("{arrived} of {ELEMENTS} numbers have arrived")));
        }
        Ok(Measurements { trips: trips.await?, millis })
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for beside in Background::value_variants() {
        let name = format!("{beside:?}").to_lowercase();
        let job = bench.child(&format!("--threads 2 trips --beside {name}"));
        let found: Vec<Measurements> = bench.repeat(ROUNDS, bench.on(3, &job))?;
        for (quantile, part) in [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)] {
            let micros = Sample::of(&found, |found| 1e6 * seconds_at(&found.trips, part));
            let has_goal = quantile == "p99" && *beside != Background::Nothing;
            let goal = has_goal.then_some(Goal::AtMost(1000.0));
            report.goal(&format!("192 MB {name}, {quantile}"), &micros, Unit::MICROS, goal);
        }
    }
    Ok(())
}
