//! The modelled parts of a simulated job: its machine, its network, its figures.
#![forbid(unsafe_code)]

pub mod machine;
pub mod network;
