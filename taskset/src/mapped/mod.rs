//! What lies in an arena, and what works on it. Loom does not check it: its atomics cannot lie in a
//! file.
//!
//! | file | question it answers |
//! |---|---|
//! | `handle`, `open` | what do programs call? |
//! | `arena` | what is in the file, which files are refused, and who may have it? |
//! | `shared` | which types may lie there? |
//! | `blocks` | where is memory free? |
//! | `table` | where is the task with this number? |
//! | `task`, `dependencies` | what is a task, and what does it wait for? |
//! | `set` | what is a set? |
//! | `worker` | what does a worker have, and what becomes of it when the worker dies? |
//! | `run` | what does a worker do? |
//! | `sweep` | when has a set ended, and what if a task is lost? |
//! | `cell` | how do tasks change data? |
//! | `collect` | what if all workers are dead? |

pub(crate) mod arena;
mod blocks;
mod cell;
mod collect;
mod dependencies;
mod error;
mod handle;
mod open;
mod run;
mod set;
mod shared;
mod sweep;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod worker;

pub use error::{Error, Result};
pub use handle::{Awaited, Cell, TaskSet};
pub use open::{Arena, Options};
pub use run::Call;
pub use task::Code;
pub use worker::Worker;
