//! The flags of the programs that map, and the map that they ask for. `--journal` keeps the results
//! in a file. `--record` writes how long the function took for each item, and what the job came to,
//! as one JSON object.
//!
//! `cargo xtask simulate validate` simulates the same job from a recording. Its reader is
//! `simulator/src/workload/recorded.rs`.

use crate::whole_file::WholeFile;
use crate::{Job, JournalFlags, MapSkeleton, Report, name_of};
use serde::Serialize;
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::path::{Path, PathBuf};
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
    record: Option<PathBuf>,
    /// Where the results are kept.
    #[command(flatten)]
    journal: JournalFlags,
}

/// A map that has ended.
#[derive(Debug)]
pub struct MapRun {
    skeleton: MapSkeleton,
    start: Instant,
    recording: Option<Recording>,
}

impl MapFlags {
    /// Applies `f` to each item; the results are in the order of the items.
    ///
    /// # Errors
    ///
    /// A task ended without a result, the journal cannot be used, or there is to be a recording and
    /// its file cannot be written: a job must not compute for hours in vain.
    pub async fn run<F, A, R>(&self, job: &Job, f: F, items: Vec<A>) -> Result<(Vec<R>, MapRun)>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        let (cx, skeleton) = (&job.cx, self.skeleton);
        let mut recording = match &self.record {
            Some(path) => Some(Recording::begin(path, cx).await?),
            None => None,
        };
        let total = skeleton.tasks(cx, items.len());
        let start = Instant::now();
        let work = async {
            match &mut recording {
                Some(recording) => recording.map(cx, self, f, items).await,
                None => skeleton.map(cx, &self.journal, f, items).await,
            }
        };
        let results = job.progress(total, work).await?;
        Ok((results, MapRun { skeleton, start, recording }))
    }
}

impl MapRun {
    /// The report of the map, which has just ended with this `result`. Writes the recording, if
    /// there is to be one.
    ///
    /// # Errors
    ///
    /// The statistics cannot be gathered, or the file cannot be written.
    pub async fn report(self, job: &Job, result: impl Serialize) -> Result<Report> {
        let report = job.report(name_of(&self.skeleton), self.start, result).await?;
        self.recording.map_or(Ok(()), |recording| recording.write(&report))?;
        Ok(report)
    }
}

/// A recorded map begins after this pause: by then all PEs have started, and those without work
/// have slowed down (five times the longest delay between two FISHes).
const PAUSE: Duration = Duration::from_millis(100);

/// What is recorded of a map.
#[derive(Debug)]
struct Recording {
    file: WholeFile,
    /// The counters of the job when the map begins.
    before: Statistics,
    sleep_late: Duration,
    /// How long the main task took to spread the items, before it waited for the results.
    spread: Duration,
    task_ns: Vec<u64>,
}

impl Recording {
    /// Checks that the file can be written, and waits until all PEs have started and wait for work.
    async fn begin(path: &Path, cx: &Context) -> Result<Recording> {
        let file = WholeFile::at(path, "recording")?;
        let sleep_late = measure_sleep_late();
        // Each PE answers, once it has started.
        cx.statistics().await?;
        cx.sleep(PAUSE).await;
        let (before, spread) = (cx.statistics().await?, Duration::ZERO);
        Ok(Recording { file, before, sleep_late, spread, task_ns: Vec::new() })
    }

    async fn map<F, A, R>(
        &mut self,
        cx: &Context,
        flags: &MapFlags,
        f: F,
        items: Vec<A>,
    ) -> Result<Vec<R>>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        let timed = move |item: A| {
            let start = Instant::now();
            let result = f(item);
            (nanos(start.elapsed()), result)
        };
        let mut map = pin!(flags.skeleton.map(cx, &flags.journal, timed, items));
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

    fn write(self, report: &Report) -> Result<()> {
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
        self.file.save(|file| writeln!(file, "{recording}"))
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
