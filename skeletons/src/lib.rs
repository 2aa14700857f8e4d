//! Parallel patterns, written against the runtime's public interface only.
//!
//! A skeleton takes a context first (which decides how safe its tasks are against failures), then
//! radii, then the function, then the data. The function must capture nothing; what it needs
//! travels in its argument.
//!
//! | skeleton | who runs what | source |
//! |---|---|---|
//! | **a function applied to each item** | | |
//! | [`map()`], [`map_with`], [`map_shared`], [`map_async`], [`map_async_with`] | says apart who does it, how much is a task, and what comes out; those below are maps of one kind | |
//! | [`par_map`] | a task for each waits at the caller; any PE steals it | SymGridPar2 fig. 10 |
//! | [`par_map_chunked`], [`par_map_sliced`] | a task for some that follow each other, or for every n-th | HdpH-RS A.9 |
//! | [`push_map`], [`push_map_chunked`], [`push_map_sliced`] | the same tasks, dealt out to all PEs in turn | HdpH-RS A.9 |
//! | [`fork_map`] | the threads of this PE | HdpH-RS A.9 |
//! | [`par_map_local`] | PEs within a radius steal them | SymGridPar2 fig. 5 |
//! | [`par_map_2level_scheme`] | a coordinator in each part of the ball gets its share at once, and PEs around it steal from it | SymGridPar2 fig. 5 |
//! | [`par_map_2level`] | the same; nobody steals from another part | SymGridPar2 fig. 5 |
//! | [`par_map_2level_relaxed`] | the same; who runs out of work steals from other parts too | SymGridPar2 fig. 5 |
//! | [`par_map_stream`] | as `par_map`, a few at a time; results come as they arise | |
//! | **a problem divided** | | |
//! | [`par_divide_and_conquer`] | parts wait at who divided; PEs within the part's radius steal them | SymGridPar2 fig. 9 |
//! | [`push_divide_and_conquer`] | parts are placed at once, within their radius | HdpH-RS A.9 |
//! | [`fork_divide_and_conquer`] | the threads of this PE | HdpH-RS A.9 |
//! | **results combined where they arise** | | |
//! | [`par_map_reduce_range_thresh`] | halves of a range wait to be stolen | HdpH-RS A.9 |
//! | [`push_map_reduce_range_thresh`] | halves of a range are placed on halves of the PEs | HdpH-RS A.9 |
//! | [`par_map_reduce`] | groups of items wait to be stolen | |
//! | **tasks that come and go** | | |
//! | [`TaskSet`] | those that the program says; each result is had as it comes | |
//! | [`select`], [`race`] | the first that ends counts, and the others are cancelled | |
//! | **a tree searched** | | |
//! | [`par_enumerate`] | every node; tasks are split off by depth, by budget, or when somebody is idle | `YewPar` |
//! | [`par_maximise`] | the best node; what cannot beat the best so far is left out, on all PEs | `YewPar` |
//!
//! ```
//! use ultramarine::prelude::*;
//!
//! /// How many numbers below `limit` are squares, counted by any PE that is free.
//! async fn squares(cx: &Context, limit: u64) -> Result<u64, TaskError> {
//!     let count = |range: std::ops::Range<u64>| range.filter(|n| n.isqrt().pow(2) == *n).count();
//!     let counts = par_map(&cx.supervised(), count, chunks(0..limit, 100)).await?;
//!     Ok(counts.into_iter().sum::<usize>() as u64)
//! }
//! ```
//!
//! Maps return the results in the order of the data, or the first error. With a
//! [supervised](ultramarine_runtime::executor::Context::supervised) context the same tasks
//! survive the death of processes.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod divide;
pub mod map;
mod parts;
mod reduce;
pub mod search;
mod set;
mod share;

pub use divide::{
    Algorithm, DivideAndConquer, fork_divide_and_conquer, par_divide_and_conquer,
    push_divide_and_conquer,
};

pub use map::{
    fork_map, map, map_async, map_async_with, map_shared, map_with, par_map, par_map_2level,
    par_map_2level_relaxed, par_map_2level_scheme, par_map_chunked, par_map_local, par_map_reduce,
    par_map_sliced, par_map_stream, push_map, push_map_chunked, push_map_sliced,
};
pub use parts::Parts;
pub use reduce::{par_map_reduce_range_thresh, push_map_reduce_range_thresh};
pub use search::{Bounded, Splitting, Tree, par_enumerate, par_maximise};
pub use set::{TaskSet, race, select};
pub use share::{chunks, shares};
