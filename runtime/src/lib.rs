//! The runtime of Ultramarine: everything between a task that is spawned and its awaited result.
//!
//! There are five main modules, each usable and testable without the next:
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | values ↔ bytes |
//! | [`protocol`] | one PE as a state machine: messages in, messages out |
//! | [`transport`] | frames between PEs, over MPI, TCP or memory |
//! | [`detector`] | notices dead PEs, and agrees with the other PEs on them |
//! | [`executor`] | runs tasks on worker threads, and connects the other modules |
//!
//! Beside them: [`mod@array`] (values that need no encoding), [`plain`] (arrays within other
//! values), [`code`] (names the code of a task), [`addresses`] (where PEs can be called),
//! [`handshake`] (tells PEs of the job from strangers), [`forked`] (what becomes of a PE's copies),
//! [`settings`] (all that a user may set), and
//! [`error`] (why a task has no value).
//!
//! Programs use this crate through `ultramarine`, whose documentation has examples of everything
//! that it re-exports. What is below that, such as the protocol's messages, has none: its tests
//! show how it is used.

pub mod addresses;
mod allocator;
pub mod array;
pub mod build;
pub mod code;
pub mod detector;
pub mod error;
pub mod executor;
pub mod forked;
pub mod handshake;
mod large_blocks;
mod lock;
mod numbered;
mod os_memory;
pub mod plain;
pub mod protocol;
pub mod settings;
pub mod trace;
pub mod transport;
pub mod wire;

pub use allocator::Allocator;
