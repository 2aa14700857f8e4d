//! The failure detector: its messages and connections, how soon all know of what died, and whether
//! a PE is ever declared dead that lives.
//!
//! The job has no tasks. Its main task sleeps, and PEs look for work once an hour, so that nearly
//! all events are those of the detectors.
//!
//! A run in which a living PE is declared dead without a cut path is an error, as in all jobs.

use super::deaths::last_rack;
use super::number::whole;
use super::output::{Each, by, lines};
use super::{Base, Experiment, ExperimentError, RunFigures, Setup, doublings, given_or};
use crate::chart::{Axis, Chart};
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::machine::PES_MAX;
use crate::network::Preset;
use crate::report::RunReport;
use crate::table::Row;
use crate::workload::{Activity, Step, Workload};
use clap::ValueEnum;
use std::collections::VecDeque;
use std::sync::Arc;
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Pe;

/// The options of the detector's experiment.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Detector {
    /// What it runs on. A PE has 8 workers, so that hosts have 4 PEs and racks 128.
    #[command(flatten)]
    setup: Setup,
    /// Double the PEs from 256 up to this number
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole(FIRST_PES..=PES_MAX.into()))]
    most_pes: u64,
    /// What happens; all of them, one job each, unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    incident: Vec<Incident>,
}

/// Two racks.
const FIRST_PES: u64 = 256;

/// The worker threads of a PE.
const WORKERS: u32 = 8;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// When things go wrong: after the time in which a PE that was never heard is not suspected.
const TROUBLE_AT: u64 = 6 * SECOND;

/// How long the main task sleeps: longer than it takes until all know.
const SLEEP_NS: u64 = 12 * SECOND;

/// One in this many PEs is stopped once, and one in this many hosts is slow.
const STOPPED_ONE_IN: u64 = 10;

/// A slow host lets its PEs run this long between two stops.
const SLOW_RUNS_NS: u64 = 200 * MS;

/// With trouble, packets between hosts take 0.2 ms, and on average a hundred times longer.
const LATE: (u64, f64) = (200_000, 100.0);

/// What happens in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Incident {
    /// A process ends.
    PeDies,
    /// A host falls silent, with its PEs.
    HostDies,
    /// A rack falls silent, with its hosts.
    RackDies,
    /// The root's process ends, and another takes its place.
    RootDies,
    /// The root's host falls silent, with its PEs.
    RootHostDies,
    /// The root's rack falls silent, with its hosts.
    RootRackDies,
    /// None dies. PEs and whole hosts are stopped for nearly `dead_after`, and packets are late.
    Trouble,
}

impl Incident {
    /// What happens, in a few words.
    fn name(self) -> &'static str {
        match self {
            Incident::PeDies => "a PE dies",
            Incident::HostDies => "a host dies",
            Incident::RackDies => "a rack dies",
            Incident::RootDies => "the root dies",
            Incident::RootHostDies => "its host dies",
            Incident::RootRackDies => "its rack dies",
            Incident::Trouble => "stops, late packets",
        }
    }

    /// Whether the job goes on without its root.
    fn outlives_root(self) -> bool {
        use Incident::{RootDies, RootHostDies, RootRackDies};
        matches!(self, RootDies | RootHostDies | RootRackDies)
    }

    /// What goes wrong in a job, at these moments in nanoseconds.
    fn faults(self, base: &Base) -> Result<Vec<(u64, InjectedFault)>, ExperimentError> {
        let rack = last_rack(base)?;
        let (Some(&first), Some(&last)) = (rack.first(), rack.last()) else {
            return Ok(Vec::new());
        };
        let host_of = |first: Pe| {
            let last = base.machine.topology().host_of(first).numbers().end - 1;
            InjectedFault::HostDeaths { first, last: Pe::new(last) }
        };
        let settings = DetectorSettings::default();
        // Heartbeats come at the same moments at all PEs, about, since all begin at 0.
        let mut dice = Dice::new(base.seed ^ 0xdead);
        let at = TROUBLE_AT + dice.within(0..=settings.heartbeat.as_nanos() as u64);
        Ok(match self {
            Incident::PeDies => vec![(at, InjectedFault::Death(first))],
            Incident::HostDies => vec![(at, host_of(first))],
            Incident::RackDies => vec![(at, InjectedFault::HostDeaths { first, last })],
            Incident::RootDies => vec![(at, InjectedFault::Death(Pe::ROOT))],
            Incident::RootHostDies => vec![(at, host_of(Pe::ROOT))],
            Incident::RootRackDies => {
                let last = Pe::new(rack.len() as u32 - 1);
                vec![(at, InjectedFault::HostDeaths { first: Pe::ROOT, last })]
            }
            Incident::Trouble => {
                let longest = settings.dead_after.as_nanos() as u64 * 9 / 10;
                stops(base, longest, &mut dice)
            }
        })
    }
}

