//! Sets of tasks in memory that several processes share and that outlives them.
//!
//! The memory is a mapped file, the *arena*: in `/dev/shm`, or in a file system on a DAX or CXL
//! device (the device itself is no regular file, and is refused). Tasks, queues and what runs lie
//! there, where each worker sees them. So any worker can take and finish the work of any other,
//! without messages and without a manager: a process that is killed loses nothing that it had
//! published, and a job that is killed whole finds its sets as they were.
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
//! | module | question it answers |
//! |---|---|
//! | `mapped` | what is in the file, and what do programs call? |
//! | `state`, `closing` | how does a task stand, and when has a set ended? |
//! | [`queue`] | which tasks wait for a worker? |
//! | [`barrier`] | where do workers meet? |
//! | [`board`] | how does a process take a task of another that has no arena? |
//!
//! # When a process dies
//!
//! All changes of the arena are single atomic steps, and there are no locks in it. Each file says
//! what a death leaves after each of its steps. Two rules stand above them. Whatever a dead worker
//! has left half done, any other can do again, with the same effect. And a set ends only when a
//! sweep (`mapped/sweep.rs`) has seen each of its tasks finished: all that brings tasks to workers
//! sooner may fail.

#![deny(unsafe_code)]
// Loom checks a part of it.
#![cfg_attr(loom, allow(dead_code))]

pub mod barrier;
pub mod board;
mod closing;
#[cfg(all(test, not(loom)))]
mod crash;
mod limits;
#[cfg(not(loom))]
mod mapped;
mod memory;
#[cfg(all(test, loom))]
mod model;
pub mod queue;
mod state;
mod sync;
#[cfg(test)]
mod test_memory;
#[cfg(all(test, not(loom)))]
mod test_process;

pub use limits::WORKERS_MAX;
#[cfg(not(loom))]
pub use mapped::{Arena, Awaited, Call, Cell, Code, Error, Options, Result, TaskSet, Worker};
pub use memory::Memory;
