//! Trees of tasks that spawn tasks, by stealing alone: queens and Fibonacci numbers.

use super::number::whole_number;
use super::output::Each;
use super::uts::{FIRST_CORES, efficiency_chart};
use super::{Experiment, ExperimentError, RunFigures, Setup, doublings, figures};
use crate::chart::{Chart, Series};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::published::HDPH_RS_SPEEDUPS;
use crate::table::Column;
use crate::workload::spawn_tree::{Fibonacci, Problem, Queens, SpawnTree};
use std::sync::Arc;

/// The options of queens.
#[derive(Clone, Debug, clap::Args)]
pub struct QueensTree {
    /// What it runs on. A PE has one worker unless told otherwise, so cores are PEs
    #[command(flatten)]
    pub setup: Setup,

    /// The rows and columns of the board
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = whole_number::<u32>(1..=16))]
    pub board: u32,

    /// How many rows are divided into tasks
    #[arg(long, value_name = "N", default_value_t = 6)]
    #[arg(value_parser = whole_number::<u32>(1..=12))]
    pub threshold: u32,

    /// What a board costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 100)]
    #[arg(value_parser = whole_number::<u32>(1..=1_000_000))]
    pub step_ns: u32,

    /// Double the cores from 128 up to this number
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(FIRST_CORES..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

impl Experiment for QueensTree {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        figures::columns("problem")
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let name = format!("queens {}, {} rows", self.board, self.threshold);
        let whole = Queens::empty(self.board, self.threshold);
        let cores = doublings(FIRST_CORES, self.most_cores);
        let how = (f64::from(self.step_ns), self.supervised);
        run_tree(&self.setup, (&cores, 1), &name, whole, how, each)
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        vec![("queens", efficiency_chart("Queens by stealing alone", rows))]
    }
}

/// The options of Fibonacci numbers.
#[derive(Clone, Debug, clap::Args)]
pub struct FibonacciTree {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    /// Which number
    #[arg(long, value_name = "N", default_value_t = 45)]
    #[arg(value_parser = whole_number::<u32>(1..=80))]
    pub n: u32,

    /// Up to which number a task computes it alone
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[arg(value_parser = whole_number::<u32>(1..=80))]
    pub threshold: u32,

    /// What a call costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 3)]
    #[arg(value_parser = whole_number::<u32>(1..=1_000_000))]
    pub step_ns: u32,

    /// Double the cores from 16 up to this number
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(16..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

/// The most divisions between a number and the threshold: 2^25 tasks or so.
const DIVISIONS_MAX: u32 = 35;

impl Experiment for FibonacciTree {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        figures::columns("problem")
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        if self.n > self.threshold + DIVISIONS_MAX {
            return Err(ExperimentError::Refused {
                what: format!("fib({}) down to {} has too many tasks", self.n, self.threshold),
                allowed: format!("--n may be at most {DIVISIONS_MAX} above --threshold"),
            });
        }
        let name = format!("fib {}, threshold {}", self.n, self.threshold);
        let whole = Fibonacci { n: self.n, threshold: self.threshold };
        let how = (f64::from(self.step_ns), self.supervised);
        run_tree(&self.setup, (&doublings(16, self.most_cores), 16), &name, whole, how, each)
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        let mut chart = efficiency_chart("Fibonacci numbers by stealing alone", rows);
        let published = HDPH_RS_SPEEDUPS.iter().filter(|it| it.name.starts_with("Fibonacci"));
        chart.references.extend(published.map(|it| {
            let cores = f64::from(it.point.cores);
            Series::new(&it.label(), vec![(cores, 100.0 * it.point.value / cores)])
        }));
        vec![("fibonacci", chart)]
    }
}

/// Runs a tree on machines with these numbers of cores, and workers a PE.
fn run_tree<P: Problem>(
    setup: &Setup,
    (cores, workers): (&[u64], u32),
    name: &str,
    whole: P,
    (step_ns, is_supervised): (f64, bool),
    each: &mut Each<'_, RunFigures>,
) -> Result<(), ExperimentError> {
    for base in setup.bases(cores, workers, Preset::Gemini)? {
        let is_supervised = base.supervises(is_supervised);
        let workload = Arc::new(SpawnTree { whole, step_ns, is_supervised });
        each(RunFigures::of(name, &base, workload, Vec::new())?)?;
    }
    Ok(())
}
