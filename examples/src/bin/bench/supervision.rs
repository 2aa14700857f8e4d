//! The cost of supervision without deaths: the same tasks unsupervised and supervised, in turn in
//! one job, for the papers' computations and for many small tasks. Tasks of 1 ms also have a
//! journal when they are supervised, in the working folder; the clock stops when its disk has it.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const PAIRS: usize = 11;
/// With more than two PEs some tasks are stolen twice, which sends NOTIFY and ACK to their homes.
const PES: [u32; 2] = [2, 4];

/// Seconds by round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    unsupervised: Vec<f64>,
    supervised: Vec<f64>,
    notifies: u64,
    acks: u64,
}

/// What the tasks compute.
#[derive(Clone, Copy, ValueEnum)]
enum Computation {
    /// Totients up to 15,000 in 400 tasks.
    SumEuler,
    /// 1024 rows of the Mandelbrot set.
    Mandelbrot,
    /// 65,000 tasks of 20 µs.
    Small,
    /// 3,000 tasks of 1 ms.
    Journalled,
}

impl Computation {
    fn name(self) -> &'static str {
        match self {
            Computation::SumEuler => "SumEuler",
            Computation::Mandelbrot => "Mandelbrot",
            Computation::Small => "65,000 small tasks",
            Computation::Journalled => "3,000 tasks of 1 ms, journal",
        }
    }

    /// The largest cost of supervision that is allowed, in percent.
    fn goal(self) -> f64 {
        match self {
            Computation::SumEuler | Computation::Mandelbrot | Computation::Journalled => 1.0,
            Computation::Small => 5.0,
        }
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for pes in PES {
        for work in Computation::value_variants() {
            let what = format!("{}, {pes} PEs", work.name());
            let Some(found) = report.accept(&what, run(bench, *work, pes)) else { continue };
            let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
            let (plain, supervised) = (sample(&found.unsupervised), sample(&found.supervised));
            report.figure(&format!("{what}: unsupervised"), &plain, Unit::SECONDS);
            report.figure(&format!("{what}: supervised"), &supervised, Unit::SECONDS);
            let percent = supervised.with(&plain, |s, p| 100.0 * (s / p - 1.0));
            let what = format!("{what}: supervision takes");
            // If PEs share cores, the measurement shows mainly that.
            if pes as usize <= cores {
                report.goal(&what, &percent, Unit::PERCENT, Goal::AtMost(work.goal()));
            } else {
                report.figure(&format!("{what} ({cores} cores)"), &percent, Unit::PERCENT);
            }
            report.text(&format!("{} NOTIFY, {} ACK in all rounds", found.notifies, found.acks));
        }
    }
}

fn run(bench: &Bench, work: Computation, pes: u32) -> Result<Measurements, LaunchError> {
    let mut job = bench.launcher.child();
    let value = work.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    job.args(["--threads", "1", "supervision", "--work", name]);
    // The number of pairs is explicit, also in a quick run.
    job.args(["--pairs", &bench.rounds(PAIRS).to_string()]);
    launch::run(&mut bench.launcher.launched(pes, &job))?.json()
}

/// Repeats the same work, unsupervised and supervised in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    work: Computation,
    #[arg(long)]
    pairs: usize,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let (mut unsupervised, mut supervised) = (vec![], vec![]);
        // The first pair warms up. Then each of the two goes first in turn.
        for pair in 0..=self.pairs {
            let (plain, backed) = if pair % 2 == 0 {
                let plain = self.once(cx, None).await?;
                (plain, self.once_backed(cx).await?)
            } else {
                let backed = self.once_backed(cx).await?;
                (self.once(cx, None).await?, backed)
            };
            if plain.1 != backed.1 {
                let text = format!("{} came out, and supervised {}", plain.1, backed.1);
                return Err(Error::other(text));
            }
            if pair > 0 {
                unsupervised.push(plain.0);
                supervised.push(backed.0);
            }
        }
        let statistics = cx.statistics().await?;
        let (notifies, acks) = (statistics.notifies, statistics.acks);
        Ok(Measurements { unsupervised, supervised, notifies, acks })
    }

    /// Runs the work once, supervised.
    async fn once_backed(&self, cx: &Context) -> Result<(f64, u64)> {
        let folder = tempfile::tempdir_in(".")?;
        self.once(&cx.supervised(), Some(folder.path().join("journal"))).await
    }

    /// Runs the work once, perhaps with a journal; returns the seconds and the sum of its results.
    async fn once(&self, cx: &Context, journal: Option<PathBuf>) -> Result<(f64, u64)> {
        let start = Instant::now();
        let parts = match self.work {
            Computation::SumEuler => par_map(cx, totients, split_range(1..15_001, 400)).await?,
            Computation::Mandelbrot => par_map(cx, mandelbrot_row, 0..1024).await?,
            Computation::Small => par_map(cx, spin, vec![20; 65_000]).await?,
            Computation::Journalled => {
                map(spin, vec![1000; 3000]).optional_journal(journal).run(cx).await?
            }
        };
        Ok((start.elapsed().as_secs_f64(), parts.iter().sum()))
    }
}

fn totients(range: Range<u64>) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    range.map(|n| (1..=n).filter(|k| gcd(n, *k) == 1).count() as u64).sum()
}

/// The iterations, at most 500 each, until the points of a row leave the disc of radius 2.
fn mandelbrot_row(row: u64) -> u64 {
    let iterations = |column: u64| {
        let (re, im) = (column as f64 / 1024.0 * 3.0 - 2.0, row as f64 / 1024.0 * 2.0 - 1.0);
        let (mut point, mut count) = ((0.0, 0.0), 0);
        while point.0 * point.0 + point.1 * point.1 <= 4.0 && count < 500 {
            let (x, y) = point;
            point = (x * x - y * y + re, 2.0 * x * y + im);
            count += 1;
        }
        count
    };
    (0..1024).map(iterations).sum()
}

/// Computes for this many microseconds.
fn spin(micros: u64) -> u64 {
    let (start, length) = (Instant::now(), Duration::from_micros(micros));
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
    1
}
