//! The scheduler: protocol, wire, transport, executor.
pub mod transport;
