//! Simulates whole jobs: many PEs and tasks, nested supervision, deaths, delays. Everything in a
//! run follows from its seed, so any run can be repeated. Every run must end with the right result.
//! (A job that is not restartable may end with the death of its root.)
//!
//! What happens in these jobs is told in `simulator/README.md` (Random jobs). What must hold: at
//! most one living PE is expelled for each broken path and each slander. A partition costs at most
//! the side without the root; one that ends may cost PEs of both sides, but no more of them than
//! that side has. No PE leaves a root that it reaches. All PEs hear of the same deaths in the same
//! order. In the end no process is left.
//!
//! One job in three is restartable: it goes on when its root dies, and begins anew on the PE that
//! takes its place. There any PE may die: several roots in turn, with their hosts and racks or
//! without. Some of these jobs compute for seconds, so that elections follow each other. Then
//!
//! - the result is right, and no two PEs have it that are both in office: the first has died with
//!   it, or has left before the second took office, or had it by then and could not say so, as a
//!   path was broken;
//! - there is a result if a majority stays together whatever happens: the PEs that do not die, less
//!   one for each broken path and each slander, are more than half of those whose process was not
//!   seen to be gone. A partition for ever leaves the PEs of its larger side. (There may be none
//!   after a partition that ends, or if a root whose main task has ended falls silent or is parted
//!   from that side: those that have agreed to the end leave.);
//! - without a partition, and with such a majority, no more than one living PE has to leave early
//!   for each broken path and each slander;
//! - the deaths that a PE knows from its judge are a beginning of those that the judge knows.

mod layout;
mod scenario;

use crate::report::SimulatedRun;
use crate::world::Simulation;
use ultramarine_runtime::protocol::supervision::SupervisionMutant;

/// What random jobs compute, and whether they go on when their root dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Jobs {
    /// Trees of tasks; one job in three goes on
    #[default]
    Any,
    /// Trees of tasks; all go on
    Restartable,
    /// Programs in supersteps, with checkpoints in memory or without; all go on
    Supersteps,
    /// Distributed tables, with some copies or none; all go on
    Tables,
}

impl Jobs {
    /// Simulates the job of this seed. Prints every event if `is_verbose`.
    pub fn run(self, seed: u64, is_verbose: bool) -> SimulatedRun {
        let job = match self {
            Jobs::Any => scenario::job(seed, false),
            Jobs::Restartable => scenario::job(seed, true),
            Jobs::Supersteps => scenario::supersteps(seed),
            Jobs::Tables => scenario::tables(seed),
        };
        Simulation::new(job, is_verbose).run()
    }
}

/// Simulates one of [any](Jobs::Any) jobs with a rule of the protocol left out.
pub fn run_mutant(seed: u64, mutant: SupervisionMutant) -> SimulatedRun {
    let mut job = scenario::job(seed, false);
    job.protocol.mutant = Some(mutant);
    Simulation::new(job, false).run()
}
