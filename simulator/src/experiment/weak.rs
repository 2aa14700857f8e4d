//! Weak scaling of Sum Euler: twice the integers on twice the cores (`SymGridPar2` §6.2, figure
//! 12).
//!
//! The paper sums φ over 6.25 million integers on 32 cores, and lets GAP compute φ. How many tasks
//! it made is not published, nor how long they took. Here it is 100 a core, and a division takes 10
//! ns, as in compiled code; GAP's interpreter is slower, which would make it easier to scale.

use super::number::whole_number;
use super::output::{Each, series};
use super::{Base, Experiment, ExperimentError, RunFigures, Setup, Skeleton, doublings, figures};
use crate::chart::{Axis, Chart, Series};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::published;
use crate::table::Column;
use crate::workload::Workload;
use crate::workload::costs::TrialDivision;
use std::sync::Arc;

/// The cores of the smallest run.
const FIRST_CORES: u64 = 32;

/// The options of weak scaling.
#[derive(Clone, Debug, clap::Args)]
pub struct Weak {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    #[command(flatten)]
    pub(super) sums: EulerSums,

    /// The skeleton; both with two levels unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// Double the cores from 32 up to this number
    #[arg(long, value_name = "N", default_value_t = 131_072)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(FIRST_CORES..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

/// Sums of φ whose integers grow with the machine.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EulerSums {
    /// Tasks for each core
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000))]
    tasks_per_core: u64,

    /// What a trial division takes, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 10)]
    #[arg(value_parser = whole_number::<u64>(1..=1_000_000))]
    division_ns: u64,
}

impl EulerSums {
    /// The sum for a machine of this size.
    pub(super) fn on(
        &self,
        base: &Base,
        skeleton: Skeleton,
        is_supervised: bool,
    ) -> Arc<dyn Workload> {
        let cores = base.machine.cores();
        let tasks = self.tasks_per_core * cores;
        let chunk = published::weak_scaling(cores).div_ceil(tasks);
        let costs = TrialDivision::new(chunk, self.division_ns as f64, base.seed);
        skeleton.over(tasks, costs, is_supervised, base)
    }
}

impl Experiment for Weak {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        figures::columns("skeleton")
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let cores = doublings(FIRST_CORES, self.most_cores);
        let skeletons =
            if self.skeleton.is_empty() { &Skeleton::TWO_LEVEL[..] } else { &self.skeleton };
        for base in self.setup.bases(&cores, 16, Preset::Gemini)? {
            for skeleton in skeletons {
                let workload = self.sums.on(&base, *skeleton, self.supervised);
                each(RunFigures::of(skeleton.name(), &base, workload, Vec::new())?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        let paper = published::SUM_EULER_WEAK;
        let at = f64::from(paper.point.cores);
        let factor = published::SUM_EULER_WEAK_TIME.value;
        let efficiency = |row: &RunFigures| Some((row.cores as f64, 100.0 * row.efficiency));
        let name = |row: &RunFigures| row.series.clone();
        let chart = Chart {
            title: "Sum Euler, weak scaling: 6.25 million integers on 32 cores".to_owned(),
            x: Axis::log2("cores"),
            y: Axis::percent_from("efficiency, %", 50.0),
            series: series(rows, name, efficiency),
            references: vec![
                Series::new(
                    &format!("{}: above 70 %", paper.label()),
                    vec![(at, paper.point.value)],
                ),
                Series::new(
                    &format!("the same: time within {factor} times the ideal (SymGridPar2 §6.2)"),
                    vec![(at, 100.0 / factor)],
                ),
            ],
            goals: Vec::new(),
        };
        vec![("weak", chart)]
    }
}
