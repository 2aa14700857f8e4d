//! Sets of tasks in memory that several processes share and that outlives them.
//!
//! The memory is a mapped file, the *arena*: in `/dev/shm`, or on a DAX or CXL device. Tasks,
//! queues and what runs lie there, where each worker sees them. So any worker can take and finish
//! the work of any other, without messages and without a manager: a process that is killed loses
//! nothing that it had published, and a job that is killed whole finds its sets as they were.
//!
//! This crate knows tasks, numbers and bytes. It must never know MPI or PEs, nor what the code of a
//! task means: that is 16 bytes of the program's.
//!
//! ```
//! use ultramarine_taskset::{Arena, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("arena");
//! const SQUARE: [u8; 16] = [1; 16];
//! const SUM: [u8; 16] = [2; 16];
//!
//! let (job, build) = (4711, 1);
//! let arena = Arena::open(&path, &Options::new(job, build).size_bytes(64 << 20))?;
//! let worker = arena.join()?;
//! let squares = worker.set("squares")?;
//! squares.then(SUM, &[])?;
//! for number in 0..10 {
//!     squares.add(number, SQUARE, &[number as u8])?;
//! }
//! // Other processes may call this, too, and be killed within.
//! squares.run(|call| match call.code() {
//!     SQUARE => vec![call.argument().map_or(0, |argument| argument[0].pow(2))],
//!     _ => (0..10).map(|number| squares.result(number)).flatten().flatten().flatten().collect(),
//! })?;
//! assert_eq!(squares.result(7)?.unwrap(), [49]);
//! assert_eq!(squares.outcome()?.unwrap(), [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]);
//! # drop(worker);
//! # drop(arena);
//!
//! // A later job finds what is done.
//! let arena = Arena::open(&path, &Options::new(4712, build))?;
//! let worker = arena.join()?;
//! assert_eq!(worker.set("squares")?.result(3)?.unwrap(), [9]);
//! # Ok(())
//! # }
//! ```
//!
//! | file | question it answers |
//! |---|---|
//! | `handle`, `open` | what do programs call? |
//! | `arena` | what is in the file, which files are refused, and who may have it? |
//! | `shared` | which types may lie there? |
//! | `blocks` | where is memory free? |
//! | `table` | where is the task with this number? |
//! | `task`, `state`, `dependencies` | what is a task, and how does it stand? |
//! | `set` | what is a set? |
//! | `queue` | which tasks wait for a worker? |
//! | `barrier` | where do workers meet? |
//! | `worker` | what does a worker have, and what becomes of it when the worker dies? |
//! | `run` | what does a worker do? |
//! | `sweep`, `closing` | when has a set ended, and what if a task is lost? |
//! | `cell` | how do tasks change data? |
//! | `collect` | what if all workers are dead? |
//! | `board` | how does a process take a task of another that has no arena? |
//!
//! # When a process dies
//!
//! All changes of the arena are single atomic steps, and there are no locks in it. Each file says
//! what a death leaves after each of its steps. Two rules stand above them. Whatever a dead worker
//! has left half done, any other can do again, with the same effect. And a set ends only when a
//! sweep (`sweep`) has seen each of its tasks finished: all that brings tasks to workers sooner may
//! fail.

#![deny(unsafe_code)]
// Loom checks a part of it.
#![cfg_attr(loom, allow(dead_code))]

pub mod barrier;
pub mod board;
mod closing;
#[cfg(all(test, not(loom)))]
mod crash;
mod limits;
mod memory;
#[cfg(all(test, loom))]
mod model;
pub mod queue;
mod state;
mod sync;
#[cfg(test)]
mod test_memory;

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod blocks;
#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
mod collect;
#[cfg(not(loom))]
mod dependencies;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod run;
#[cfg(not(loom))]
mod set;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod sweep;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod task;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod worker;

pub use limits::WORKERS_MAX;
pub use memory::Memory;
#[cfg(not(loom))]
pub use {
    error::{Error, Result},
    handle::{Awaited, Cell, TaskSet},
    open::{Arena, Options},
    run::Call,
    task::Code,
    worker::Worker,
};
