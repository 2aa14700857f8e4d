//! The cost of supervision without deaths: the same tasks unsupervised and supervised, in turn in
//! one job, for the papers' computations and for many small tasks. Tasks of 1 ms also have a
//! journal when they are supervised, in the working folder; the clock stops when its disk has it.

use crate::child::spin;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit, cores};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};
use ultramarine_examples::name_of;
use ultramarine_examples::programs::mandelbrot::escape;
use ultramarine_examples::programs::sum_euler::sum_totient;

const PAIRS: usize = 11;
/// With more than two PEs some tasks are stolen twice, which sends NOTIFY and ACK to their homes.
const PES: [u32; 2] = [2, 4];

/// Seconds by round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    unsupervised: Sample,
    supervised: Sample,
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

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let cores = cores();
    // The number of pairs is explicit, also in a quick run.
    let pairs = bench.rounds(PAIRS);
    let works = || Computation::value_variants().iter();
    for (pes, work) in PES.into_iter().flat_map(|pes| works().map(move |work| (pes, work))) {
        let flags = format!("--work {} --pairs {pairs}", name_of(work));
        let job = bench.child(&format!("--threads 1 supervision {flags}"));
        let found: Measurements = launch::run(&mut bench.on(pes, &job))?.json()?;
        let what = format!("{}, {pes} PEs", work.name());
        report.figure(&format!("{what}: unsupervised"), &found.unsupervised, Unit::SECONDS);
        report.figure(&format!("{what}: supervised"), &found.supervised, Unit::SECONDS);
        let percent = found.supervised.with(&found.unsupervised, |s, p| 100.0 * (s / p - 1.0));
        // If PEs share cores, the measurement shows mainly that.
        let is_shared = pes as usize > cores;
        let beside = if is_shared { format!(" ({cores} cores)") } else { String::new() };
        let goal = (!is_shared).then(|| Goal::AtMost(work.goal()));
        report.goal(&format!("{what}: supervision takes{beside}"), &percent, Unit::PERCENT, goal);
        report.text(&format!("{} NOTIFY, {} ACK in all rounds", found.notifies, found.acks));
    }
    Ok(())
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
        let [mut unsupervised, mut supervised] = [const { Sample::new() }; 2];
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
            Computation::SumEuler => par_map(cx, sum_totient, split_range(1..15_001, 400)).await?,
            Computation::Mandelbrot => par_map(cx, mandelbrot_row, 0..1024).await?,
            Computation::Small => par_map(cx, spin_micros, vec![20; 65_000]).await?,
            Computation::Journalled => {
                map(spin_micros, vec![1000; 3000]).optional_journal(journal).run(cx).await?
            }
        };
        Ok((start.elapsed().as_secs_f64(), parts.iter().sum()))
    }
}

/// The iterations, at most 500 each, until the points of a row leave the disc of radius 2.
fn mandelbrot_row(row: u64) -> u64 {
    let point = |column| (f64::from(column) / 1024.0 * 3.0 - 2.0, row as f64 / 512.0 - 1.0);
    (0..1024_u32).map(|column| u64::from(escape(point(column), 500).0)).sum()
}

/// Computes for this many microseconds.
fn spin_micros(micros: u64) -> u64 {
    spin(Duration::from_micros(micros));
    1
}
