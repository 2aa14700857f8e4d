//! Sum Euler on more and more cores, as the papers have measured it (`SymGridPar2` §6.2).
//!
//! Weak scaling is twice the integers on twice the cores (figure 12). The paper sums φ over 6.25
//! million integers on 32 cores, and lets GAP compute φ. How many tasks it made is not published,
//! nor how long they took. Here it is 100 a core, and a division takes 10 ns, as in compiled code;
//! or a task takes as long as one that GAP has computed, which is longer: it is easier to scale.
//!
//! Strong scaling is 96,000 integers with the four skeletons, on machines like the papers' two
//! (figures 10 and 11). How many tasks the paper made is not published; here a task has 25 integers
//! unless told otherwise. Its Beowulf had Gigabit Ethernet; the model's is ten times as wide.

use super::number::whole;
use super::output::{Each, by, efficiency_chart, lines, reference};
use super::{Base, Experiment, ExperimentError, RunFigures, Setup, Sweep, figures, given_or};
use crate::chart::{Axis, Chart, Series};
use crate::machine::{Machine, MachineError, Variation};
use crate::network::Preset;
use crate::published::{self, SUM_EULER_SEQUENTIAL_S, SUM_EULER_STOLEN_BELOW, SUM_EULER_STRONG};
use crate::table::Row;
use crate::workload::Workload;
use crate::workload::costs::{naive_totient, trial_division};
use crate::workload::gap::phi_by_gap;
use crate::workload::map::Skeleton;
use clap::ValueEnum;
use std::sync::Arc;

/// The options of weak scaling.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Weak {
    #[command(flatten)]
    sweep: Sweep<32, 131_072>,
    #[command(flatten)]
    sums: EulerSums,
    /// The skeleton; both with two levels unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
}

/// Sums of φ whose integers grow with the machine.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EulerSums {
    /// Tasks for each core
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole(1..=100_000))]
    tasks_per_core: u64,
    /// What a trial division takes, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 10, value_parser = whole(1..=1_000_000))]
    division_ns: u64,
    /// How φ is computed
    #[arg(long, value_enum, default_value_t = Phi::Division)]
    phi: Phi,
}

/// How φ is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Phi {
    /// By trial division
    Division,
    /// By GAP, as it was recorded
    Gap,
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
        match self.phi {
            Phi::Division => {
                let costs = trial_division(chunk, self.division_ns as f64, base.seed);
                base.map(skeleton, tasks, costs, is_supervised)
            }
            Phi::Gap => base.map(skeleton, tasks, phi_by_gap(chunk, base.seed), is_supervised),
        }
    }
}

impl Experiment for Weak {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        for base in self.sweep.bases(16, Preset::Gemini)? {
            for skeleton in given_or(&self.skeleton, &Skeleton::TWO_LEVEL) {
                let workload = self.sums.on(&base, *skeleton, self.supervised);
                let figures = RunFigures::of(skeleton.name(), &base, workload, Vec::new())?;
                each(figures.row("skeleton", Row::default()))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let (paper, factor) = (published::SUM_EULER_WEAK, published::SUM_EULER_WEAK_TIME);
        let at = |name: &str, percent| Series::new(name, vec![(paper.cores.into(), percent)]);
        let title = "Sum Euler, weak scaling: 6.25 million integers on 32 cores";
        let chart = Chart {
            y: Axis::percent("efficiency, %").showing(50.0, 100.0),
            references: vec![
                at(&format!("{}: above 70 %", paper.label()), paper.value),
                at(
                    &format!("the same: time within {factor} times the ideal (SymGridPar2 §6.2)"),
                    100.0 / factor,
                ),
            ],
            ..efficiency_chart(title, rows, "skeleton")
        };
        vec![("weak", chart)]
    }
}

/// The options of strong scaling.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Strong {
    #[command(flatten)]
    setup: Setup,
    /// One of the two machines; both unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    platform: Vec<Platform>,
    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
    /// How many integers there are
    #[arg(long, value_name = "N", default_value_t = 96_000, value_parser = whole(1..=100_000_000))]
    integers: u64,
    /// How many of them are a task
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = whole(1..=1_000_000))]
    chunk: u64,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
}

/// A machine of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Platform {
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

    fn sequential_s(self) -> f64 {
        let [beowulf, hector] = SUM_EULER_SEQUENTIAL_S;
        if self == Platform::Hector { hector } else { beowulf }
    }

    /// A job on each machine of this platform.
    fn bases(self, setup: &Setup) -> Result<Vec<Base>, ExperimentError> {
        match self {
            Platform::Hector => setup.bases(&[8, 16, 32, 64, 128, 256], 8, Preset::Gemini),
            Platform::Beowulf => {
                setup.bases_by(of_hosts, &[8, 16, 32, 64, 128, 240], 8, Preset::Ethernet)
            }
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

impl Experiment for Strong {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        for platform in given_or(&self.platform, Platform::value_variants()) {
            let costs = naive_totient(self.integers, self.chunk, platform.sequential_s());
            let tasks = self.integers.div_ceil(self.chunk);
            for base in platform.bases(&self.setup)? {
                for skeleton in given_or(&self.skeleton, Skeleton::value_variants()) {
                    let workload = base.map(*skeleton, tasks, costs.clone(), self.supervised);
                    let figures = RunFigures::of(skeleton.name(), &base, workload, Vec::new())?;
                    let speedup = figures.efficiency * figures.cores as f64;
                    let own = Row::default().real("speedup", "speedup", speedup, 1);
                    let row = Row::default().text("platform", "platform", platform.name());
                    each(row.and(figures.row("skeleton", own)))?;
                }
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let integers = figures::grouped(self.integers);
        let chart = |platform: Platform, machine: &str| {
            let is_on_it = |row: &&Row| row.words("platform") == platform.name();
            let rows = rows.iter().filter(is_on_it);
            let published = SUM_EULER_STRONG.iter().map(|it| (it, ""));
            let published = published.chain([(&SUM_EULER_STOLEN_BELOW, "below ")]);
            let of_it = published.filter(|(it, _)| it.machine == platform.name());
            let times =
                |(it, bound)| reference(it, &format!(": {bound}{} times as fast", it.value));
            let title = format!("Sum Euler over {integers} integers on {machine}");
            let axes = (Axis::log2("cores"), Axis::percent("speedup / cores, %"));
            let lines = lines(rows, by("skeleton"), ("cores", "efficiency %"));
            Chart { references: of_it.map(times).collect(), ..Chart::new(title, axes, lines) }
        };
        vec![
            ("strong-hector", chart(Platform::Hector, "a machine like HECToR")),
            ("strong-beowulf", chart(Platform::Beowulf, "a Beowulf cluster")),
        ]
    }
}
