//! What one PE has to do, and who does it: queues, timers, and the state of its threads. It knows
//! no PE: what waits is any [`Queued`](queues::Queued).
//!
//! | file | what |
//! |---|---|
//! | `queues`, `shelves` | the pool's shelves as lock-free deques, and the ready queue |
//! | `serial` | a queue that is emptied by one thread at a time |
//! | `timers` | sleepers by the time at which they wake |
//! | `guests` | tasks of other PEs that wait here for something |
//! | `threads`, `nesting` | worker threads, and whether one waits inside rayon |
//! | `standby` | what must not wait for a worker |
//! | `blocked` | workers whose tasks wait without letting others run |

pub(crate) mod blocked;
pub(crate) mod guests;
pub(crate) mod nesting;
pub(crate) mod queues;
pub(crate) mod serial;
mod shelves;
pub(crate) mod standby;
pub(crate) mod threads;
pub(crate) mod timers;
