//! Groups: one part on each PE, all known by one name, which send messages to each other. Charm++
//! calls it a group, UPC++ a `dist_object`.
//!
//! A group is opened by a PE, which invites the others along a tree. Each makes its part. What
//! arrives for a group waits until the part is made, or is dropped once the group is closed. Each
//! part is told of deaths. If the root dies, its groups go on, and the next root joins them if its
//! program comes to the same digest.
//!
//! | question | file |
//! |---|---|
//! | How are groups and their openings told from each other? | `name` |
//! | Which groups does a PE know, and what is late? | `table` |
//! | What becomes of a part? | `life` |
//! | What do PEs tell each other, and what does each do then? | `protocol` |
//! | How is that done in a job? | `host` |
//! | How does a program use one? | `peers` |
//! | How is it done in tests, simulations and model checkers? | `plain` |
//!
//! All but `host` knows no executor: no threads, no locks, no messages of the runtime.
//!
//! A group must never know what its parts are for.
#![forbid(unsafe_code)]

pub mod host;
pub mod life;
pub mod name;
pub mod peers;
pub mod plain;
pub mod protocol;
pub mod table;

pub use host::{Groups, Hosted, Invite, Member, Opened};
pub use life::{Life, Part};
pub use name::{GroupId, Name, Opening};
pub use peers::{Group, Handle, Outbox, Peer, group};
pub use plain::{Action, ActionOf, Plain, PlainGroups, Turn};
pub use protocol::{Notice, Site};
pub use table::Table;

#[cfg(test)]
mod tests;
