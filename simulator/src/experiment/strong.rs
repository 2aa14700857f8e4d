//! Strong scaling of Sum Euler: 96,000 integers on ever more cores, with the four skeletons, on
//! machines like the papers' two (`SymGridPar2` §6.2, figures 10 and 11).
//!
//! How many tasks the paper made is not published; here a task has 25 integers unless told
//! otherwise. Its Beowulf had Gigabit Ethernet; the model's is ten times as wide.

use super::number::whole_number;
use super::output::{Each, series};
use super::{Experiment, ExperimentError, RunFigures, Setup, Skeleton, figures};
use crate::chart::{Axis, Chart, Series};
use crate::machine::{Machine, MachineError, Variation};
use crate::network::Preset;
use crate::published::{Bound, Published, SUM_EULER_SEQUENTIAL_S, SUM_EULER_STRONG};
use crate::table::{Cell, Column};
use crate::workload::costs::NaiveTotient;

/// The options of strong scaling.
#[derive(Clone, Debug, clap::Args)]
pub struct Strong {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    /// One of the two machines; both unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub platform: Vec<Platform>,

    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// How many integers there are
    #[arg(long, value_name = "N", default_value_t = 96_000)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000_000))]
    pub integers: u64,

    /// How many of them are a task
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[arg(value_parser = whole_number::<u64>(1..=1_000_000))]
    pub chunk: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

/// A machine of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Platform {
    /// Hosts of 32 cores with four PEs each, Gemini
    Hector,
    /// Hosts of 8 cores with one PE each, Ethernet
    Beowulf,
}

impl Platform {
    fn name(self) -> &'static str {
        match self {
            Platform::Hector => "HECToR",
            Platform::Beowulf => "Beowulf",
        }
    }

    fn network(self) -> Preset {
        match self {
            Platform::Hector => Preset::Gemini,
            Platform::Beowulf => Preset::Ethernet,
        }
    }

    /// The cores of its runs.
    fn cores(self) -> [u64; 6] {
        match self {
            Platform::Hector => [8, 16, 32, 64, 128, 256],
            Platform::Beowulf => [8, 16, 32, 64, 128, 240],
        }
    }

    fn sequential_s(self) -> f64 {
        let [beowulf, hector] = SUM_EULER_SEQUENTIAL_S;
        if self == Platform::Hector { hector } else { beowulf }
    }

    /// The machines of this platform.
    fn machines(self, setup: &Setup) -> Result<Vec<Machine>, ExperimentError> {
        match self {
            Platform::Hector => setup.machines(&self.cores(), 8),
            Platform::Beowulf => setup.machines_by(of_hosts, &self.cores(), 8),
        }
    }
}

/// A machine with one PE on each host.
fn of_hosts(cores: u64, workers: u32, variation: &Variation) -> Result<Machine, MachineError> {
    // For its refusals.
    Machine::of_cores(cores, workers, variation)?;
    let hosts = cores / u64::from(workers);
    Machine::new(&format!("{hosts}x1x{workers}").parse()?, variation)
}

/// A run, and the platform that it ran on.
#[derive(Clone, Debug)]
pub struct StrongRow {
    /// The platform.
    pub platform: Platform,
    /// The run.
    pub figures: RunFigures,
    /// The work over the time.
    pub speedup: f64,
}

impl Experiment for Strong {
    type Row = StrongRow;

    fn columns(&self) -> Vec<Column<StrongRow>> {
        let of: fn(&StrongRow) -> &RunFigures = |row| &row.figures;
        let mut columns = vec![Column::new("platform", "", "platform", |row: &StrongRow| {
            Cell::Text(row.platform.name().to_owned())
        })];
        columns.extend(figures::head("skeleton", of));
        columns.extend(figures::times(of));
        columns.push(Column::new("speedup", "", "speedup", |row: &StrongRow| {
            Cell::Real(row.speedup, 1)
        }));
        columns.extend(figures::counts(of));
        columns
    }

    fn run(&self, each: &mut Each<'_, StrongRow>) -> Result<(), ExperimentError> {
        let both = [Platform::Hector, Platform::Beowulf];
        let platforms = if self.platform.is_empty() { &both[..] } else { &self.platform };
        let skeletons = if self.skeleton.is_empty() { &Skeleton::ALL[..] } else { &self.skeleton };
        for platform in platforms {
            let network = self.setup.network(platform.network())?;
            for machine in platform.machines(&self.setup)? {
                let base = self.setup.base(machine, network.clone())?;
                for skeleton in skeletons {
                    let (integers, chunk) = (self.integers, self.chunk);
                    let costs = NaiveTotient::of_total(integers, chunk, platform.sequential_s());
                    let tasks = integers.div_ceil(chunk);
                    let workload = skeleton.over(tasks, costs, self.supervised, &base);
                    let series = skeleton.name();
                    let figures = RunFigures::of(series, &base, workload, Vec::new())?;
                    let speedup = figures.efficiency * figures.cores as f64;
                    each(StrongRow { platform: *platform, figures, speedup })?;
                }
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[StrongRow]) -> Vec<(&'static str, Chart)> {
        let charts = [
            (Platform::Hector, "a machine like HECToR", "strong-hector"),
            (Platform::Beowulf, "a Beowulf cluster", "strong-beowulf"),
        ];
        let integers = figures::grouped(self.integers);
        let chart = |(platform, machine, name): (Platform, &str, &'static str)| {
            let is_on_it = |row: &&StrongRow| row.platform == platform;
            let rows: Vec<StrongRow> = rows.iter().filter(is_on_it).cloned().collect();
            let efficiency =
                |row: &StrongRow| Some((row.figures.cores as f64, 100.0 * row.figures.efficiency));
            let published = SUM_EULER_STRONG.iter().filter(|it| it.machine == platform.name());
            let reference = |it: &Published| {
                let cores = f64::from(it.point.cores);
                let bound = if it.point.bound == Bound::Below { "below " } else { "" };
                let name = format!("{}: {bound}{} times as fast", it.label(), it.point.value);
                Series::new(&name, vec![(cores, 100.0 * it.point.value / cores)])
            };
            let chart = Chart {
                title: format!("Sum Euler over {integers} integers on {machine}"),
                x: Axis::log2("cores"),
                y: Axis::percent("speedup / cores, %"),
                series: series(&rows, |row| row.figures.series.clone(), efficiency),
                references: published.map(reference).collect(),
                goals: Vec::new(),
            };
            (name, chart)
        };
        charts.into_iter().map(chart).collect()
    }
}
