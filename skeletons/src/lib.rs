//! Parallel patterns, written against the runtime's public interface only.
//!
//! A skeleton takes a spawner first (which decides how safe its tasks are against failures), then
//! radii, then the function, then the data. The function must capture nothing; what it needs
//! travels in its argument.
//!
//! | skeleton | who runs what | SymGridPar2 |
//! |---|---|---|
//! | [`par_map`] | tasks wait at the caller; any PE steals them | fig. 10, "plain work stealing" |
//! | [`push_map`] | tasks are dealt out to all PEs in turn | fig. 10, "round-robin" |
//! | [`par_map_local`] | tasks wait at the caller; PEs within a radius steal them | fig. 5 |
//! | [`par_map_2level_scheme`] | one coordinator in each part of the ball gets its share at once, and PEs around it steal from it | fig. 5 |
//! | [`par_map_2level`] | the same; nobody steals from another part | fig. 5 |
//! | [`par_map_2level_relaxed`] | the same; who runs out of work steals from other parts too | fig. 5 |
//!
//! All return the results in the order of the data, or the first error.
#![forbid(unsafe_code)]

mod map;
mod share;

pub use map::{
    par_map, par_map_2level, par_map_2level_relaxed, par_map_2level_scheme, par_map_local, push_map,
};
pub use share::{chunks, shares};
