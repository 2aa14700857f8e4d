//! Frames between PEs.
//!
//! Two layers, neither of which knows what a frame means:
//!
//! - a [`Lane`] carries frames of at most [`Lane::frame_bytes_max`] bytes between the PEs of a job:
//!   [`memory`] (PEs as threads of one process), [`tcp`], and `mpi`;
//! - a [`Port`] stands above one lane and gives each pair of PEs a reliable first-in-first-out
//!   channel of messages of any length up to a limit: it cuts and joins messages, numbers,
//!   acknowledges, checks and resends frames.
//!
//! There are no threads here. The thread that makes progress calls [`Port::poll`]; a thread that
//! has nothing to do sleeps in the lane's [`Sleeper`].

pub(crate) mod connection_limit;
pub mod descriptors;
mod error;
pub(crate) mod frame_splitter;
mod handoff;
mod lane;
pub mod link;
pub(crate) mod listener;
pub mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
pub(crate) mod port_range;
pub mod tcp;
#[cfg(test)]
pub(crate) mod testing;

pub use descriptors::CONNECTIONS_MIN;
pub use error::LaneError;
pub use handoff::ArrayHandoff;
pub use lane::{Connections, Lane, Pump, Sleeper};
pub use link::{Port, PortSettings};
