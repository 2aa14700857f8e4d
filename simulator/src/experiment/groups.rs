//! A group on more and more PEs: how long it takes until each has its part of it, until what they
//! compute together is there, and until the group is closed everywhere; without deaths and with.
//!
//! PEs that rest look for messages every 2 ms, so an invitation takes that long from level to level
//! of the tree, and hardly any time beside. That is what is predicted.
//!
//! The job computes a [graph](crate::workload::graph) with a node on each PE. A PE that lives and
//! has had no part of it, or has not heard that the group is closed, makes the run an error.

use super::deaths::random_deaths;
use super::number::whole_number;
use super::output::Each;
use super::{Base, Experiment, ExperimentError, RunFigures, Setup};
use crate::chart::Chart;
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::network::Preset;
use crate::pe::pace::DRIVER_RESTING_MAX;
use crate::report::RunFault;
use crate::table::Row;
use crate::workload::graph::{BEGINS_NS, RESULT, TreeSum};
use crate::workload::groups::{BEGUN, CLOSED, MESSAGE};
use std::ops::Range;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// The options of groups.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Groups {
    /// What it runs on: 128, 1,024, 8,192 and 131,072 PEs of one worker, unless told otherwise
    #[command(flatten)]
    setup: Setup,
    /// How many PEs die while others are invited, where PEs do
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = whole_number::<u32>(1..=1000))]
    deaths: u32,
}

/// The bytes of an invitation, with those of its frame.
const MESSAGE_BYTES: u64 = 100;

/// How many messages one after the other take an invitation from this PE to the last of these, and
/// how long the network has it, in nanoseconds.
fn way(base: &Base, from: Pe, pes: Range<u32>) -> (u32, u64) {
    let (mut longest, mut latest, mut begins) = (0, 0, 0);
    for branch in base.machine.topology().branches(from, pes) {
        let to = Pe::new(branch.start);
        let Some(tier) = base.machine.tier(from, to) else { continue };
        let costs = base.network.costs(tier).transfer(MESSAGE_BYTES);
        let (levels, ns) = way(base, to, branch);
        longest = longest.max(levels + 1);
        latest = latest.max(begins + costs.last_byte_ns + costs.receive_overhead_ns + ns);
        begins += costs.sender_port_ns;
    }
    (longest, latest)
}

/// Runs a job in which this goes wrong, at moments after the opening. Returns also when the last PE
/// had its part, in milliseconds after the opening.
fn run(
    name: &str,
    base: &Base,
    deaths: Vec<(u64, InjectedFault)>,
) -> Result<(Row, f64), ExperimentError> {
    let pes = base.machine.pes();
    let dead: Vec<Pe> = deaths.iter().filter_map(|(_, death)| death.victim()).collect();
    let job = Arc::new(TreeSum::new(pes));
    let deaths = deaths.into_iter().map(|(after, death)| (BEGINS_NS + after, death));
    let figures = RunFigures::of(name, base, job.clone(), deaths.collect())?;
    for pe in (0..pes).map(Pe::new).filter(|pe| !dead.contains(pe)) {
        let fault = match job.groups.state_of(pe) {
            (true, 0) => continue,
            (true, _) => format!("{pe} has not heard that the group is closed"),
            (false, _) => format!("{pe} has had no part of the group"),
        };
        let fault = RunFault::Wrong(fault);
        return Err(ExperimentError::Fault { what: name.to_owned(), fault, seed: base.seed });
    }
    let noted = |what| figures.report.noted.get(what).copied().unwrap_or_default();
    let after_ms = |what| noted(what).1.as_secs_f64() * 1e3 - BEGINS_NS as f64 / 1e6;
    let (levels, network_ns) = way(base, Pe::ROOT, 0..pes);
    let predicted_ns = network_ns + u64::from(levels) * DRIVER_RESTING_MAX;
    let own = Row::default()
        .count("dead", "deaths", figures.report.deaths)
        .count("levels", "levels", levels)
        .real("predicted ms", "predicted_ms", predicted_ns as f64 / 1e6, 1)
        .real("all have it ms", "begun_ms", after_ms(BEGUN), 1)
        .real("result ms", "result_ms", after_ms(RESULT), 1)
        .real("closed ms", "closed_ms", after_ms(CLOSED), 1)
        .real("messages a PE", "messages_per_pe", noted(MESSAGE).0 as f64 / f64::from(pes), 2);
    Ok((figures.head("what happens").and(own).and(figures.costs()), after_ms(BEGUN)))
}

impl Experiment for Groups {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for mut base in self.setup.bases(&[128, 1024, 8192, 131_072], 1, Preset::Gemini)? {
            base.fish_seldom();
            let (row, begun_ms) = run("none dies", &base, Vec::new())?;
            each(row)?;
            let (pes, span_ns) = (base.machine.pes(), (begun_ms * 1e6) as u64);
            let deaths = random_deaths(pes, self.deaths.min(pes - 1), span_ns, base.seed);
            each(run("PEs die", &base, deaths)?.0)?;
            base.outlives_root = true;
            let at = Dice::new(base.seed).within(0..=span_ns);
            let death = InjectedFault::Death(Pe::ROOT);
            each(run("the root dies", &base, vec![(at, death)])?.0)?;
        }
        Ok(())
    }

    fn charts(&self, _: &[Row]) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }
}
