//! What a run, or many of them, came to.

use crate::pe::SimulatedPe;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::ops::Index;
use std::time::Duration;
use ultramarine_runtime::protocol::Statistics;
use ultramarine_topology::Pe;

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// How many PEs there were.
    pub pes: u32,
    /// How many tasks were started, some of them several times.
    pub tasks: u64,
    /// How many PEs died.
    pub deaths: u32,
    /// How many were suspected while they lived.
    pub slandered: u32,
    /// How many PEs left since the others held them for dead.
    pub expelled: u32,
    /// How many were expelled while they lived, though no partition had parted them from the root.
    pub innocents: u32,
    /// How many were expelled while they lived, after a partition had parted them from the root.
    pub parted: u32,
    /// How many left since they had lost the root.
    pub roots_lost: u32,
    /// How many of these had a root that they reached.
    pub misled: u32,
    /// How many of these had a root that had left in order, and did not hear so.
    pub unheard: u32,
    /// Whether the root died.
    pub has_root_died: bool,
    /// How often a PE took the place of a root.
    pub successions: u32,
    /// How often the main task was started anew.
    pub restarts: u32,
    /// How often a PE has got the result again after another had left in order with it.
    pub repeated: u32,
    /// How often a PE got the result that another had already, behind a broken path.
    pub doubled: u32,
    /// 1 if no PE got the result, though the job could go on without its root.
    pub unfinished: u32,
    /// How many left in order.
    pub left: u32,
    /// How many waited for the end of the job in vain, until their patience was over.
    pub late: u32,
    /// How many poison tasks were given up.
    pub poisons: u32,
    /// How many others were given up, since hardly any PE was left.
    pub wronged: u32,
    /// How many copies of lost tasks were made.
    pub replicas: u64,
    /// How many tasks were dropped, since their supervisor had died.
    pub orphans: u64,
    /// How many PEs went over to the fallback lane.
    pub lanes_left: u32,
    /// How many bytes were sent again.
    pub bytes_resent: u64,
    /// When the main task ended.
    pub took: Duration,
    /// What tasks had noted, in this order: when, and the counters of their PE.
    pub marks: Vec<(Duration, Statistics)>,
    /// What else tasks and messages had noted: how often, and when for the last time.
    pub noted: BTreeMap<&'static str, (u64, Duration)>,
    /// When the last PE left.
    pub gone: Duration,
    /// How long all workers computed, together.
    pub computed: Duration,
    /// When nine of ten workers computed for the first time.
    pub full: Option<Duration>,
    /// The counters of all PEs, together.
    pub statistics: Statistics,
    /// With how many others the PEs had exchanged messages when they left.
    pub peers: PeerCounts,
    /// How many events there were.
    pub events: u64,
    /// What the failure detectors did.
    pub detection: DetectionReport,
}

/// With how many other PEs the PEs of a job had exchanged messages when they left.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerCounts {
    /// All PEs together.
    pub sum: u64,
    /// The PE with most.
    pub most: u64,
    /// The root.
    pub root: u64,
}

/// What the failure detectors of a run did.
#[derive(Clone, Debug, Default)]
pub struct DetectionReport {
    /// How many heartbeats all PEs sent.
    pub heartbeats: u64,
    /// How many other notices all PEs sent.
    pub notices: u64,
    /// How many of both the PE sent that sent most.
    pub messages_max: u64,
    /// How many ends of connections all PEs had when the first fault happened.
    pub connections: u64,
    /// The most connections that a PE had at one moment.
    pub connections_max: u64,
    /// How often a PE dialled another.
    pub dials: u64,
    /// The deaths that living PEs learnt of, by PE.
    pub known_deaths: Vec<Known>,
    /// How the last of them became known that took the place of a root.
    pub succession: Option<Known>,
}

/// How it became known that a PE has died, or that it is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The PE.
    pub pe: Pe,
    /// How many living PEs learnt of it. (A new root is one of them.)
    pub known_to: u32,
    /// The time from its death, or from the moment that it had the votes, until the last of them
    /// knew.
    pub after: Duration,
}

impl DetectionReport {
    /// The longest time from a death until the last living PE knew.
    pub fn known_within(&self) -> Option<Duration> {
        self.known_deaths.iter().map(|death| death.after).max()
    }

