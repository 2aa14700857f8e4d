//! Runs tasks: worker threads, the engine that makes progress, and what users call.
//!
//! One PE is a `Processor`. Its worker threads are those of a rayon pool; each takes tasks from
//! lock-free queues and runs them. Protocol, port and the table of futures are the *engine*, behind
//! one lock for which no worker waits. A thread that finds the engine free takes a *turn*: it
//! sends, receives and fishes. Workers take turns between two tasks and while they have no work.
//! When all workers are inside long tasks, the PE's *driver* thread takes one now and then.
//!
//! The executor has floors. Each knows those below it, and no other:
//!
//! ```text
//!  api       what users call: contexts, values, mailboxes
//!  pe        one PE: workers, driver, start and leave
//!  engine    protocol, port and futures; the gate to MPI and the fail-over
//!  keep      what a PE keeps for its tasks
//!  schedule  queues, timers and the state of threads
//!  task      a task and its future
//! ```
//!
//! What a floor needs of a higher one is a small trait: `Site` for a task, `EngineSite` for the
//! engine, `Queued` for a queue. Each has one implementation in the program, so the compiler sees
//! through it and it costs nothing.

mod api;
pub mod engine;
mod keep;
mod pe;
mod schedule;
mod task;

pub use api::context::{Context, Demand};
pub use api::deaths::DeathStream;
pub use api::fork::Fork;
pub use api::mailbox::Mailbox;
pub use api::run::{BoxedMain, end_because_of, lead, serve, serve_once_started, take_part};
pub use api::sleep::Elapsed;
pub use api::values::{Placement, Remote, Shared};
pub use engine::boards::BoardSetup;
pub use engine::failure::JobError;
pub use engine::liveness::{DetectorSetup, DetectorStart, EventHandler, FailureDetector};
pub use keep::store::Key;
pub use pe::counts::BootstrapTraffic;
pub use pe::leave::{Leave, Parting};
pub use pe::processor::Job;
pub use pe::sampling::{Sample, Stolen};
pub use schedule::backlog::{Backlog, Oldest};
pub use task::caught::{caught, caught_code, discard, panic_message};
pub use task::future::{AbortOnDrop, Future};
pub use task::portable::{Portable, memory_estimate};
pub use ultramarine_taskset::board::{Address as BoardAddress, OwnBoard};
