//! What a process learns from outside before it is part of a job: its flags, its environment
//! variables, the launcher that started it, the networks of its host.
//!
//! The library `ultramarine` and the command of that name both read these, and neither may know the
//! other: so they are here. This crate knows neither tasks nor MPI.
//!
//! | module | what |
//! |---|---|
//! | [`variables`] | the table of environment variables |
//! | [`flags`] | the flags of every program, each of which has a variable |
//! | [`faults`] | those of them that kill processes on purpose |
//! | [`topo`] | the flags of `ultramarine topo` |
//! | [`launcher`] | whether a launcher has started this process, and the variables of launchers |
//! | [`shared_memory`] | how much shared memory this host has, and MPI needs |
//! | [`interface`] | the network interfaces of this host, and the networks that hosts share |
//!
//! ```
//! use ultramarine_environment::flags::JobFlags;
//!
//! let variable = |name: &str| (name == "ULTRAMARINE_PES").then(|| "4".to_owned());
//! let flags = JobFlags::default().completed(variable).expect("a number");
//! assert_eq!(flags.pes, Some(4));
//! ```
#![forbid(unsafe_code)]

pub mod faults;
pub mod flags;
pub mod interface;
pub mod launcher;
pub mod shared_memory;
pub mod topo;
pub mod variables;