    /// How many messages all PEs sent.
    pub fn messages(&self) -> u64 {
        self.heartbeats + self.notices
    }
}

impl RunReport {
    /// How many living PEs were declared dead.
    pub fn false_verdicts(&self) -> u32 {
        self.innocents + self.parted
    }

    /// With how many others a PE had exchanged messages when it left, on average.
    pub fn peers_mean(&self) -> f64 {
        self.peers.sum as f64 / f64::from(self.pes.max(1))
    }

    pub(crate) fn add(&mut self, pe: &SimulatedPe) {
        let (statistics, workers) = (pe.engine.statistics(), pe.site.workers());
        let counts = workers.counts;
        self.tasks += counts.started;
        self.computed += Duration::from_nanos(counts.computed_ns);
        self.statistics.merge(&statistics);
        self.replicas += statistics.replicas;
        self.orphans += statistics.orphans + counts.orphans;
        self.poisons += counts.given_up;
        self.wronged += counts.wronged;
        self.restarts += counts.restarts;
        self.lanes_left += pe.site.lanes_left();
        self.bytes_resent += pe.engine.link_counters().bytes_resent;
        let peers = pe.engine.peers() as u64;
        self.peers.sum += peers;
        self.peers.most = self.peers.most.max(peers);
    }
}

/// What is wrong with a run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunFault {
    /// It does not come to its end.
    #[error("{0}")]
    Hung(String),
    /// It does what no run may do, or its result is not the right one.
    #[error("{0}")]
    Wrong(String),
}

/// A run.
#[derive(Clone, Debug)]
pub struct SimulatedRun {
    /// Its seed.
    pub seed: u64,
    /// What happened.
    pub report: RunReport,
    /// What is wrong with it, if anything is.
    pub fault: Option<RunFault>,
}

impl Display for SimulatedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimulatedRun { seed, report, fault } = self;
        let fault = fault.as_ref().map_or("all is well".to_owned(), ToString::to_string);
        // There may be hundreds of deaths.
        let mut brief = report.clone();
        brief.detection.known_deaths.clear();
        write!(
            f,
            "seed {seed}: {fault}\n  {brief:?}\n  to see it again: \
             cargo xtask simulate faults --seed {seed} --runs 1 --tell"
        )
    }
}

/// The greatest number of PEs of each class of jobs in [`RunTotals`].
pub const SIZES: [u32; 4] = [30, 100, 300, 1000];

