//! The modelled parts of a simulated job: its machine, its network, its figures.
#![forbid(unsafe_code)]

pub mod chart;
pub mod machine;
pub mod network;
pub mod published;
pub mod table;
