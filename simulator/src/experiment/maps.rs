//! Maps over tasks of given times: no-op tasks, which measure the runtime alone, or tasks of your
//! own; the Liouville function; and the start-up and the end of a job.
//!
//! Start-up and end are how long it takes until nine of ten workers compute, how long the last PE
//! is there after the main task has ended, and to how many others a PE has spoken by then. The
//! processes are there already, and connected: launching them is not part of the model.

use super::number::{TaskTimes, whole};
use super::output::{Each, by, efficiency_chart, lines, reference};
use super::{Experiment, ExperimentError, RunFigures, Sweep, figures, given_or};
use crate::chart::{Axis, Chart};
use crate::network::Preset;
use crate::published;
use crate::table::Row;
use crate::workload::costs::{between, liouville};
use crate::workload::map::Skeleton;
use clap::ValueEnum;

/// The options of a map over tasks of given times.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Noop {
    #[command(flatten)]
    sweep: Sweep<16, 1024>,
    /// How many tasks there are
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole(1..=TASKS_MAX))]
    tasks: u64,
    /// How long each computes; or between what, all equally likely: 80ms..400ms
    #[arg(long, value_name = "TIME[..TIME]", default_value = "0s")]
    task_time: TaskTimes,
    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
}

/// The most tasks of a map: their numbers have 32 bits.
const TASKS_MAX: u64 = 1 << 30;

impl Noop {
    /// Whether the tasks compute. Without work there is no efficiency.
    fn has_work(&self) -> bool {
        self.task_time.most_ns > 0
    }
}

impl Experiment for Noop {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        for base in self.sweep.bases(16, Preset::Hdr)? {
            for skeleton in given_or(&self.skeleton, Skeleton::value_variants()) {
                let costs = between(self.task_time.least_ns..=self.task_time.most_ns, base.seed);
                let workload = base.map(*skeleton, self.tasks, costs, self.supervised);
                let figures = RunFigures::of(skeleton.name(), &base, workload, Vec::new())?;
                let rate = figures.report.tasks as f64 / figures.seconds;
                let row = figures.head("skeleton");
                let row = row.and(if self.has_work() { figures.times() } else { figures.time() });
                each(row.real("tasks/s", "tasks_per_second", rate, 0).and(figures.counts()))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let tasks = figures::grouped(self.tasks);
        if self.has_work() {
            let TaskTimes { least_ns, most_ns } = self.task_time;
            let [least, most] = [least_ns, most_ns].map(|ns| ns as f64 / 1e6);
            let title = format!("{tasks} tasks of {least} to {most} ms");
            return vec![("map", efficiency_chart(&title, rows, "skeleton"))];
        }
        let lines = lines(rows, by("skeleton"), ("cores", "tasks/s"));
        let axes = (Axis::log2("cores"), Axis::log10("tasks/s"));
        vec![("noop", Chart::new(format!("{tasks} no-op tasks"), axes, lines))]
    }
}

/// The options of the Liouville function.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LiouvilleSum {
    #[command(flatten)]
    sweep: Sweep<32, 2048>,
    /// The sum goes up to this integer
    #[arg(long, value_name = "N", default_value_t = 500_000_000)]
    #[arg(value_parser = whole(1..=100_000_000_000))]
    limit: u64,
    /// How many integers are a task
    #[arg(long, value_name = "N", default_value_t = 250_000)]
    #[arg(value_parser = whole(1..=100_000_000_000))]
    chunk: u64,
    /// The skeleton; `par_map` and `par_map_placed` unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
}

impl Experiment for LiouvilleSum {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        let tasks = self.limit.div_ceil(self.chunk);
        if tasks > TASKS_MAX {
            return Err(ExperimentError::Refused(format!(
                "{tasks} tasks are too many; --limit over --chunk may be at most {TASKS_MAX}"
            )));
        }
        let costs = liouville(self.chunk);
        for base in self.sweep.bases(8, Preset::Gemini)? {
            for skeleton in given_or(&self.skeleton, &[Skeleton::Stolen, Skeleton::Placed]) {
                let workload = base.map(*skeleton, tasks, costs.clone(), self.supervised);
                let figures = RunFigures::of(skeleton.name(), &base, workload, Vec::new())?;
                each(figures.row("skeleton", Row::default()))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let [limit, chunk] = [self.limit, self.chunk].map(figures::grouped);
        let title = format!("Liouville function to {limit}, in chunks of {chunk}");
        let references = published::LIOUVILLE.iter().map(|it| reference(it, ", L(5·10⁸)"));
        let references = references.collect();
        vec![("liouville", Chart { references, ..efficiency_chart(&title, rows, "skeleton") })]
    }
}

/// The options of start-up and end.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Startup {
    #[command(flatten)]
    sweep: Sweep<32, 131_072>,
    /// Tasks for each core
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole(1..=100_000))]
    tasks_per_core: u64,
    /// What each computes, in milliseconds
    #[arg(long, value_name = "ms", default_value_t = 100, value_parser = whole(1..=1_000_000))]
    task_ms: u64,
    /// The skeleton; `par_map`, `par_map_placed` and `par_map_2level_relaxed` unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
}

/// The columns of the two charts.
const FULL: &str = "90 % compute after ms";
const GONE: &str = "last PE gone after ms";

impl Experiment for Startup {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        let usual = [Skeleton::Stolen, Skeleton::Placed, Skeleton::Relaxed];
        let task_ns = self.task_ms * 1_000_000;
        for base in self.sweep.bases(16, Preset::Gemini)? {
            for skeleton in given_or(&self.skeleton, &usual) {
                let tasks = self.tasks_per_core * base.machine.cores();
                let workload = base.map(*skeleton, tasks, move |_| task_ns, false);
                let figures = RunFigures::of(skeleton.name(), &base, workload, Vec::new())?;
                let own = Row::default()
                    .real(FULL, "", figures.full_seconds().map(|seconds| 1e3 * seconds), 3)
                    .real(GONE, "", 1e3 * figures.gone_seconds(), 3)
                    .real("peers of a PE", "", figures.report.peers_mean(), 1)
                    .count("of the root", "", figures.report.peers.root);
                each(figures.row("skeleton", own))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let chart = |title: &str, y: &str, column: &str| {
            let mut lines = lines(rows, by("skeleton"), ("cores", column));
            // A logarithmic axis has no place for 0.
            lines.iter_mut().for_each(|line| line.points.retain(|(_, ms)| *ms > 0.0));
            Chart::new(title, (Axis::log2("cores"), Axis::log10(y)), lines)
        };
        vec![
            ("startup", chart("Until nine of ten workers compute", "after the start, ms", FULL)),
            ("end", chart("Until the last PE is gone", "after the end of the main task, ms", GONE)),
        ]
    }
}
