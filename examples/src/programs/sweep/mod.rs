//! A parameter sweep in which all tasks read one large table. The table is sent once to each
//! process. The result of each point is written to a file as soon as it is there.
//!
//! [`walk`] has the computation.

pub mod walk;

use crate::{Job, name_of, run_program};
use clap::ValueEnum;
use futures_util::StreamExt as _;
use futures_util::future::{Either, pending, select};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, LineWriter, Write as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result, shutdown_requested};
use walk::{Walks, digest};

/// Walk at random through a large table, from many starting points.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    walks: Walks,
    /// Write each result to this file as soon as it is there: one line `point,value` for each
    /// point.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Map)]
    skeleton: Skeleton,
    /// On SIGTERM or Ctrl-C, end with the points done so far.
    #[arg(long)]
    partial: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A task for each point, which any PE may steal.
    Map,
    /// A task for each point, placed on all PEs in turn.
    PushMap,
    /// One thread of the root, point after point.
    Sequential,
}

/// The result of a point.
#[derive(Serialize, Deserialize)]
struct WalkResult {
    value: f64,
    pe: Pe,
    /// The duration of the walk.
    seconds: f64,
}

impl WalkResult {
    fn new(cx: &Context, walks: Walks, table: &[f64], point: u64) -> Self {
        let start = Instant::now();
        let value = walks.walk(table, point);
        WalkResult { value, pe: cx.pe(), seconds: start.elapsed().as_secs_f64() }
    }
}

/// The output file, to which each line is written at once.
struct Output {
    path: PathBuf,
    file: LineWriter<File>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self> {
        let mut file = File::create(&path).map_err(|e| Output::error(&path, &e))?;
        file.write_all(b"point,value\n").map_err(|e| Output::error(&path, &e))?;
        Ok(Output { path, file: LineWriter::new(file) })
    }

    fn write(&mut self, point: u64, value: f64) -> Result<()> {
        writeln!(self.file, "{point},{value}").map_err(|e| Output::error(&self.path, &e))
    }

    fn error(path: &Path, cause: &io::Error) -> Error {
        Error::other(format!("cannot write the output {}: {cause}", path.display()))
    }
}

/// The results so far.
struct SweepTotals {
    output: Option<Output>,
    start: Instant,
    points: u64,
    digest: u64,
    /// When each PE began its first walk, in seconds after the start. By then it had the table.
    began: BTreeMap<Pe, f64>,
}

impl SweepTotals {
    fn take(&mut self, point: u64, answer: &WalkResult) -> Result<()> {
        if let Some(output) = &mut self.output {
            output.write(point, answer.value)?;
        }
        self.points += 1;
        self.digest = self.digest.wrapping_add(digest(point, answer.value));
        let began = self.start.elapsed().as_secs_f64() - answer.seconds;
        self.began.entry(answer.pe).or_insert(began);
        Ok(())
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("sweep", sweep)
}

async fn sweep(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { walks, output, skeleton, partial } = arguments;
    let output = output.map(Output::create).transpose()?;
    let cx = &job.cx;
    let table = walks.table();
    let start = Instant::now();
    let mut totals = SweepTotals { output, start, points: 0, digest: 0, began: BTreeMap::new() };
    if let Skeleton::Sequential = skeleton {
        (0..walks.points)
            .try_for_each(|n| totals.take(n, &WalkResult::new(cx, walks, &table, n)))?;
    } else {
        let walk = async |cx: Context, table: Shared<Vec<f64>>, (walks, point)| {
            WalkResult::new(&cx, walks, &table, point)
        };
        let points = (0..walks.points).map(move |point| (walks, point));
        let map = map_async_with(table, walk, points);
        let map = if let Skeleton::PushMap = skeleton { map.push() } else { map };
        let work = async {
            let mut answers = pin!(map.stream(cx));
            let mut asked =
                pin!(async { if partial { shutdown_requested().await } else { pending().await } });
            while let Either::Right((Some(answer), _)) = select(&mut asked, answers.next()).await {
                let (point, answer) = answer?;
                totals.take(point as u64, &answer)?;
            }
            Ok::<_, Error>(())
        };
        job.progress(walks.points, work).await?;
    }
    let SweepTotals { points, digest, began, .. } = totals;
    let start_up = began.values().copied().fold(0.0, f64::max);
    let result = digest.cast_signed();
    let report = job.report(name_of(&skeleton), start, result).await?;
    let report = report.with("points", points).with("of", walks.points);
    report.with("had_the_table", began.len()).with("start_up_seconds", start_up).print()
}
