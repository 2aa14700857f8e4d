//! The failure detector: its messages and connections, how soon all know of what died, and whether
//! a PE is ever declared dead that lives.
//!
//! The job has no tasks. Its main task sleeps, and PEs look for work once an hour, so that nearly
//! all events are those of the detectors.
//!
//! A run in which a living PE is declared dead without a cut path is an error, as in all jobs.

use super::deaths::last_rack;
use super::number::whole_number;
use super::output::{Each, series};
use super::{Base, Experiment, ExperimentError, RunFigures, Setup, doublings, figures};
use crate::chart::{Axis, Chart, Goal};
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::machine::PES_MAX;
use crate::network::Preset;
use crate::table::{Cell, Column};
use crate::workload::{Activity, Step, TaskContext, Workload};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Pe;

/// The options of the detector's experiment.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Detector {
    /// What it runs on. A PE has 8 workers, so that hosts have 4 PEs and racks 128.
    #[command(flatten)]
    pub setup: Setup,

    /// Double the PEs from 256 up to this number
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(FIRST_PES..=PES_MAX.into()))]
    pub most_pes: u64,

    /// What happens; all of them, one job each, unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub incident: Vec<Incident>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Incident {
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
    /// All of them.
    pub const ALL: [Incident; 7] = [
        Incident::PeDies,
        Incident::HostDies,
        Incident::RackDies,
        Incident::RootDies,
        Incident::RootHostDies,
        Incident::RootRackDies,
        Incident::Trouble,
    ];

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

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Incident::PeDies => "a PE dies",
            Incident::HostDies => "a host dies",
            Incident::RackDies => "a rack dies",
            Incident::RootDies => "the root dies",
            Incident::RootHostDies => "its host dies",
            Incident::RootRackDies => "its rack dies",
            Incident::Trouble => "stops, late packets",
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

/// Whether it has slept.
struct Sleeper(bool);

impl Workload for Sleep {
    fn main(&self) -> Box<dyn Activity> {
        Box::new(Sleeper(false))
    }

    fn start(&self, _body: &Bytes) -> Option<Box<dyn Activity>> {
        None
    }

    fn expected(&self) -> u64 {
        0
    }
}

impl Activity for Sleeper {
    fn step(&mut self, _cx: &mut TaskContext<'_>) -> Step {
        let has_slept = std::mem::replace(&mut self.0, true);
        if has_slept { Step::End(0, None) } else { Step::Sleep(SLEEP_NS) }
    }
}

/// A job in which something happens.
#[derive(Clone, Debug)]
pub struct DetectorRow {
    /// What happens.
    pub incident: Incident,
    /// What the run came to.
    pub figures: RunFigures,
}

impl DetectorRow {
    /// The time from the death until the last living PE knew, in seconds. `None` if none died, or
    /// if a living PE does not know of each death.
    pub fn known_seconds(&self) -> Option<f64> {
        let report = &self.figures.report;
        let known = &report.detection.known_deaths;
        let survivors = report.pes - report.deaths - report.false_verdicts();
        let is_known = known.len() == report.deaths as usize
            && known.iter().all(|death| death.known_to == survivors);
        report.detection.known_within().filter(|_| is_known).map(|time| time.as_secs_f64())
    }

    /// The time from the moment that the new root had the votes until the last living PE knew that
    /// it has, in milliseconds. `None` if there is none, or a living PE does not know.
    pub fn elected_millis(&self) -> Option<f64> {
        let report = &self.figures.report;
        let survivors = report.pes - report.deaths - report.false_verdicts();
        let known = report.detection.succession.filter(|known| known.known_to == survivors);
        known.map(|known| known.after.as_secs_f64() * 1e3)
    }

    /// How many messages a PE sends in a second, on average.
    pub fn messages_per_pe_second(&self) -> f64 {
        let messages = self.figures.report.detection.messages() as f64;
        messages / f64::from(self.figures.report.pes) / self.seconds()
    }

    /// How many the PE sends in a second that sends most.
    pub fn messages_max_per_second(&self) -> f64 {
        self.figures.report.detection.messages_max as f64 / self.seconds()
    }

    /// How many connections a PE has before anything happens, on average.
    pub fn connections_per_pe(&self) -> f64 {
        let report = &self.figures.report;
        report.detection.connections as f64 / f64::from(report.pes)
    }

    fn seconds(&self) -> f64 {
        self.figures.report.gone.as_secs_f64()
    }
}

