//! A stencil in supersteps on more and more PEs: how long a superstep takes, how many messages a PE
//! sends in it, and what deaths cost.
//!
//! A PE has a rank, which computes, speaks to two neighbours and takes part in a sum. So it sends
//! about ⌈log₂ n⌉ messages in the meeting and two to the neighbours. (And one that a meeting does
//! not imply is acknowledged: to the PE before.)

use super::deaths::random_deaths;
use super::number::whole_number;
use super::output::Each;
use super::{Base, Experiment, ExperimentError, RunFigures, Setup};
use crate::chart::Chart;
use crate::fault::InjectedFault;
use crate::network::Preset;
use crate::table::Row;
use crate::workload::graph::BEGINS_NS;
use crate::workload::supersteps::{LAST, OUTPUTS, RESTORED, SECOND, SENT, StencilRun};
use std::sync::Arc;
use ultramarine_skeletons::bsp::machine::{Saving, When};

/// The options of supersteps.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Supersteps {
    /// What it runs on: 128, 1,024 and 8,192 PEs of one worker, unless told otherwise
    #[command(flatten)]
    setup: Setup,
    /// The number of supersteps
    #[arg(long = "supersteps", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = whole_number::<u64>(3..=100_000))]
    count: u64,
    /// How long a rank computes in each, in microseconds
    #[arg(long, value_name = "US", default_value_t = 1000)]
    #[arg(value_parser = whole_number::<u64>(1..=10_000_000))]
    step_us: u64,
    /// The number of supersteps between two checkpoints
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = whole_number::<u64>(1..=100_000))]
    every: u64,
    /// How many PEs die, at random moments; 0: no run with checkpoints either
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = whole_number::<u32>(0..=1000))]
    deaths: u32,
}

impl Supersteps {
    /// Runs a job in which this goes wrong, at moments after the opening. `calm_ms`: how long the
    /// same took without deaths. Returns also how long it took, in milliseconds.
    fn run_one(
        &self,
        name: &str,
        base: &Base,
        saving: Saving,
        deaths: Vec<(u64, InjectedFault)>,
        calm_ms: Option<f64>,
    ) -> Result<(Row, f64), ExperimentError> {
        let pes = base.machine.pes();
        let plan = StencilRun::plan(pes, self.count, saving, 1000 * self.step_us);
        let job = Arc::new(StencilRun::new(plan, base.machine.topology()));
        let deaths = deaths.into_iter().map(|(after, death)| (BEGINS_NS + after, death));
        let figures = RunFigures::of(name, base, job, deaths.collect())?;
        let noted = |what| figures.report.noted.get(what).copied().unwrap_or_default();
        let at_ms = |what| noted(what).1.as_secs_f64() * 1e3;
        let took_ms = at_ms(OUTPUTS) - BEGINS_NS as f64 / 1e6;
        // Between the last PE's second step and its last one. After a death some come again.
        let between = (self.count - 2) as f64;
        let superstep_ms = calm_ms.is_none().then(|| (at_ms(LAST) - at_ms(SECOND)) / between);
        let sent = noted(SENT).0 as f64 / f64::from(pes) / self.count as f64;
        let own = Row::default()
            .count("dead", "deaths", figures.report.deaths)
            .count("rounds", "rounds", pes.next_power_of_two().ilog2())
            .real("messages", "messages_per_pe_and_superstep", sent, 2)
            .real("superstep ms", "superstep_ms", superstep_ms, 3)
            .real("all ms", "all_ms", took_ms, 1)
            .real("longer ms", "longer_ms", calm_ms.map(|calm_ms| took_ms - calm_ms), 1)
            .real("restored", "restored_per_pe", noted(RESTORED).0 as f64 / f64::from(pes), 2);
        Ok((figures.head("what happens").and(own).and(figures.costs()), took_ms))
    }
}

impl Experiment for Supersteps {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for mut base in self.setup.bases(&[128, 1024, 8192], 1, Preset::Gemini)? {
            base.fish_seldom();
            let none = Vec::new;
            each(
                self.run_one(
                    "no checkpoints",
                    &base,
                    Saving::in_memory(When::Never),
                    none(),
                    None,
                )?
                .0,
            )?;
            if self.deaths == 0 {
                continue;
            }
            let saving = Saving::in_memory(When::Every(self.every));
            let (row, calm_ms) = self.run_one("checkpoints", &base, saving, none(), None)?;
            each(row)?;
            let pes = base.machine.pes();
            let span_ns = (calm_ms * 1e6) as u64;
            let deaths = random_deaths(pes, self.deaths.min(pes - 1), span_ns, base.seed);
            each(self.run_one("PEs die", &base, saving, deaths, Some(calm_ms))?.0)?;
        }
        Ok(())
    }

    fn charts(&self, _: &[Row]) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }
}
