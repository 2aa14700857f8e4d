//! Start-up and end of a job: how long it takes until nine of ten workers compute, how long the
//! last PE is there after the main task has ended, and to how many others a PE has spoken by then.
//!
//! The processes are there already, and connected: launching them is not part of the model.

use super::number::whole_number;
use super::output::{Each, series};
use super::{Experiment, ExperimentError, RunFigures, Setup, Skeleton, doublings, figures};
use crate::chart::{Axis, Chart};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::table::{Cell, Column};
use crate::workload::costs::Flat;

/// The options of start-up and end.
#[derive(Clone, Debug, clap::Args)]
pub struct Startup {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    /// Tasks for each core
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000))]
    pub tasks_per_core: u64,

    /// What each computes, in milliseconds
    #[arg(long, value_name = "ms", default_value_t = 100)]
    #[arg(value_parser = whole_number::<u64>(1..=1_000_000))]
    pub task_ms: u64,

    /// The skeleton; `par_map`, `par_map_placed` and `par_map_2level_relaxed` unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// Double the cores from 32 up to this number
    #[arg(long, value_name = "N", default_value_t = 131_072)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(32..=CORES_MAX))]
    pub most_cores: u64,
}

impl Experiment for Startup {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        let own: fn(&RunFigures) -> &RunFigures = |row| row;
        let mut columns = figures::head("skeleton", own);
        columns.extend(figures::times(own));
        columns.extend([
            Column::new("90 % compute after", "ms", "", |row: &RunFigures| {
                Cell::real(row.full_seconds().map(|seconds| 1e3 * seconds), 3)
            })
            .only_in_text(),
            Column::new("last PE gone after", "ms", "", |row: &RunFigures| {
                Cell::Real(1e3 * row.gone_seconds(), 3)
            })
            .only_in_text(),
            Column::new("peers of a PE", "", "", |row: &RunFigures| {
                Cell::Real(row.report.peers_mean(), 1)
            })
            .only_in_text(),
            Column::new("of the root", "", "", |row: &RunFigures| {
                Cell::Count(row.report.peers.root)
            })
            .only_in_text(),
        ]);
        columns.extend(figures::counts(own));
        columns
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let usual = [Skeleton::Stolen, Skeleton::Placed, Skeleton::Relaxed];
        let skeletons = if self.skeleton.is_empty() { &usual[..] } else { &self.skeleton };
        for base in self.setup.bases(&doublings(32, self.most_cores), 16, Preset::Gemini)? {
            for skeleton in skeletons {
                let costs = Flat { ns: self.task_ms * 1_000_000 };
                let tasks = self.tasks_per_core * base.machine.cores();
                let workload = skeleton.over(tasks, costs, false, &base);
                each(RunFigures::of(skeleton.name(), &base, workload, Vec::new())?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        let chart = |title: &str, y: &str, ms: fn(&RunFigures) -> Option<f64>| Chart {
            title: title.to_owned(),
            x: Axis::log2("cores"),
            y: Axis::log10(y),
            series: series(
                rows,
                |row| row.series.clone(),
                |row| ms(row).filter(|ms| *ms > 0.0).map(|ms| (row.cores as f64, ms)),
            ),
            references: Vec::new(),
            goals: Vec::new(),
        };
        let full = |row: &RunFigures| row.full_seconds().map(|seconds| 1e3 * seconds);
        let gone = |row: &RunFigures| Some(1e3 * row.gone_seconds());
        vec![
            ("startup", chart("Until nine of ten workers compute", "after the start, ms", full)),
            ("end", chart("Until the last PE is gone", "after the end of the main task, ms", gone)),
        ]
    }
}