/// Some PEs are stopped once, for up to `longest`. The PEs of some hosts are stopped for `longest`
/// again and again, together.
fn stops(base: &Base, longest: u64, dice: &mut Dice) -> Vec<(u64, InjectedFault)> {
    let mut faults = Vec::new();
    let mut next = 0;
    while next < base.machine.pes() {
        let host = base.machine.topology().host_of(Pe::new(next)).numbers();
        next = host.end;
        let first_stop = TROUBLE_AT + dice.within(0..=longest);
        let is_slow = dice.one_in(STOPPED_ONE_IN);
        for pe in host.map(Pe::new) {
            if is_slow {
                let every = (longest + SLOW_RUNS_NS) as usize;
                let moments = (first_stop..SLEEP_NS - longest).step_by(every);
                faults.extend(moments.map(|at| (at, InjectedFault::Stop(pe, longest))));
            } else if dice.one_in(STOPPED_ONE_IN) {
                let at = TROUBLE_AT + dice.within(0..=longest);
                faults.push((at, InjectedFault::Stop(pe, dice.within(longest / 2..=longest))));
            }
        }
    }
    faults
}

/// A main task that sleeps.
struct Sleep;

impl Workload for Sleep {
    fn main(&self) -> Box<dyn Activity> {
        Box::new(VecDeque::from([Step::Sleep(SLEEP_NS)]))
    }

    fn start(&self, _body: &Bytes) -> Option<Box<dyn Activity>> {
        None
    }

    fn expected(&self) -> u64 {
        0
    }
}

/// The time from the death until the last living PE knew, in seconds. `None` if none died, or if a
/// living PE does not know of each death.
fn known_seconds(report: &RunReport) -> Option<f64> {
    let known = &report.detection.known_deaths;
    let is_known = known.len() == report.deaths as usize
        && known.iter().all(|death| death.known_to == survivors(report));
    report.detection.known_within().filter(|_| is_known).map(|time| time.as_secs_f64())
}

/// The time from the moment that the new root had the votes until the last living PE knew that it
/// has, in milliseconds. `None` if there is none, or a living PE does not know.
fn elected_millis(report: &RunReport) -> Option<f64> {
    let known = report.detection.succession;
    let known = known.filter(|known| known.known_to == survivors(report));
    known.map(|known| known.after.as_secs_f64() * 1e3)
}

fn survivors(report: &RunReport) -> u32 {
    report.pes - report.deaths - report.false_verdicts()
}

fn row(figures: &RunFigures) -> Row {
    let (report, detection) = (&figures.report, &figures.report.detection);
    let (pes, seconds) = (f64::from(report.pes), report.gone.as_secs_f64());
    let messages = detection.messages() as f64 / pes / seconds;
    let messages_max = detection.messages_max as f64 / seconds;
    let own = Row::default()
        .count("dead", "deaths", report.deaths)
        .real("all know after s", "known_seconds", known_seconds(report), 4)
        .real("from the votes ms", "elected_millis", elected_millis(report), 3)
        .count("false verdicts", "false_verdicts", report.false_verdicts())
        .real("messages a PE /s", "messages_per_pe_second", messages, 2)
        .real("most /s", "messages_max_per_second", messages_max, 1)
        .real("connections a PE", "connections_per_pe", detection.connections as f64 / pes, 2)
        .count("most", "connections_max", detection.connections_max)
        .count("dials", "dials", detection.dials);
    figures.head("incident").and(own).and(figures.costs())
}

impl Experiment for Detector {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("incidents of its own")?;
        let pes = doublings(FIRST_PES, self.most_pes);
        let cores: Vec<u64> = pes.into_iter().map(|pes| pes * u64::from(WORKERS)).collect();
        for mut base in self.setup.bases(&cores, WORKERS, Preset::Gemini)? {
            base.fish_seldom();
            for incident in given_or(&self.incident, Incident::value_variants()) {
                let faults = incident.faults(&base)?;
                let mut base = base.clone();
                base.outlives_root = incident.outlives_root();
                if *incident == Incident::Trouble {
                    let (latency_ns, jitter) = LATE;
                    base.network = base.network.with_latency_ns(latency_ns).with_jitter(jitter);
                }
                each(row(&RunFigures::of(incident.name(), &base, Arc::new(Sleep), faults)?))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let limit = DetectorSettings::default().dead_after.as_secs_f64();
        let goals = vec![(format!("dead_after: {limit} s"), limit)];
        let axes = (Axis::log2("PEs"), Axis::linear("after the death, s"));
        let known = lines(rows, by("incident"), ("PEs", "known_seconds"));
        let known = Chart { goals, ..Chart::new("Until all PEs know what died", axes, known) };
        let is_quiet = |row: &&Row| row.words("incident") == Incident::PeDies.name();
        let mean = |row: &Row| format!("{}: mean of all PEs", row.words("incident"));
        let most = |row: &Row| format!("{}: most of any PE", row.words("incident"));
        let mut messages =
            lines(rows.iter().filter(is_quiet), mean, ("PEs", "messages_per_pe_second"));
        messages.extend(lines(rows, most, ("PEs", "messages_max_per_second")));
        let axes = (Axis::log2("PEs"), Axis::log10("messages per second, during 12 s"));
        let messages = Chart::new("Messages of the detector", axes, messages);
        vec![("detector", known), ("detector-messages", messages)]
    }
}
