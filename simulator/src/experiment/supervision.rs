//! What supervision costs while nothing dies: each job twice, with it and without.
//!
//! The messages are the same in both: the home of an unsupervised task hears where it goes as well,
//! since its future must end in an error if it is lost. What differs is the backup copy, which the
//! model takes for free, since it shares the bytes that are sent. So an overhead that is not 0 is
//! chance; what a backup costs is for `bench supervision` to measure.

use super::number::whole_number;
use super::output::Each;
use super::weak::EulerSums;
use super::{Experiment, ExperimentError, RunFigures, Setup, Skeleton, doublings, figures};
use crate::chart::{Axis, Chart, Goal};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::table::{Cell, Column};

/// The options of supervision on and off.
#[derive(Clone, Debug, clap::Args)]
pub struct Supervision {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    #[command(flatten)]
    pub(super) sums: EulerSums,

    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skeleton: Vec<Skeleton>,

    /// How many pairs, each with the next seed; the times are their means
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = whole_number::<u32>(1..=1000))]
    pub repeats: u32,

    /// Double the cores from 32 up to this number
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(32..=CORES_MAX))]
    pub most_cores: u64,
}

/// Jobs with supervision and without it.
#[derive(Clone, Debug)]
pub struct SupervisionRow {
    /// The last job with supervision. Its times are the means of all.
    pub on: RunFigures,
    /// The mean time without, in seconds.
    pub off_seconds: f64,
    /// The tasks that went from PE to PE in all jobs with supervision.
    pub migrations: u64,
    /// The messages to supervisors in these jobs: NOTIFY and ACK.
    pub messages: u64,
}

impl SupervisionRow {
    /// By how much supervision makes the job longer, in percent. Chance may make it shorter.
    pub fn overhead_percent(&self) -> f64 {
        100.0 * (self.on.seconds / self.off_seconds - 1.0)
    }

    fn messages_per_migration(&self) -> Option<f64> {
        (self.migrations > 0).then(|| self.messages as f64 / self.migrations as f64)
    }
}

impl Experiment for Supervision {
    type Row = SupervisionRow;

    fn columns(&self) -> Vec<Column<SupervisionRow>> {
        let on: fn(&SupervisionRow) -> &RunFigures = |row| &row.on;
        let mut columns = figures::head("skeleton", on);
        columns.extend(figures::times(on));
        columns.extend([
            Column::new("without", "s", "unsupervised_seconds", |row: &SupervisionRow| {
                Cell::Real(row.off_seconds, 4)
            }),
            Column::new("overhead", "%", "overhead_percent", |row: &SupervisionRow| {
                Cell::Real(row.overhead_percent(), 2)
            }),
            Column::new("messages", "", "supervision_messages", |row: &SupervisionRow| {
                Cell::Count(row.messages)
            }),
            Column::new("a migration", "", "messages_per_migration", |row: &SupervisionRow| {
                Cell::real(row.messages_per_migration(), 2)
            }),
        ]);
        columns.extend(figures::counts(on));
        columns
    }

    fn run(&self, each: &mut Each<'_, SupervisionRow>) -> Result<(), ExperimentError> {
        let skeletons = if self.skeleton.is_empty() { &Skeleton::ALL[..] } else { &self.skeleton };
        self.setup.refuse_faults("jobs without supervision")?;
        for mut base in self.setup.bases(&doublings(32, self.most_cores), 16, Preset::Gemini)? {
            for skeleton in skeletons {
                let (mut on_seconds, mut off_seconds) = (0.0, 0.0);
                let (mut migrations, mut messages) = (0, 0);
                let mut last = None;
                for number in 0..self.repeats {
                    base.seed = self.setup.seed.wrapping_add(number.into());
                    let name = skeleton.name();
                    let job = |is_supervised| self.sums.on(&base, *skeleton, is_supervised);
                    off_seconds += RunFigures::of(name, &base, job(false), Vec::new())?.seconds;
                    let on = RunFigures::of(name, &base, job(true), Vec::new())?;
                    on_seconds += on.seconds;
                    migrations += on.migrations();
                    messages += on.report.statistics.notifies + on.report.statistics.acks;
                    last = Some(on);
                }
                let Some(on) = last else { continue };
                let repeats = f64::from(self.repeats);
                each(SupervisionRow {
                    on: RunFigures { seconds: on_seconds / repeats, ..on },
                    off_seconds: off_seconds / repeats,
                    migrations,
                    messages,
                })?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[SupervisionRow]) -> Vec<(&'static str, Chart)> {
        let messages =
            |row: &SupervisionRow| Some((row.on.cores as f64, row.messages_per_migration()?));
        let chart = Chart {
            title: "Supervision: messages for each task that goes from PE to PE".to_owned(),
            x: Axis::log2("cores"),
            y: Axis { at_least: Some((0.0, 2.0)), ..Axis::linear("NOTIFY and ACK a migration") },
            series: super::output::series(rows, |row| row.on.series.clone(), messages),
            references: Vec::new(),
            goals: vec![Goal { name: "2: one of each, as published".to_owned(), y: 2.0 }],
        };
        vec![("supervision", chart)]
    }
}
