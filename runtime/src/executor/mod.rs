//! Runs tasks: worker threads, the engine that makes progress, and what users call.
//!
//! One PE is a `Processor`. Its worker threads are those of a rayon pool; each takes tasks from
//! lock-free queues and runs them. Everything that has to do with other PEs — protocol and port —
//! is the *engine*, behind one lock for which no thread waits: a worker between two tasks or
//! without work takes a turn at it if it is free, and when all workers are inside long tasks the
//! PE's driver takes a turn now and then.
//!
//! The house has floors. Each knows those below it, and no other:
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
//! What a floor needs of a higher one is a small trait: a task knows its
//! `Site`, the engine its `EngineSite`, a queue
//! the `Queued`. There is one implementation of each in the program, so
//! that the compiler sees through them: they cost nothing.

mod api;
mod engine;
mod keep;
mod pe;
mod schedule;
mod task;

pub use api::context::{Context, Demand};
pub use api::deaths::DeathStream;
pub use api::fork::Fork;
pub use api::mailbox::Mailbox;
pub use api::run::{lead, serve};
pub use api::sleep::Elapsed;
pub use api::values::{Placement, Remote, Shared};
pub use engine::failure::JobError;
pub use engine::liveness::{DetectorSetup, DetectorStart, EventHandler, FailureDetector};
pub use keep::store::Key;
pub use pe::leave::{Leave, Parting};
pub use pe::processor::{Exchanged, Job};
pub use task::future::{AbortOnDrop, Future};
pub use task::portable::Portable;
