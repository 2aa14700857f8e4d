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

mod broken_paths;
mod detection;
mod dice;
mod host;
mod pe;
mod program;
mod report;
mod scenario;
mod world;

pub use report::{RunReport, RunTotals, SimulatedRun};

use ultramarine_runtime::protocol::supervision::SupervisionMutant;

/// Simulates the job of this seed, and tells every event if asked to.
pub fn run(seed: u64, is_verbose: bool) -> SimulatedRun {
    run_mutant(seed, None, is_verbose)
}

/// The same with a rule of the protocol left out.
pub fn run_mutant(seed: u64, mutant: Option<SupervisionMutant>, is_verbose: bool) -> SimulatedRun {
    world::Simulation::new(seed, mutant, is_verbose).run()
}
