//! The public interface: what a program calls.
//!
//! | file | what |
//! |---|---|
//! | `run` | running a PE from its start to its end |
//! | `context` | what a task can do on its PE, and see of the others |
//! | `spawn` | spawning tasks, and placing them |
//! | `body` | async functions, which get a context |
//! | `fork` | a task that its parent takes back unless a thread has started it |
//! | `join` | two functions, of which a thief may run one |
//! | `telling`, `mailbox` | messages without a reply; values from one PE to another, in order |
//! | `mail_types` | who waits at a mailbox for another type than comes |
//! | `store` | values that the tasks on one PE share by key |
//! | `values` | values that stay in a process, and their handles |
//! | `sleep` | sleeping and timeouts |
//! | `waiting` | tasks that wait for the same thing |
//! | `deaths` | which PEs have died |
//! | `clocks` | how the clocks of PEs differ |
//! | `statistics` | what all PEs have counted |

pub(crate) mod body;
mod clocks;
pub(crate) mod context;
pub(crate) mod deaths;
pub(crate) mod fork;
mod join;
mod mail_types;
pub(crate) mod mailbox;
pub(crate) mod run;
pub(crate) mod sleep;
pub(crate) mod spawn;
pub(crate) mod statistics;
pub(crate) mod store;
pub(crate) mod telling;
pub(crate) mod values;
mod waiting;
