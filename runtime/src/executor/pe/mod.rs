//! One PE: its workers, its driver, and how it starts, is driven and leaves.
//!
//! | file | what |
//! |---|---|
//! | `processor` | what holds all parts of a PE together |
//! | `sites` | the PE as its tasks and its engine see it |
//! | `worker` | what a worker thread does |
//! | `standby` | what a thread does for workers that are all inside long tasks |
//! | `spawn`, `submit` | how tasks come into a PE, and workers to them |
//! | `guests`, `put_off` | tasks of other PEs that run here, until these die |
//! | `inbox` | messages and deaths, for the program to hear |
//! | `turns`, `settle` | turns at the engine, and what is done with results that have come |
//! | `packer` | stolen tasks that take long to pack |
//! | `driver`, `drive` | which thread drives the PE, and what it does until the PE has left |
//! | `leave` | how a PE leaves the job |

pub(crate) mod drive;
pub(crate) mod driver;
pub(crate) mod guests;
pub(crate) mod inbox;
pub(crate) mod leave;
pub(crate) mod packer;
pub(crate) mod processor;
pub(crate) mod put_off;
pub(crate) mod settle;
pub(crate) mod sites;
pub(crate) mod spawn;
pub(crate) mod standby;
pub(crate) mod submit;
pub(crate) mod turns;
pub(crate) mod worker;
