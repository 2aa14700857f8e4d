//! Simulates whole jobs: many PEs and tasks, nested supervision, deaths, delays. Everything in a
//! run follows from its seed, so any run can be repeated. Every run must end with the right result.
//!
//! The simulation adds what is around the runtime's [`Node`] and [`Membership`]:
//!
//! | file | what |
//! |---|---|
//! | `scenario` | the machine, the settings, and what goes wrong, drawn from the seed |
//! | `program` | what the tasks do, and what their values must be |
//! | `host` | the rest of a PE: its pool, its workers, its futures (the runtime's executor) |
//! | `pe` | a PE |
//! | `world` | time, and messages on their way (the runtime's transport) |
//! | `broken_paths` | which paths between living PEs are cut, and when |
//! | `detection` | deaths, and how they are noticed (the runtime's detector) |
//! | `report` | what a run came to |
//!
//! Messages are late, sometimes by a lot, but stay in order between two PEs, except that messages
//! with a value may be overtaken. None is lost between living PEs; what a PE has sent before its
//! death arrives in part. PEs die with their hosts or without. They are stopped for a while, or
//! slandered (lost by another PE for no reason). Paths between them are cut in one direction or
//! both, for a while or for ever; for a while everything is overloaded. At most one living PE is
//! expelled for each broken path and each slander, and no PE leaves a root that it reaches.
//! Supervised tasks spawn supervised tasks and wait for them; some of these are placed. A lost task
//! that is not supervised is spawned again by its parent. Poison tasks kill the PE that runs them,
//! and must be given up without harm to others.
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

/// Simulates the job of this seed. Prints every event if `is_verbose`.
pub fn run(seed: u64, is_verbose: bool) -> SimulatedRun {
    run_mutant(seed, None, is_verbose)
}

/// The same with a rule of the protocol left out.
pub fn run_mutant(seed: u64, mutant: Option<SupervisionMutant>, is_verbose: bool) -> SimulatedRun {
    world::Simulation::new(seed, mutant, is_verbose).run()
}
