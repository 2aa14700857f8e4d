//! Thousands of random jobs with random faults: each must end, with the right result.

use super::ExperimentError;
use super::number::{seeds, whole_number};
use crate::report::RunTotals;
use crate::table::{Cell, Column, Table};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The options of random jobs.
#[derive(Clone, Debug, clap::Args)]
pub struct Faults {
    /// The seed of the first job; each further job has the next seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole_number::<u64>(0..=u64::MAX))]
    pub seed: u64,

    /// The number of jobs
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole_number::<u64>(1..=u64::MAX))]
    pub runs: u64,

    /// How many jobs are simulated at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole_number::<u32>(1..=1024))]
    pub threads: u32,

    /// Print the events of each job, but for turns, timers and heartbeats
    #[arg(long, conflicts_with_all = ["threads", "json"])]
    pub tell: bool,

    /// Print the totals as a JSON object in a line; wrong jobs are told on standard error
    #[arg(long)]
    pub json: bool,
}

/// How often it says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);

impl Faults {
    /// Runs the jobs. Returns whether all were as they must be.
    ///
    /// # Errors
    /// The seeds run out before the runs do, or the output cannot be written.
    pub fn show(&self, out: &mut (dyn Write + Send)) -> Result<bool, ExperimentError> {
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
                let run = crate::faults::run(seed, self.tell);
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
                    let _ = writeln!(std::io::stderr(), "{} jobs …", totals.runs);
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
            writeln!(out, "{}", table(seconds).json(&totals))?;
        } else {
            writeln!(out, "{totals}\nsimulated in {seconds:.0} s")?;
        }
        Ok(totals.are_good())
    }
}

/// The totals and the time that the jobs took, in seconds, as JSON.
fn table(seconds: f64) -> Table<RunTotals> {
    type Counter = (&'static str, fn(&RunTotals) -> u64);
    let counters: [Counter; 20] = [
        ("jobs", |totals| totals.runs),
        ("wrong", |totals| totals.wrong),
        ("hung", |totals| totals.hung),
        ("pes", |totals| totals.pes),
        ("tasks", |totals| totals.tasks),
        ("deaths", |totals| totals.deaths),
        ("expelled", |totals| totals.expelled),
        ("replicas", |totals| totals.replicas),
        ("orphans", |totals| totals.orphans),
        ("poisons", |totals| totals.poisons),
        ("lanes_left", |totals| totals.lanes_left),
        ("bytes_resent", |totals| totals.bytes_resent),
        ("successions", |totals| totals.successions),
        ("restarts", |totals| totals.restarts),
        ("repeated", |totals| totals.repeated),
        ("doubled", |totals| totals.doubled),
        ("unfinished", |totals| totals.unfinished),
        ("late", |totals| totals.late),
        ("unheard", |totals| totals.unheard),
        ("events", |totals| totals.events),
    ];
    let counters = counters
        .map(|(key, count)| Column::new("", "", key, move |totals| Cell::Count(count(totals))));
    let time = Column::new("", "", "wall_seconds", move |_| Cell::Real(seconds, 3));
    Table::new(counters.into_iter().chain([time]).collect())
}
