//! Thousands of random jobs with random faults: each must end, with the right result.

use super::ExperimentError;
use super::number::{seeds, whole, whole_number};
use crate::faults::Jobs;
use crate::report::RunTotals;
use crate::table::Row;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The options of random jobs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Faults {
    /// The seed of the first job; each further job has the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    seed: u64,
    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole(1..=u64::MAX))]
    runs: u64,
    /// How many jobs are simulated at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole_number::<u32>(1..=1024))]
    threads: u32,
    /// What the jobs compute, and whether they go on when their root dies
    #[arg(long, value_enum, value_name = "KIND", default_value_t)]
    jobs: Jobs,
    /// Print the events of each job, but for turns, timers and heartbeats
    #[arg(long, conflicts_with_all = ["threads", "json"])]
    tell: bool,
    /// Print the totals as a JSON object in a line; wrong jobs are told on standard error
    #[arg(long)]
    json: bool,
}

/// How often it says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);

impl Faults {
    /// Runs the jobs. Returns whether all were as they must be.
    pub(super) fn show(&self, out: &mut (dyn Write + Send)) -> Result<bool, ExperimentError> {
        let begun = Instant::now();
        let seeds = seeds(self.seed, self.runs)?;
        let (next, is_over) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
        let shared = Mutex::new((RunTotals::default(), out, Ok::<(), std::io::Error>(()), begun));
        let simulate = || {
            while !is_over.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return;
                }
                let run = self.jobs.run(seed, self.tell);
                // A thread that has panicked leaves totals that are whole.
                let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let (totals, out, written, told) = &mut *shared;
                totals.add(&run);
                if run.fault.is_some() && self.json {
                    eprintln!("{run}");
                } else if run.fault.is_some() || self.tell {
                    *written = writeln!(out, "{run}");
                }
                if told.elapsed() > PROGRESS {
                    *told = Instant::now();
                    let _ = writeln!(std::io::stderr(), "{} jobs …", totals["runs"]);
                }
                if written.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(simulate);
            }
            simulate();
        });
        let shared = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (totals, out, written, _) = shared;
        written?;
        let seconds = begun.elapsed().as_secs_f64();
        if self.json {
            writeln!(out, "{}", row(&totals, seconds).json())?;
        } else {
            writeln!(out, "{totals}\nsimulated in {seconds:.0} s")?;
        }
        Ok(totals.are_good())
    }
}

/// The totals, and the time that the jobs took, in seconds, for JSON.
fn row(totals: &RunTotals, seconds: f64) -> Row {
    let head = Row::default()
        .count("", "jobs", totals["runs"])
        .count("", "wrong", totals.wrong)
        .count("", "hung", totals.hung);
    let all = totals.counters().fold(head, |row, (key, count)| row.count("", key, count));
    all.real("", "wall_seconds", seconds, 3)
}
