//! One PE: its workers and its driver; how it starts, runs and leaves.
//!
//! | file | what |
//! |---|---|
//! | `processor` | one PE with all its parts: it connects them, starts and closes |
//! | `crew` | part: how many workers are active, and how one is called |
//! | `turns` | part: the engine, and what passes between it and the threads |
//! | `driver` | part: which thread drives the PE, and where it sleeps |
//! | `ending` | part: whether the PE is on its way out, why, and who agrees |
//! | `counts` | part: what only the statistics need |
//! | `sites` | the PE as its tasks and its engine see it |
//! | `worker` | what a worker thread does |
//! | `standby` | what must not wait while all workers are inside long tasks |
//! | `spawn`, `submit` | how tasks enter a PE, and when workers are called |
//! | `guests`, `deferred` | tasks of other PEs, and what becomes of them if these die |
//! | `inbox` | reading messages and deaths to the program |
//! | `take_turn`, `settle` | turns at the engine, and filling futures with results |
//! | `sampling` | what the PE does at the time, for the trace and who watches |
//! | `packer` | stolen tasks that take long to pack |
//! | `drive` | the loop of the driver |
//! | `leave` | how a PE has left the job |
//!
//! A part owns its state and knows no `Processor`. The other files have methods of the `Processor`
//! that need several parts. The parts [`Kept`](super::keep::kept::Kept),
//! [`Guests`](super::schedule::guests::Guests) and [`Queues`](super::schedule::queues::Queues) are
//! on floors below.

pub(crate) mod counts;
pub(crate) mod crew;
pub(crate) mod deferred;
pub(crate) mod drive;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod guests;
pub(crate) mod inbox;
pub(crate) mod leave;
pub(crate) mod packer;
pub(crate) mod processor;
pub(crate) mod sampling;
pub(crate) mod settle;
pub(crate) mod sites;
pub(crate) mod spawn;
pub(crate) mod standby;
pub(crate) mod submit;
mod take_turn;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod turns;
pub(crate) mod worker;