impl Experiment for Detector {
    type Row = DetectorRow;

    fn columns(&self) -> Vec<Column<DetectorRow>> {
        let of: fn(&DetectorRow) -> &RunFigures = |row| &row.figures;
        let mut columns = figures::head("incident", of);
        columns.extend([
            Column::new("dead", "", "deaths", |row: &DetectorRow| {
                Cell::Count(row.figures.report.deaths.into())
            }),
            Column::new("all know after", "s", "known_seconds", |row: &DetectorRow| {
                Cell::real(row.known_seconds(), 4)
            }),
            Column::new("from the votes", "ms", "elected_millis", |row: &DetectorRow| {
                Cell::real(row.elected_millis(), 3)
            }),
            Column::new("false verdicts", "", "false_verdicts", |row: &DetectorRow| {
                Cell::Count(row.figures.report.false_verdicts().into())
            }),
            Column::new("messages a PE", "/s", "messages_per_pe_second", |row: &DetectorRow| {
                Cell::Real(row.messages_per_pe_second(), 2)
            }),
            Column::new("most", "/s", "messages_max_per_second", |row: &DetectorRow| {
                Cell::Real(row.messages_max_per_second(), 1)
            }),
            Column::new("connections a PE", "", "connections_per_pe", |row: &DetectorRow| {
                Cell::Real(row.connections_per_pe(), 2)
            }),
            Column::new("most", "", "connections_max", |row: &DetectorRow| {
                Cell::Count(row.figures.report.detection.connections_max)
            }),
            Column::new("dials", "", "dials", |row: &DetectorRow| {
                Cell::Count(row.figures.report.detection.dials)
            }),
        ]);
        columns.extend(figures::costs(of));
        columns
    }

    fn run(&self, each: &mut Each<'_, DetectorRow>) -> Result<(), ExperimentError> {
        let all = &Incident::ALL[..];
        let incidents = if self.incident.is_empty() { all } else { &self.incident };
        self.setup.refuse_faults("incidents of its own")?;
        let pes = doublings(FIRST_PES, self.most_pes);
        let cores: Vec<u64> = pes.into_iter().map(|pes| pes * u64::from(WORKERS)).collect();
        for mut base in self.setup.bases(&cores, WORKERS, Preset::Gemini)? {
            let fishing = &mut base.protocol.fishing;
            fishing.min_fish_delay = Duration::from_hours(1);
            fishing.max_fish_delay = fishing.min_fish_delay;
            for incident in incidents {
                let faults = incident.faults(&base)?;
                let mut base = base.clone();
                base.outlives_root = incident.outlives_root();
                if *incident == Incident::Trouble {
                    let (latency_ns, jitter) = LATE;
                    base.network = base.network.with_latency_ns(latency_ns).with_jitter(jitter);
                }
                let name = incident.to_string();
                let figures = RunFigures::of(&name, &base, Arc::new(Sleep), faults)?;
                each(DetectorRow { incident: *incident, figures })?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[DetectorRow]) -> Vec<(&'static str, Chart)> {
        let pes = |row: &DetectorRow| f64::from(row.figures.report.pes);
        let name = |row: &DetectorRow| row.incident.to_string();
        let known = |row: &DetectorRow| row.known_seconds().map(|seconds| (pes(row), seconds));
        let limit = DetectorSettings::default().dead_after.as_secs_f64();
        let known = Chart {
            title: "Until all PEs know what died".to_owned(),
            x: Axis::log2("PEs"),
            y: Axis::linear("after the death, s"),
            series: series(rows, name, known),
            references: Vec::new(),
            goals: vec![Goal { name: format!("dead_after: {limit} s"), y: limit }],
        };
        let mean = |row: &DetectorRow| Some((pes(row), row.messages_per_pe_second()));
        let most = |row: &DetectorRow| Some((pes(row), row.messages_max_per_second()));
        let quiet = rows.iter().filter(|row| row.incident == Incident::PeDies);
        let mut lines = series(quiet, |_| "a PE dies: mean of all PEs".to_owned(), mean);
        lines.extend(series(rows, |row| format!("{}: most of any PE", row.incident), most));
        let messages = Chart {
            title: "Messages of the detector".to_owned(),
            x: Axis::log2("PEs"),
            y: Axis::log10("messages per second, during 12 s"),
            series: lines,
            references: Vec::new(),
            goals: Vec::new(),
        };
        vec![("detector", known), ("detector-messages", messages)]
    }
}
