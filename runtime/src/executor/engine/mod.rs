//! The *engine*: protocol, port and futures under one lock; it makes progress. It has no thread and
//! no queue. Which thread runs it, and where tasks wait, is behind the trait
//! [`EngineSite`].
//!
//! | file | what |
//! |---|---|
//! | `turn` | the engine, and what one turn does |
//! | `site` | the PE as the engine sees it |
//! | `host` | the engine's state, as the protocol sees it |
//! | `boards` | tasks in memory that other processes see |
//! | `send_queue` | messages until the port takes them |
//! | `mpi_gate` | the gate to MPI calls, which may not return |
//! | `liveness` | what the failure detector reports |
//! | `fail_over` | leaving MPI for the fallback lane after a death |
//! | `failure` | errors that end a job early |
//!
//! So an engine can also be driven step by step, with any clock and any [lane](crate::transport).
//! The simulator does that. Who drives it
//!
//! 1. calls [`Engine::turn`] whenever a frame or an event has arrived, something was put into the
//!    site's [`outbox`](EngineSite::outbox), or the last turn's [`due`](Turn::due) has come; also
//!    each 100 ms while it has a fallback lane, and each 50 ms while the job ends;
//! 2. then fills the futures that [`Engine::take_results`] returns;
//! 3. calls [`Engine::end`] on the root when the main task has ended, and drops the engine when it
//!    [may leave](Engine::may_leave).
//!
//! There are no examples here: an engine needs a whole PE around it. The smallest is
//! `simulator/src/pe/site.rs`.

pub(crate) mod boards;
pub(crate) mod fail_over;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod liveness;
pub(crate) mod mpi_gate;
pub(crate) mod send_queue;
pub(crate) mod site;
pub(crate) mod turn;

pub use super::task::start::{Effort, Fill, OwnTask, Packed};
pub use boards::BoardSetup;
pub use host::Results;
pub use liveness::Liveness;
pub use site::{EngineSite, Outgoing};
pub use turn::{Engine, Turn};
