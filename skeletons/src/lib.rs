//! Skeletons: parallel patterns, written against the runtime's public interface only.
//!
//! A skeleton turns a function and some data into tasks, and their results into one result. The
//! [context](ultramarine_runtime::executor::Context) comes first, then radii or sizes, then
//! functions and data. (What is built step by step gets the context last: a map, with [`map()`],
//! and, for a [journal], [`divide_and_conquer`], [`enumerate()`] and [`maximise`].)
//! Functions must capture nothing: their data travels in their arguments.
//!
//! ```
//! use ultramarine::prelude::*;
//!
//! /// Counts the squares below `limit`, on all PEs.
//! async fn squares(cx: &Context, limit: u64) -> Result<u64, TaskError> {
//!     let count = |range: std::ops::Range<u64>| range.filter(|n| n.isqrt().pow(2) == *n).count();
//!     let counts = par_map(&cx.supervised(), count, split_range(0..limit, 100)).await?;
//!     Ok(counts.into_iter().sum::<usize>() as u64)
//! }
//! ```
//!
//! With a [supervised](ultramarine_runtime::executor::Context::supervised) context the tasks
//! survive the death of processes. Without it, a task that dies with its PE is an error.
//!
//! A skeleton must never know anything of the runtime but its public interface: no messages, no
//! threads, no launchers.
//!
//! # Which skeleton?
//!
//! | skeleton | which PE runs what | source |
//! |---|---|---|
//! | **map: apply a function to each item** | | |
//! | [`map()`], [`map_with`], [`map_shared`], [`map_async`], [`map_async_with`] | all that follow, by [settings](map::Map); the names below are shorthands | |
//! | [`par_map`] | a task for each item waits at the caller; any PE steals it | SymGridPar2 fig. 10 |
//! | [`par_map_chunked`], [`par_map_sliced`] | the same, with a task for some consecutive items, or for every n-th | HdpH-RS A.9 |
//! | [`push_map`], [`push_map_chunked`], [`push_map_sliced`] | the same tasks, placed on all PEs in turn | HdpH-RS A.9 |
//! | [`fork_map`] | the threads of this PE only | HdpH-RS A.9 |
//! | [`par_map_local`] | PEs within a radius steal tasks | SymGridPar2 fig. 5 |
//! | [`par_map_2level_scheme`] | a coordinator in each part of the ball gets its share at once, and PEs around it steal from it | SymGridPar2 fig. 5 |
//! | [`par_map_2level`] | the same; no part steals from another | SymGridPar2 fig. 5 |
//! | [`par_map_2level_relaxed`] | the same; a part that runs out of work steals from the others | SymGridPar2 fig. 5 |
//! | [`par_map_stream`] | as `par_map`, a few tasks at a time; results come as tasks end | |
//! | **map and reduce: combine results where they arise** | | |
//! | [`par_map_reduce_range_thresh`] | halves of a range wait to be stolen | HdpH-RS A.9 |
//! | [`push_map_reduce_range_thresh`] | halves of a range are placed on halves of the PEs | HdpH-RS A.9 |
//! | [`par_map_reduce`] | chunks of items wait to be stolen | |
//! | **divide and conquer** | | |
//! | [`par_divide_and_conquer`] | parts wait where they arise; PEs within the part's radius steal them | SymGridPar2 fig. 9 |
//! | [`push_divide_and_conquer`] | parts are placed at once on random PEs within their radius | HdpH-RS A.9 |
//! | [`fork_divide_and_conquer`] | the threads of this PE only | HdpH-RS A.9 |
//! | **search a tree** | | |
//! | [`par_enumerate`] | visits every node; splits by depth, by budget, or when workers are idle | `YewPar` |
//! | [`par_maximise`] | finds the best node; prunes, on all PEs, what cannot beat the best so far | `YewPar` |
//! | **a graph of computations** | | |
//! | [`dag`](dag::dag) | each node on the PE that owns it, when its inputs are there | Leliveld ch. 2–4 |
//! | **supersteps** | | |
//! | [`bsp`](bsp::bsp) | each PE has some ranks, which compute, send each other messages, and meet | NEWT ch. 3–4 |
//! | **entries by key** | | |
//! | [`table`](table::table) | the owner of a key does what is asked of it; others have copies | planned in SymGridPar2 §5 |
//! | [`orbit`](orbit::orbit), [`reachable`](orbit::reachable) | the owner of a state goes on from it; level by level | Lübeck and Neunhöffer 2001 |
//! | **single tasks** | | |
//! | [`JoinSet`] | the program spawns tasks and takes each result when it comes | |
//! | [`select`], [`race`] | the first future that ends counts; the others are cancelled | |
//!
//! [`split_range`] and [`shares`] divide data. Maps return the results in the order of the items,
//! or the first error.
//!
//! # Which module answers which question?
//!
//! | question | module |
//! |---|---|
//! | How is a map built? Which PE runs which task of it? | [`map`](mod@map) |
//! | How is a problem divided, and when does a part become a task? | [`divide`] |
//! | How does a search split its tree? How does a better bound reach all PEs? | [`search`] |
//! | How is a graph built, and which PE computes which node of it? | [`dag`] |
//! | How does a program go in supersteps, and survive deaths? | [`bsp`] |
//! | How are entries spread over PEs, and how do they survive deaths? | [`table`](mod@table) |
//! | How are all states searched, each once? | [`orbit`](mod@orbit) |
//! | How do results outlive the job? | [`journal`] |
//! | How does map and reduce place halves? | `reduce` |
//! | How is data divided into parts and shares? | `share` |
//! | How are tasks spawned and awaited one by one? | `join_set` |
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod bsp;
pub mod dag;
pub mod divide;
mod join_set;
pub mod journal;
pub mod map;
pub mod orbit;
mod own_thread;
mod parts;
mod reduce;
mod result_future;
pub mod search;
mod share;
pub mod table;

pub use divide::{
    Algorithm, DivideAndConquer, divide_and_conquer, fork_divide_and_conquer,
    par_divide_and_conquer, push_divide_and_conquer,
};

pub use join_set::{JoinSet, race, select};
pub use journal::{JournalError, OtherBuilds};
pub use map::{
    fork_map, map, map_async, map_async_with, map_shared, map_with, par_map, par_map_2level,
    par_map_2level_relaxed, par_map_2level_scheme, par_map_chunked, par_map_local, par_map_reduce,
    par_map_sliced, par_map_stream, push_map, push_map_chunked, push_map_sliced,
};
pub use parts::Parts;
pub use reduce::{par_map_reduce_range_thresh, push_map_reduce_range_thresh};
pub use search::{
    Bounded, Frontier, Splitting, Tree, enumerate, maximise, par_enumerate, par_maximise,
};
pub use share::{shares, split_range};
