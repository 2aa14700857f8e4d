//! Whole jobs, simulated: many PEs and tasks, deaths, delays; each run follows from its seed.

mod desk;
mod dice;
mod processor;
mod program;
mod scenario;
mod watch;
mod world;

use processor::Processor;
use std::time::Duration;

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
    /// How many left since they had lost the root.
    pub roots_lost: u32,
    /// How many left in order.
    pub left: u32,
    /// How many waited for the end of the job in vain.
    pub graces: u32,
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
    }
}

/// What was wrong with a run.
#[derive(Clone, Debug)]
pub struct Fault {
    /// In words.
    pub what: String,
    /// What had happened until then.
    pub report: Report,
}

/// Simulates the job of this seed; tells every event if asked to.
///
/// # Errors
/// The job did not come to its end, or not with the right result.
pub fn run(seed: u64, is_told: bool) -> Result<Report, Fault> {
    world::World::new(seed, is_told).run()
}