/// A counter, and what a run adds to it.
type Counter = (&'static str, fn(&RunReport) -> u64);

/// What is counted over many runs. Most counters are called as in [`RunReport`].
const COUNTERS: [Counter; 25] = [
    ("pes", |run| run.pes.into()),
    ("tasks", |run| run.tasks),
    ("deaths", |run| run.deaths.into()),
    ("expelled", |run| run.expelled.into()),
    ("replicas", |run| run.replicas),
    ("orphans", |run| run.orphans),
    ("poisons", |run| run.poisons.into()),
    ("lanes_left", |run| run.lanes_left.into()),
    ("bytes_resent", |run| run.bytes_resent),
    ("successions", |run| run.successions.into()),
    ("restarts", |run| run.restarts.into()),
    // The number of runs in which a PE got the result again after another had left with it, and in
    // which two PEs got it with a broken path between them.
    ("repeated", |run| (run.repeated > 0).into()),
    ("doubled", |run| (run.doubled > 0).into()),
    ("unfinished", |run| run.unfinished.into()),
    // The number of runs in which a PE waited for the end until `shutdown_grace` was over, and in
    // which one did not hear that the root had left in order.
    ("late", |run| (run.late > 0).into()),
    ("unheard", |run| (run.unheard > 0).into()),
    ("events", |run| run.events),
    ("runs", |_| 1),
    ("large", |run| (run.pes > SIZES[0]).into()),
    ("wronged", |run| run.wronged.into()),
    // Declared dead while they lived: since they had been parted from the root, and others.
    ("partitioned", |run| run.parted.into()),
    ("innocents", |run| run.innocents.into()),
    ("detector_messages", |run| run.detection.messages()),
    ("dials", |run| run.detection.dials),
    ("known_deaths", |run| run.detection.known_deaths.len() as u64),
];

/// The first counters, which JSON has, too.
const IN_JSON: usize = 17;

/// What many runs came to: `totals["deaths"]` is how many PEs died in all of them.
#[derive(Clone, Debug, Default)]
pub struct RunTotals {
    /// How many runs came to their end, but were not as they must be.
    pub wrong: u64,
    /// How many others did not come to their end.
    pub hung: u64,
    /// The number of runs and of their PEs, by size of the job ([`SIZES`]).
    sizes: [(u64, u64); SIZES.len()],
    /// The longest time from a death until the last living PE knew.
    known_within: Option<Duration>,
    counts: [u64; COUNTERS.len()],
}

impl Index<&str> for RunTotals {
    type Output = u64;

    /// # Panics
    /// If there is no such counter.
    fn index(&self, counter: &str) -> &u64 {
        let place = COUNTERS.iter().position(|(name, _)| *name == counter);
        &self.counts[place.unwrap_or_else(|| panic!("no counter `{counter}`"))]
    }
}

impl RunTotals {
    /// Whether all runs were as they must be.
    pub fn are_good(&self) -> bool {
        self.wrong + self.hung == 0
    }

    /// The counters that JSON has.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COUNTERS.into_iter().map(|(name, _)| name).zip(self.counts).take(IN_JSON)
    }

    /// Counts one more run.
    pub fn add(&mut self, run: &SimulatedRun) {
        let report = &run.report;
        match run.fault {
            Some(RunFault::Hung(_)) => self.hung += 1,
            Some(RunFault::Wrong(_)) => self.wrong += 1,
            None => {}
        }
        let size = SIZES.iter().position(|most| report.pes <= *most).unwrap_or(SIZES.len() - 1);
        let (runs, pes) = &mut self.sizes[size];
        (*runs, *pes) = (*runs + 1, *pes + u64::from(report.pes));
        self.known_within = self.known_within.max(report.detection.known_within());
        for (total, (_, count)) in self.counts.iter_mut().zip(COUNTERS) {
            *total += count(report);
        }
    }
}

impl Display for RunTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunTotals { wrong, hung, .. } = self;
        let of = |counter| self[counter];
        writeln!(f, "{} runs, {wrong} wrong, {hung} hung, {} events", of("runs"), of("events"))?;
        let (deaths, expelled) = (of("deaths"), of("expelled"));
        writeln!(f, "{} PEs: {deaths} died, {expelled} were expelled", of("pes"))?;
        for ((runs, pes), most) in self.sizes.iter().zip(SIZES).filter(|((runs, _), _)| *runs > 0) {
            writeln!(f, "  {pes} PEs in {runs} jobs of up to {most}")?;
        }
        let known_within = format!("{:?}", self.known_within.unwrap_or_default());
        let text =
            COUNTERS.iter().fold(TEXT.replace("[known_within]", &known_within), |text, it| {
                text.replace(&format!("[{}]", it.0), &self[it.0].to_string())
            });
        f.write_str(&text)
    }
}

/// What is told of the counters, whose names are in brackets.
const TEXT: &str = "\
[innocents] living PEs were declared dead, and [partitioned] behind a partition
[known_deaths] deaths became known, within [known_within]; [detector_messages] messages of \
detectors, [dials] dials
[tasks] tasks started: [replicas] copies of lost ones, [orphans] dropped
[poisons] poison tasks given up, and [wronged] others when no PE was left
[successions] PEs took the place of a root, [restarts] main tasks began anew
[repeated] runs got their result again, [doubled] on two sides, [unfinished] got none
[lanes_left] PEs went over to the fallback lane, [bytes_resent] bytes were resent
[late] runs ended late, [unheard] with a goodbye of the root unheard";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_counted_once() {
        let mut totals = RunTotals::default();
        let mut add = |fault| {
            totals.add(&SimulatedRun { seed: 1, report: RunReport::default(), fault });
            (totals.wrong, totals.hung, totals.are_good())
        };
        assert_eq!(add(None), (0, 0, true));
        assert_eq!(add(Some(RunFault::Hung("2 PEs wait".to_owned()))), (0, 1, false));
        assert_eq!(add(Some(RunFault::Wrong("the result is 2".to_owned()))), (1, 1, false));
        assert!(totals.to_string().starts_with("3 runs, 1 wrong, 1 hung, 0 events\n"));
    }
}
