//! The scheduler through its public interface, in jobs whose PEs are threads or small processes.
//!
//! Two tests are separate programs: `descriptors.rs` lowers a limit of its
//! process, and `memory.rs` counts what its process allocates.

mod adrift;
mod bad_messages;
mod detector;
mod tasks;
