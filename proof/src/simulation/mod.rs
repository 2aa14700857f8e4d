//! Simulates whole jobs: many PEs and tasks, nested supervision, deaths, delays. Everything in a
//! run follows from its seed, so any run can be repeated. Every run must end with the right result.
//!
//! Each PE is the runtime's own [`Engine`], with its protocol, its port, its queue of messages and
//! its fail-over, and the runtime's own [`Membership`]. The simulation adds what is around them:
//!
//! | file | what |
//! |---|---|
//! | `scenario` | the machine, the settings, and what goes wrong, drawn from the seed |
//! | `program` | what the tasks do, and what their values must be |
//! | `workers` | the workers of a PE, and the tasks that they run |
//! | `site` | the rest of a PE, as its engine sees it |
//! | `lane` | what carries the frames of the ports |
//! | `pe` | a PE |
//! | `world` | time, and frames on their way |
//! | `broken_paths` | which paths between living PEs are cut, and when |
//! | `detection` | deaths, and how they are noticed (the runtime's detector) |
//! | `report` | what a run came to |
//!
//! Frames are late, sometimes by a lot, but stay in order between two PEs. In some runs frames are
//! lost, also between living PEs, and the port sends them again; what a PE has sent before its
//! death arrives in part. Some tasks and values have arrays, which other messages overtake. After a
//! death the PEs go over to another lane, each when it hears of it. PEs die with their hosts or
//! without. They are stopped for a while, or slandered (lost by another PE for no reason). Paths
//! between them are cut in one direction or both, for a while or for ever; for a while everything
//! is overloaded. At most one living PE is expelled for each broken path and each slander, and no
//! PE leaves a root that it reaches. Supervised tasks spawn supervised tasks and wait for them;
//! some of these are placed. A lost task that is not supervised is spawned again by its parent.
//! Poison tasks kill the PE that runs them, and must be given up without harm to others.
//!
//! [`Engine`]: ultramarine_runtime::executor::engine::Engine
//! [`Membership`]: ultramarine_runtime::protocol::Membership

mod broken_paths;
mod detection;
mod dice;
mod lane;
mod pe;
mod program;
mod report;
mod scenario;
mod site;
mod workers;
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
