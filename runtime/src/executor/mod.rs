//! Runs tasks: worker threads, the engine that makes progress, and what users call.
//!
//! One PE is a `Processor`. Its worker threads are those of a rayon pool; each takes
//! tasks from lock-free queues and runs them. Everything that has to do with other PEs — protocol
//! and port — is the *engine*, behind one lock that nobody waits for: a worker between two tasks
//! or without work takes a turn at it if it is free, and when all workers are inside long tasks
//! the PE's driver takes a turn now and then.
//!
//! | file | what |
//! |---|---|
//! | `context` | what a task can do: spawn, place, ask who is near |
//! | `future` | the handle by which a spawned task is awaited |
//! | `fork` | the handle of one that its parent takes back unless it is stolen |
//! | `spawn` | how tasks come into a PE, and workers to them |
//! | `task` | a task while it waits: at home with its future, or as a guest from elsewhere |
//! | `arrival` | a task that has come from elsewhere |
//! | `telling` | messages without a reply |
//! | `mailbox` | values from one PE to another, in order |
//! | `packing` | arguments and results as bytes, and who makes bytes of them |
//! | `guests` | those that run here for other PEs, until these die |
//! | `body` | calling a task's function, plain or async, and catching its panic |
//! | `cancel` | tasks that are not wanted any more |
//! | `settle` | what is done with results that have come |
//! | `serial` | a queue that is emptied by one thread at a time |
//! | `queues` | the pool's shelves as lock-free deques, and the ready queue |
//! | `worker` | what a worker thread does |
//! | `standby` | what a thread does for workers that are all inside long tasks |
//! | `nesting` | whether it does that while something else waits for it |
//! | `engine` | protocol, port and futures under one lock |
//! | `station` | the PE as the protocol sees it |
//! | `processor` | one PE: what holds all of these together |
//! | `life` | how a PE starts, is driven, and takes leave |
//! | `driver` | which thread drives it |
//! | `liveness` | what it hears of deaths, and does about them |
//! | `deaths` | what the program hears of them |
//! | `failure` | why a job ends before its time |
//! | `mpi_gate` | where threads go into MPI, and may not come back |
//! | `store` | what the tasks on one PE share |
//! | `statistics` | what all PEs have counted |
//! | `values` | values that stay in a process, and their handles |
//! | `blocked` | tasks that wait without letting others run |
//! | `timer` | sleeping without blocking a worker |

mod arrival;
mod blocked;
mod body;
mod cancel;
mod caught;
mod context;
mod deaths;
mod driver;
mod engine;
mod engine_host;
mod failure;
mod fork;
mod future;
mod guests;
mod life;
mod liveness;
mod mailbox;
mod mpi_gate;
mod nesting;
mod packing;
mod processor;
mod queues;
mod send_queue;
mod serial;
mod settle;
mod spawn;
mod standby;
mod statistics;
mod store;
mod task;
mod telling;
mod timer;
mod values;
mod worker;

pub use context::{Context, Demand, Portable};
pub use deaths::DeathStream;
pub use failure::JobError;
pub use fork::Fork;
pub use future::{AbortOnDrop, Future};
pub use life::{Leave, Parting, lead, serve};
pub use liveness::{DetectorSetup, DetectorStart, EventHandler, FailureDetector};
pub use mailbox::Mailbox;
pub use processor::{Exchanged, Job};
pub use store::Key;
pub use timer::Elapsed;
pub use values::{Placement, Remote, Shared};
