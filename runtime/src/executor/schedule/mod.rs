//! The work of one PE and its threads: queues, timers, and the state of workers. This floor knows
//! no PE: what waits in a queue is any [`Queued`](queues::Queued).
//!
//! | file | what |
//! |---|---|
//! | `queues`, `shelves` | the pool's shelves as lock-free deques, and the ready queue |
//! | `serial` | a queue that one thread at a time empties |
//! | `timers` | tasks that sleep, by the time at which they wake |
//! | `backlog` | which parts of a task's work become tasks |
//! | `wanted` | what a thief that finds nothing tells the workers |
//! | `guests` | tasks of other PEs that wait here for something |
//! | `threads`, `nesting` | worker threads, and whether one waits inside rayon |
//! | `standby` | the thread that runs what must not wait for a worker |
//! | `blocked` | finding tasks that block their worker |

pub(crate) mod backlog;
pub(crate) mod blocked;
pub(crate) mod guests;
pub(crate) mod nesting;
pub(crate) mod queues;
pub(crate) mod serial;
mod shelves;
pub(crate) mod standby;
pub(crate) mod threads;
pub(crate) mod timers;
mod wanted;
