//! The scheduler of Ultramarine: everything between a task that is spawned and its awaited result.
//!
//! Five rooms, each usable and testable without the next:
//!
//! | room | what |
//! |---|---|
//! | [`protocol`] | one PE as a state machine: messages in, messages out |
//! | [`wire`] | messages ↔ bytes |
//! | [`transport`] | frames between PEs, over MPI, TCP or memory |
//! | [`detector`] | who of the PEs is gone |
//! | [`executor`] | tasks on worker threads; glues the others together |
//!
//! Beside them [`mod@array`] holds what needs no encoding, [`plain`] what needs little, [`code`]
//! names the code of a task, [`addresses`] says where PEs can be called, [`handshake`] tells PEs
//! of the job from strangers, [`settings`] lists what a user may set, and [`error`] what can go
//! wrong with a task.

pub mod addresses;
pub mod array;
pub mod code;
pub mod detector;
pub mod error;
pub mod executor;
pub mod handshake;
mod numbered;
mod os_memory;
pub mod plain;
pub mod protocol;
pub mod settings;
pub mod transport;
pub mod wire;
