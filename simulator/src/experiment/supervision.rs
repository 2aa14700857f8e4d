//! What supervision costs while nothing dies: each job twice, with it and without.
//!
//! The messages are the same in both: the home of an unsupervised task hears where it goes as well,
//! since its future must end in an error if it is lost. What differs is the backup copy, which the
//! model takes for free, since it shares the bytes that are sent. So an overhead that is not 0 is
//! chance; what a backup costs is for `bench supervision` to measure.

use super::number::whole;
use super::output::{Each, by, lines};
use super::sum_euler::EulerSums;
use super::{Experiment, ExperimentError, RunFigures, Sweep, given_or};
use crate::chart::{Axis, Chart};
use crate::network::Preset;
use crate::table::Row;
use crate::workload::map::Skeleton;
use clap::ValueEnum;

/// The options of supervision on and off.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Supervision {
    #[command(flatten)]
    sweep: Sweep<32, 2048>,
    #[command(flatten)]
    sums: EulerSums,
    /// The skeleton; all four unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skeleton: Vec<Skeleton>,
    /// How many pairs, each with the next seed; the times are their means
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole(1..=1000))]
    repeats: u64,
}

impl Experiment for Supervision {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.sweep.setup.refuse_faults("jobs without supervision")?;
        for mut base in self.sweep.bases(16, Preset::Gemini)? {
            for skeleton in given_or(&self.skeleton, Skeleton::value_variants()) {
                let (mut on_seconds, mut off_seconds) = (0.0, 0.0);
                let (mut migrations, mut messages) = (0, 0);
                let mut last = None;
                for number in 0..self.repeats {
                    base.seed = self.sweep.setup.seed.wrapping_add(number);
                    let run = |is_supervised| {
                        let job = self.sums.on(&base, *skeleton, is_supervised);
                        RunFigures::of(skeleton.name(), &base, job, Vec::new())
                    };
                    off_seconds += run(false)?.seconds;
                    let on = run(true)?;
                    on_seconds += on.seconds;
                    migrations += on.migrations();
                    messages += on.report.statistics.notifies + on.report.statistics.acks;
                    last = Some(on);
                }
                let Some(on) = last else { continue };
                // The last job, with the mean times of all.
                let [on_seconds, off_seconds] =
                    [on_seconds, off_seconds].map(|seconds| seconds / self.repeats as f64);
                let overhead_percent = 100.0 * (on_seconds / off_seconds - 1.0);
                let each_migration = (migrations > 0).then(|| messages as f64 / migrations as f64);
                let own = Row::default()
                    .real("without s", "unsupervised_seconds", off_seconds, 4)
                    .real("overhead %", "overhead_percent", overhead_percent, 2)
                    .count("messages", "supervision_messages", messages)
                    .real("a migration", "messages_per_migration", each_migration, 2);
                each(RunFigures { seconds: on_seconds, ..on }.row("skeleton", own))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let title = "Supervision: messages for each task that goes from PE to PE";
        let y = Axis::linear("NOTIFY and ACK a migration").showing(0.0, 2.0);
        let lines = lines(rows, by("skeleton"), ("cores", "messages_per_migration"));
        let goals = vec![("2: one of each, as published".to_owned(), 2.0)];
        let chart = Chart { goals, ..Chart::new(title, (Axis::log2("cores"), y), lines) };
        vec![("supervision", chart)]
    }
}
