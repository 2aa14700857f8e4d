//! Simulates whole jobs: many PEs and tasks, nested supervision, deaths, delays. Everything in a
//! run follows from its seed, so any run can be repeated. Every run must end with the right result.
//! (A job that is not restartable may end with the death of its root.)
//!
//! Frames are late, sometimes by a lot, but stay in order between two PEs. In some runs frames are
//! lost, also between living PEs, and the port sends them again; what a PE has sent before its
//! death arrives in part. Some tasks and values have arrays, which other messages overtake. After a
//! death the PEs go over to another lane, each when it hears of it. PEs die with their hosts or
//! without; in some runs a whole host dies, or a whole rack. PEs are stopped for a while, or
//! slandered (lost by another PE for no reason). Paths between them are cut in one direction or
//! both, and racks are parted from all others, for a while or for ever; in half of the runs a cut
//! answers, as a firewall that rejects. In one run of three processes have no guards, so that a
//! death is silent where no other process of its host lives. For a while everything is overloaded.
//! At most one living PE is expelled for each broken path and each slander. A partition costs at
//! most the side without the root; one that ends may cost PEs of both sides, but no more of them
//! than that side has. No PE leaves a root that it reaches. All PEs hear of the same deaths in the
//! same order. In the end no process is left.
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
//!
//! Most jobs have 3 to 30 PEs, one in 250 up to 1,000.
//!
//! Supervised tasks spawn supervised tasks and wait for them;
//! some of these are placed. A lost task that is not supervised is spawned again by its parent.
//! Poison tasks kill the PE that runs them, and must be given up without harm to others.

mod layout;
mod scenario;

use crate::report::SimulatedRun;
use crate::world::Simulation;
use ultramarine_runtime::protocol::supervision::SupervisionMutant;

/// Simulates the job of this seed. Prints every event if `is_verbose`.
pub fn run(seed: u64, is_verbose: bool) -> SimulatedRun {
    run_mutant(seed, None, is_verbose)
}

/// The same for a job that goes on when its root dies, whatever the seed says.
pub fn run_restartable(seed: u64, is_verbose: bool) -> SimulatedRun {
    Simulation::new(scenario::job(seed, true), is_verbose).run()
}

/// The same with a rule of the protocol left out.
pub fn run_mutant(seed: u64, mutant: Option<SupervisionMutant>, is_verbose: bool) -> SimulatedRun {
    let mut job = scenario::job(seed, false);
    job.protocol.mutant = mutant;
    Simulation::new(job, is_verbose).run()
}
