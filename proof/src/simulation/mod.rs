//! Whole jobs, simulated: many PEs and tasks, nested supervision, deaths, delays. Everything in a
//! run follows from its seed, so that the run can be had again, and every run must end with the
//! right result.
//!
//! What is simulated is what is around the runtime's [`Node`] and [`Membership`]:
//!
//! | file | what |
//! |---|---|
//! | `scenario` | the machine, the settings, and what goes wrong, drawn from the seed |
//! | `program` | what the tasks do, and what they must come to |
//! | `desk` | the rest of a PE: its pool, its workers, its futures (the runtime's executor) |
//! | `processor` | a PE |
//! | `world` | time, and messages on their way (the runtime's transport) |
//! | `paths` | what is cut between PEs that live |
//! | `watch` | deaths, and how they are noticed (the runtime's detector) |
//!
//! Messages are late, now and then by a lot, but stay in order between two PEs, except that those
//! with a value may be overtaken. None is lost between the living; what a PE has sent before it
//! died arrives in part. PEs die with their hosts or without. They are stopped for a while, and
//! slandered; paths between them are cut in one direction or both, for a while or for ever; for a
//! while everything is overloaded. At most one living PE is expelled for each broken path and each
//! slander, and nobody leaves a root that it reaches. Supervised tasks spawn supervised tasks and
//! wait for them, some of them placed. What nobody supervises is spawned again by its parent when
//! it is lost. Poison tasks kill the PE that runs them, and must be given up without harm to
//! others.
//!
//! [`Node`]: ultramarine_runtime::protocol::Node
//! [`Membership`]: ultramarine_runtime::protocol::Membership

mod desk;
mod dice;
mod paths;
mod processor;
mod program;
mod scenario;
mod watch;
mod world;

use processor::Processor;
use std::fmt::{self, Display};
use std::time::Duration;
use ultramarine_runtime::protocol::supervision::Mutant;

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
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
    /// How many were expelled while they lived.
    pub innocents: u32,
    /// How many left since they had lost the root.
    pub roots_lost: u32,
    /// How many of these had a root that they reached.
    pub misled: u32,
    /// How many of these had a root that had left in order, and did not hear so.
    pub unheard: u32,
    /// Whether the root died.
    pub has_root_died: bool,
    /// How many left in order.
    pub left: u32,
    /// How many waited for the end of the job in vain, until their patience was over.
    pub late: u32,
    /// How many poison tasks were given up.
    pub poisons: u32,
    /// How many others were given up, since hardly anybody was left.
    pub wronged: u32,
    /// How many copies of lost tasks were made.
    pub replicas: u64,
    /// How many tasks were dropped, since their supervisor had died.
    pub orphans: u64,
    /// When the main task ended.
    pub took: Duration,
    /// When the last PE left.
    pub gone: Duration,
    /// How many events there were.
    pub events: u64,
}

impl Report {
    fn add(&mut self, pe: &Processor) {
        let statistics = pe.node.statistics();
        self.tasks += pe.desk.started;
        self.replicas += statistics.replicas;
        self.orphans += statistics.orphans + pe.desk.orphans;
        self.poisons += pe.desk.given_up;
        self.wronged += pe.desk.wronged;
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// What happened.
    pub report: Report,
    /// What is wrong with it, if it did not come to its end, or not with the right result.
    pub fault: Option<String>,
}

impl Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { seed, report, fault } = self;
        let fault = fault.as_deref().unwrap_or("all is well");
        write!(
            f,
            "seed {seed}: {fault}\n  {report:?}\n  to see it again: \
             cargo run -p ultramarine-proof -- simulate --seed {seed} --runs 1 --tell"
        )
    }
}

/// What many runs came to.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// How many runs.
    pub runs: u64,
    /// How many of them were not as they must be.
    pub faults: u64,
    /// How many PEs there were.
    pub pes: u64,
    /// How many tasks were started.
    pub tasks: u64,
    /// How many PEs died.
    pub deaths: u64,
    /// How many left since the others held them for dead.
    pub expelled: u64,
    /// How many copies of lost tasks were made.
    pub replicas: u64,
    /// How many tasks were dropped, since their supervisor had died.
    pub orphans: u64,
    /// How many poison tasks were given up.
    pub poisons: u64,
    /// How many other tasks were given up, since hardly anybody was left.
    pub wronged: u64,
    /// In how many runs somebody waited for the end in vain, until its patience was over.
    pub late: u64,
    /// In how many runs somebody did not hear that the root had left in order.
    pub unheard: u64,
}

impl Total {
    /// Counts one more run.
    pub fn add(&mut self, run: &Run) {
        let report = &run.report;
        self.runs += 1;
        self.faults += u64::from(run.fault.is_some());
        self.pes += u64::from(report.pes);
        self.tasks += report.tasks;
        self.deaths += u64::from(report.deaths);
        self.expelled += u64::from(report.expelled);
        self.replicas += report.replicas;
        self.orphans += report.orphans;
        self.poisons += u64::from(report.poisons);
        self.wronged += u64::from(report.wronged);
        self.late += u64::from(report.late > 0);
        self.unheard += u64::from(report.unheard > 0);
    }
}

impl Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Total { runs, faults, pes, deaths, expelled, .. } = self;
        writeln!(f, "{runs} runs, {faults} faults")?;
        writeln!(f, "{pes} PEs: {deaths} died, {expelled} were expelled")?;
        let Total { tasks, replicas, orphans, poisons, wronged, .. } = self;
        writeln!(f, "{tasks} tasks started: {replicas} copies of lost ones, {orphans} dropped")?;
        writeln!(f, "{poisons} poison tasks given up, and {wronged} others when nobody was left")?;
        let Total { late, unheard, .. } = self;
        write!(f, "{late} runs ended late, {unheard} with a goodbye of the root unheard")
    }
}

/// Simulates the job of this seed, and tells every event if asked to.
pub fn run(seed: u64, tells: bool) -> Run {
    run_mutant(seed, None, tells)
}

/// The same with a rule of the protocol left out.
pub fn run_mutant(seed: u64, mutant: Option<Mutant>, tells: bool) -> Run {
    world::World::new(seed, mutant, tells).run()
}
