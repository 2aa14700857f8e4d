//! One PE's part in the job, as a state machine: messages in, messages out (SymGridPar2 §4.2).
//!
//! ```text
//!  thief                     victim without work            victim with work
//!    | FISH ------------------------>|                              |
//!    |                               | FISH (one hop less) -------->|
//!    |<----------------------------------------------- SCHEDULE ----|   tasks
//!    |
//!    | FISH … after max_hops the last one answers:
//!    |<------ NOWORK                     the thief waits, longer each time
//! ```
//!
//! There are no threads, clocks, sockets, files or global state here: [`Node`] is driven by
//! its owner, which passes in the time and stands for the rest of the PE as its [`Host`]. So
//! the same code runs under MPI, in tests that play several nodes by hand, and in a simulator.
//!
//! | file | what |
//! |---|---|
//! | [`message`] | everything that one PE can say to another |
//! | [`pool`] | which task is chosen: for a worker at home, for a thief far away |
//! | [`node`] | the state machine: what each message does, and each death |
//! | `fishing` | asking for work, giving it, passing on the requests of others |
//! | [`supervision`] | where this PE's own tasks are, and which must be run again |
//! | `recovery` | who runs those again, and when one is given up |
//! | `telling` | what one PE tells many |
//! | `ending` | SHUTDOWN, FAREWELL, RELEASE: how all leave |
//! | [`membership`] | who is dead, and how all come to know the same |
//! | [`victim`] | whom to ask for work, and to whom to pass on a FISH |
//! | [`settings`] | the numbers that govern it |
//! | [`statistics`] | what is counted, by distance |

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

pub use cancelling::CANCELLED_AT_ONCE;
pub use membership::{Living, Membership, MembershipStatus, Notice};
pub use message::{Fish, Message, Need, Outcome, Parcel, TaskId, Version};
pub use node::{Host, Node};
pub use phase::Phase;
pub use pool::{Pool, Radii, Shelf};
pub use settings::{FishingSettings, ProtocolSettings};
pub use statistics::{Histogram, Statistics, Traffic, Upkeep};

#[cfg(test)]
mod tests;
