//! Searches every state of a share of a distributed table: whatever dies, and in whichever order
//! messages and work come, each request is done once, and what was answered stays.
//!
//! All PEs are [`Machine`](ultramarine_skeletons::table::machine::Machine)s of the skeletons. The
//! model only adds what is around them, and not the group that they are in real jobs: that has a
//! search of its own. The entries are those of one share, the root's: shares do not know of each
//! other, so what the machines do with others is left out. They are a list of what has changed
//! them, in this order: an update that depends on all before it.
//!
//! - **Requests** are asked at any moment, by any PE, also before earlier ones are answered.
//! - **Messages** between two PEs arrive in the order in which they were sent, otherwise in any
//!   order, after any time.
//! - **Work** with entries is done by a PE in order, at any moment.
//! - **Invitations**: a PE begins at once, or at any moment ([`TablesCase::are_invited`]). What
//!   comes before waits.
//! - **Deaths**: a PE dies at any moment. Each other PE hears of it at any later moment; what it
//!   has not got by then is lost.
//!
//! The search of a case ends where a machine says that the table is lost.

mod case;
mod model;
mod mutant;
mod properties;
mod state;

pub use case::TablesCase;
pub use mutant::TablesMutant;
pub use properties::{
    ANSWERS_STAY, COPIES_AGREE, EVERY_REQUEST_ENDS, LOSSES_ARE_REAL, REQUESTS_ARE_DONE_ONCE,
};
pub use state::{Action, Op, State};
