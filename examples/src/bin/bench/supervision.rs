//! What supervision costs while nobody dies: the same tasks unsupervised and supervised, in turn in
//! one job, for two long-known computations and for many small tasks.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const PAIRS: usize = 11;
/// With more PEs than that there are tasks that were stolen twice, of which their homes are told.
const PES: [u32; 2] = [2, 4];

/// Seconds of each round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    unsupervised: Vec<f64>,
    supervised: Vec<f64>,
    notifies: u64,
    acks: u64,
}

/// What there is to do.
#[derive(Clone, Copy, ValueEnum)]
enum Work {
    /// Totients up to 15,000 in 400 tasks.
    SumEuler,
    /// 1024 rows of the Mandelbrot set.
    Mandelbrot,
    /// 65,000 tasks of 20 µs.
    Small,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::SumEuler => "SumEuler",
            Work::Mandelbrot => "Mandelbrot",
            Work::Small => "65,000 small tasks",
        }
    }

    /// The most that supervision may take, in percent.
    fn goal(self) -> f64 {
        match self {
            Work::SumEuler | Work::Mandelbrot => 1.0,
            Work::Small => 5.0,
        }
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for pes in PES {
        for work in Work::value_variants() {
            let what = format!("{}, {pes} PEs", work.name());
            let Some(found) = report.accept(&what, run(bench, *work, pes)) else { continue };
            let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
            let (plain, supervised) = (sample(&found.unsupervised), sample(&found.supervised));
            report.figure(&format!("{what}: unsupervised"), &plain, Unit::SECONDS);
            report.figure(&format!("{what}: supervised"), &supervised, Unit::SECONDS);
            let percent = supervised.with(&plain, |s, p| 100.0 * (s / p - 1.0));
            let what = format!("{what}: supervision takes");
            // Where PEs take turns on the cores, that is what is measured.
            if pes as usize <= cores {
                report.goal(&what, &percent, Unit::PERCENT, Goal::AtMost(work.goal()));
            } else {
                report.figure(&format!("{what} ({cores} cores)"), &percent, Unit::PERCENT);
            }
            report.text(&format!("{} NOTIFY, {} ACK in all rounds", found.notifies, found.acks));
        }
    }
}

fn run(bench: &Bench, work: Work, pes: u32) -> Result<Found, LaunchError> {
    let mut job = bench.launcher.child();
    let value = work.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    job.args(["--threads", "1", "supervision", "--work", name]);
    // Shortened, it is still said what it is: pairs.
    job.args(["--pairs", &bench.rounds(PAIRS).to_string()]);
    launch::run(&mut bench.launcher.launched(pes, &job))?.json()
}

/// The same work again and again, unsupervised and supervised in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    work: Work,
    #[arg(long)]
    pairs: usize,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Found> {
        let (mut unsupervised, mut supervised) = (vec![], vec![]);
        // The first pair warms up; then each goes first in turn.
        for pair in 0..=self.pairs {
            let (plain, backed) = if pair % 2 == 0 {
                let plain = self.once(cx).await?;
                (plain, self.once(&cx.supervised()).await?)
            } else {
                let backed = self.once(&cx.supervised()).await?;
                (self.once(cx).await?, backed)
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
        Ok(Found { unsupervised, supervised, notifies, acks })
    }

    /// Seconds and a sum.
    async fn once(&self, cx: &Context) -> Result<(f64, u64)> {
        let start = Instant::now();
        let parts = match self.work {
            Work::SumEuler => par_map(cx, totients, chunks(1..15_001, 400)).await?,
            Work::Mandelbrot => par_map(cx, mandelbrot_row, 0..1024).await?,
            Work::Small => par_map(cx, spin, vec![20; 65_000]).await?,
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

/// The iterations that the points of a row take to leave the disc of radius 2, 500 at the most.
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
