//! Skeletons in whole jobs, whose PEs are threads: what they find, in how many tasks, and where
//! these run.

mod common;
mod depth;
mod divide;
mod maps;
mod search;
mod skeletons;
