//! What users call.
//!
//! | file | what |
//! |---|---|
//! | `run` | running a PE from its start to its end |
//! | `context` | what a task sees of its PE and of the others |
//! | `spawn` | spawning tasks, and placing them |
//! | `body` | async functions, which get a context |
//! | `fork` | a task that its parent takes back unless it is stolen |
//! | `telling`, `mailbox` | messages without a reply; values from one PE to another, in order |
//! | `store` | what the tasks on one PE share |
//! | `values` | values that stay in a process, and their handles |
//! | `sleep` | waiting for some time |
//! | `deaths` | which PEs have died |
//! | `statistics` | what all PEs have counted |

pub(crate) mod body;
pub(crate) mod context;
pub(crate) mod deaths;
pub(crate) mod fork;
pub(crate) mod mailbox;
pub(crate) mod run;
pub(crate) mod sleep;
pub(crate) mod spawn;
pub(crate) mod statistics;
pub(crate) mod store;
pub(crate) mod telling;
pub(crate) mod values;
