//! Protocol, port and futures under one lock: what makes progress. The engine has no thread and no
//! queue; who turns it, and where tasks wait, is behind the trait [`EngineSite`](site::EngineSite).
//!
//! | file | what |
//! |---|---|
//! | `turn` | the engine, and what one turn does |
//! | `site` | the PE as the engine sees it |
//! | `host` | the engine's state, as the protocol sees it |
//! | `send_queue` | messages until the port takes them |
//! | `mpi_gate` | the way to calls of MPI, which may not return |
//! | `liveness` | what the failure detector reports |
//! | `fail_over` | what the engine does about it |
//! | `failure` | why a job ends before its time |

pub(crate) mod fail_over;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod liveness;
pub(crate) mod mpi_gate;
pub(crate) mod send_queue;
pub(crate) mod site;
pub(crate) mod turn;
