//! The protocol: one PE as a state machine, messages in, messages out (SymGridPar2 §4.2).
//!
//! ```text
//!  thief                     victim without work            victim with work
//!    | FISH ------------------------>|                              |
//!    |                               | FISH (one hop less) -------->|
//!    |<----------------------------------------------- SCHEDULE ----|   tasks
//!    |
//!    | FISH … after max_hops it waits at the last one, longer each time;
//!    |<------ NOWORK                     if that one has got no work until then
//! ```
//!
//! There are no threads, clocks, sockets, files or global state here. The owner of a [`Node`]
//! drives it: it passes in the time, and stands for the rest of the PE as its [`Host`]. So the
//! same code runs under MPI, in tests that play several nodes by hand, and in a simulator.
//!
//! | file | what |
//! |---|---|
//! | [`message`] | everything that one PE can send to another |
//! | [`pool`] | which task is chosen: for a worker at home, for a thief far away |
//! | [`node`] | the state machine: what each message does, and each death |
//! | [`board`] | stealing between PEs of one host without a message |
//! | `fishing` | asking for work, giving it, passing on the FISHes of others |
//! | `fish_state` | where a PE's search for work stands |
//! | [`supervision`] | where this PE's own tasks are, and which must be run again |
//! | `recovery` | which PE runs a lost task again, and when a task is given up |
//! | `losses` | losses that are still to be handled |
//! | `cancelling` | cancelling tasks that are away |
//! | `telling` | one PE sends the same message to many |
//! | `ending` | SHUTDOWN, FAREWELL, RELEASE: how all PEs leave |
//! | `phase` | how far the job is |
//! | [`membership`] | which PEs are dead, and how all PEs agree on that |
//! | [`victim`] | which PE to ask for work, and to which to pass on a FISH |
//! | [`settings`] | the settings |
//! | [`statistics`] | the counters, by distance |

pub mod board;
mod cancelling;
mod ending;
mod fish_state;
mod fishing;
mod losses;
pub mod membership;
pub mod message;
pub mod node;
mod phase;
pub mod pool;
mod recovery;
pub mod settings;
pub mod statistics;
pub mod supervision;
mod telling;
pub mod victim;

pub use board::Boards;
pub use cancelling::CANCELLED_AT_ONCE;
pub use ending::Leaving;
pub use membership::{
    Claim, Death, Evidence, Heading, Living, Loss, Membership, MembershipStatus, Notice, Term,
};
pub use message::{Fish, Message, Need, Outcome, Parcel, TaskId, Version};
pub use node::{Host, Node};
pub use phase::Phase;
pub use pool::{Pool, Radii, Shelf};
pub use settings::{FishingSettings, ProtocolSettings};
pub use statistics::{Histogram, Statistics, Traffic, Upkeep};

#[cfg(test)]
mod tests;
