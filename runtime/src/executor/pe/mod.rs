//! One PE: its workers and its driver; how it starts, runs and leaves.
//!
//! | file | what |
//! |---|---|
//! | `processor` | one PE with all its parts |
//! | `sites` | the PE as its tasks and its engine see it |
//! | `worker` | what a worker thread does |
//! | `standby` | what must not wait while all workers are inside long tasks |
//! | `spawn`, `submit` | how tasks enter a PE, and how workers are called |
//! | `guests`, `deferred` | tasks of other PEs, and what becomes of them if these die |
//! | `inbox` | reading messages and deaths to the program |
//! | `turns`, `settle` | turns at the engine, and filling futures with results |
//! | `packer` | stolen tasks that take long to pack |
//! | `driver`, `drive` | which thread drives the PE, and its loop |
//! | `agreement` | whether the others agree that the job ends here |
//! | `leave`, `close` | how a PE leaves the job, and what is left of it |

pub(crate) mod agreement;
mod close;
pub(crate) mod deferred;
pub(crate) mod drive;
pub(crate) mod driver;
pub(crate) mod guests;
pub(crate) mod inbox;
pub(crate) mod leave;
pub(crate) mod packer;
pub(crate) mod processor;
pub(crate) mod settle;
pub(crate) mod sites;
pub(crate) mod spawn;
pub(crate) mod standby;
pub(crate) mod submit;
pub(crate) mod turns;
pub(crate) mod worker;
