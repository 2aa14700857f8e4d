//! Maps over equal items: no-op tasks, which measure the runtime alone, and the Liouville function.

use super::number::{TaskTimes, whole_number};
use super::output::{Each, series};
use super::uts::efficiency_chart;
use super::{Experiment, ExperimentError, RunFigures, Setup, Skeleton, doublings, figures};
use crate::chart::{Axis, Chart, Series};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::published::HDPH_RS_SPEEDUPS;
use crate::table::{Cell, Column};
use crate::workload::costs::{Between, Liouville};

/// The options of a map over tasks of given times.
#[derive(Clone, Debug, clap::Args)]
pub struct Noop {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    /// How many tasks there are
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = whole_number::<u64>(1..=TASKS_MAX))]
    pub tasks: u64,

    /// How long each computes; or between what, all equally likely: 80ms..400ms
    #[arg(long, value_name = "TIME[..TIME]", default_value = "0s")]
    pub task_time: TaskTimes,

    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// Double the cores from 16 up to this number
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(16..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

/// The most tasks of a map: their numbers have 32 bits.
const TASKS_MAX: u64 = 1 << 30;

impl Noop {
    /// Whether the tasks compute. Without work there is no efficiency.
    fn has_work(&self) -> bool {
        self.task_time.most_ns > 0
    }
}

fn rate(row: &RunFigures) -> f64 {
    row.report.tasks as f64 / row.seconds
}

impl Experiment for Noop {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        let own: fn(&RunFigures) -> &RunFigures = |row| row;
        let mut columns = figures::head("skeleton", own);
        let times = figures::times(own).into_iter();
        columns.extend(times.take(if self.has_work() { usize::MAX } else { 1 }));
        columns
            .push(Column::new("tasks/s", "", "tasks_per_second", |row| Cell::Real(rate(row), 0)));
        columns.extend(figures::counts(own));
        columns
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let skeletons = if self.skeleton.is_empty() { &Skeleton::ALL[..] } else { &self.skeleton };
        for base in self.setup.bases(&doublings(16, self.most_cores), 16, Preset::Hdr)? {
            for skeleton in skeletons {
                let TaskTimes { least_ns, most_ns } = self.task_time;
                let costs = Between { least_ns, most_ns, seed: base.seed };
                let workload = skeleton.over(self.tasks, costs, self.supervised, &base);
                each(RunFigures::of(skeleton.name(), &base, workload, Vec::new())?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        let tasks = figures::grouped(self.tasks);
        if self.has_work() {
            let TaskTimes { least_ns, most_ns } = self.task_time;
            let [least, most] = [least_ns, most_ns].map(|ns| ns as f64 / 1e6);
            let title = format!("{tasks} tasks of {least} to {most} ms");
            return vec![("map", efficiency_chart(&title, rows))];
        }
        let title = format!("{tasks} no-op tasks");
        let chart = Chart {
            title,
            x: Axis::log2("cores"),
            y: Axis::log10("tasks/s"),
            series: series(
                rows,
                |row| row.series.clone(),
                |row| Some((row.cores as f64, rate(row))),
            ),
            references: Vec::new(),
            goals: Vec::new(),
        };
        vec![("noop", chart)]
    }
}

/// The options of the Liouville function.
#[derive(Clone, Debug, clap::Args)]
pub struct LiouvilleSum {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    /// The sum goes up to this integer
    #[arg(long, value_name = "N", default_value_t = 500_000_000)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000_000_000))]
    pub limit: u64,

    /// How many integers are a task
    #[arg(long, value_name = "N", default_value_t = 250_000)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000_000_000))]
    pub chunk: u64,

    /// The skeleton; `par_map` and `par_map_placed` unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// Double the cores from 32 up to this number
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(32..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

impl Experiment for LiouvilleSum {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        figures::columns("skeleton")
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let tasks = self.limit.div_ceil(self.chunk);
        if tasks > TASKS_MAX {
            return Err(ExperimentError::Refused {
                what: format!("{tasks} tasks are too many"),
                allowed: format!("--limit over --chunk may be at most {TASKS_MAX}"),
            });
        }
        let usual = [Skeleton::Stolen, Skeleton::Placed];
        let skeletons = if self.skeleton.is_empty() { &usual[..] } else { &self.skeleton };
        let costs = Liouville::published(self.chunk);
        for base in self.setup.bases(&doublings(32, self.most_cores), 8, Preset::Gemini)? {
            for skeleton in skeletons {
                let workload = skeleton.over(tasks, costs, self.supervised, &base);
                each(RunFigures::of(skeleton.name(), &base, workload, Vec::new())?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        let [limit, chunk] = [self.limit, self.chunk].map(figures::grouped);
        let title = format!("Liouville function to {limit}, in chunks of {chunk}");
        let mut chart = efficiency_chart(&title, rows);
        let is_meant = |name: &str| name.starts_with("Liouville") && !name.ends_with("FT");
        let published = HDPH_RS_SPEEDUPS.iter().filter(|it| is_meant(it.name));
        let on_hector = published.filter(|it| it.machine == "HECToR");
        chart.references.extend(on_hector.map(|it| {
            let cores = f64::from(it.point.cores);
            let efficiency = 100.0 * it.point.value / cores;
            Series::new(&format!("{}, L(5·10⁸)", it.label()), vec![(cores, efficiency)])
        }));
        vec![("liouville", chart)]
    }
}
