//! The flags of the examples that map, and the map that they ask for. `--journal` keeps the results
//! in a file. `--record` writes how long the function took for each item, and what the job came to,
//! as one JSON object.
//!
//! `cargo xtask simulate validate` simulates the same job from a recording. Its reader is
//! `simulator/src/workload/recorded.rs`.

use crate::whole_file::WholeFile;
use crate::{JournalFlags, MapSkeleton, Report};
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Portable, Result, Stateless, Statistics, Traffic};

/// The skeleton of a map, and whether its results are kept or it is recorded.
#[derive(Clone, Debug, clap::Args)]
pub struct MapFlags {
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = MapSkeleton::ParMap)]
    pub skeleton: MapSkeleton,
    /// Write the time of each item and the counters of the job to this file, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "journal")]
    pub record: Option<PathBuf>,
    /// Where the results are kept.
    #[command(flatten)]
    pub journal: JournalFlags,
}

/// A recorded map begins after this pause: by then all PEs have started, and those without work
/// have slowed down (five times the longest delay between two FISHes).
const PAUSE: Duration = Duration::from_millis(100);

/// A map that is recorded, if the flags say so.
#[derive(Debug)]
pub struct MapRun {
    flags: MapFlags,
    file: Option<WholeFile>,
    /// The counters of the job when the map begins.
    before: Statistics,
    sleep_late: Duration,
    /// How long the main task took to spread the items, before it waited for the results.
    spread: Duration,
    task_ns: Vec<u64>,
}

impl MapRun {
    /// If there is to be a recording: checks that the file can be written (a job must not compute
    /// for hours in vain), and waits until all PEs have started and wait for work.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or a PE gives no answer.
    pub async fn begin(flags: &MapFlags, cx: &Context) -> Result<MapRun> {
        let file = |path: &PathBuf| WholeFile::at(path, "recording");
        let file = flags.record.as_ref().map(file).transpose()?;
        let (mut before, mut sleep_late) = (Statistics::default(), Duration::ZERO);
        if file.is_some() {
            sleep_late = measure_sleep_late();
            // Each PE answers, once it has started.
            cx.statistics().await?;
            cx.sleep(PAUSE).await;
            before = cx.statistics().await?;
        }
        Ok(MapRun {
            flags: flags.clone(),
            file,
            before,
            sleep_late,
            spread: Duration::ZERO,
            task_ns: Vec::new(),
        })
    }

    /// Applies `f` to each item; the results are in the order of the items.
    ///
    /// # Errors
    ///
    /// A task ended without a result, or the journal cannot be used.
    pub async fn map<F, A, R>(&mut self, cx: &Context, f: F, items: Vec<A>) -> Result<Vec<R>>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        let MapFlags { skeleton, journal, .. } = &self.flags;
        if journal.file.is_some() {
            return skeleton.map_with_journal(cx, journal, f, items).await;
        }
        if self.file.is_none() {
            return Ok(skeleton.map(cx, f, items).await?);
        }
        let timed = move |item: A| {
            let start = Instant::now();
            let result = f(item);
            (nanos(start.elapsed()), result)
        };
        let mut map = pin!(skeleton.map(cx, timed, items));
        let mut spread = None;
        let both = poll_fn(|waker| {
            let start = Instant::now();
            let polled = map.as_mut().poll(waker);
            spread.get_or_insert_with(|| start.elapsed());
            polled
        });
        let both = both.await?;
        self.spread = spread.unwrap_or_default();
        let (times, results) = both.into_iter().unzip();
        self.task_ns = times;
        Ok(results)
    }

    /// Writes the recording, if there is to be one. `report` was gathered when the map had ended.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(self, report: &Report) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        let after = report.statistics();
        let grown = |of: fn(&Statistics) -> u64| of(after).saturating_sub(of(&self.before));
        let mut recording = serde_json::to_value(report)?;
        recording["items"] = self.task_ns.len().into();
        recording["makespan_ns"] = nanos(report.elapsed()).into();
        recording["fishes"] = grown(|it| sum(it, |row| row.fishes)).into();
        recording["forwards"] = grown(|it| sum(it, |row| row.forwards)).into();
        recording["schedules"] = grown(|it| sum(it, |row| row.schedules)).into();
        recording["stolen"] = grown(|it| sum(it, |row| row.steals)).into();
        recording["no_works"] = grown(|it| sum(it, |row| row.no_works)).into();
        recording["notifies"] = grown(|it| it.notifies).into();
        recording["acks"] = grown(|it| it.acks).into();
        recording["sleep_late_ns"] = nanos(self.sleep_late).into();
        recording["spread_ns"] = nanos(self.spread).into();
        recording["task_ns"] = self.task_ns.into();
        file.save(|file| writeln!(file, "{recording}"))
    }
}

/// How much longer than asked for a short pause takes on this machine: the median of some. The
/// threads that look for messages make such pauses.
fn measure_sleep_late() -> Duration {
    const PAUSES: usize = 21;
    const PAUSE: Duration = Duration::from_micros(200);
    let late = |_| {
        let start = Instant::now();
        std::thread::sleep(PAUSE);
        start.elapsed().saturating_sub(PAUSE)
    };
    let mut late: Vec<Duration> = (0..PAUSES).map(late).collect();
    late.sort_unstable();
    late[PAUSES / 2]
}

/// A counter that is kept by distance, over all distances.
fn sum(statistics: &Statistics, of: fn(&Traffic) -> u64) -> u64 {
    statistics.by_distance.iter().map(of).sum()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
