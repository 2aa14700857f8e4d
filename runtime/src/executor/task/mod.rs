//! A task and its future: the lowest floor. It knows no queue, no thread and no protocol engine.
//! What it needs of the PE is the trait [`Site`](site::Site).
//!
//! | file | what |
//! |---|---|
//! | `site` | the PE as a task sees it |
//! | `start` | a task as queues, workers and the engine see it |
//! | `local` | a task on the PE that spawned it, in one allocation with its result |
//! | `guest`, `arrival` | a task from another PE, and its start |
//! | `body`, `task_code` | a task's function: calling it, and the type that identifies it |
//! | `end` | where its result goes |
//! | `future` | the handle by which a spawned task is awaited |
//! | `cancel` | cancelling tasks |
//! | `origin` | the PE for which a task runs |
//! | `portable`, `packing` | which values can travel, and how they become bytes |
//! | `travel` | handles inside arguments |
//! | `activity` | the function that a worker is inside of |
//! | `caught` | running user code that may panic |

pub(crate) mod activity;
pub(crate) mod arrival;
pub(crate) mod body;
pub(crate) mod cancel;
pub(crate) mod caught;
pub(crate) mod end;
pub(crate) mod future;
pub(crate) mod guest;
pub(crate) mod local;
pub(crate) mod origin;
pub(crate) mod packing;
pub(crate) mod portable;
pub(crate) mod site;
pub(crate) mod start;
pub(crate) mod task_code;
pub(crate) mod travel;
