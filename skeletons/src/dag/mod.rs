//! Computations that form a graph: nodes whose functions take the results of other nodes.
//!
//! A graph is built by a function of a [`Builder`] and an argument. It must be pure: every PE calls
//! it, and gets the same graph. Nodes that are not needed are not computed.
//!
//! | question | file |
//! |---|---|
//! | How is a graph built? | `builder` |
//! | How is it stored? | `block`, `kind` |
//! | Which types do handles of nodes have? | `handles` |
//! | What should come out? | `local` |
//! | Which PE owns which node? | `assignment`, `graph` |
//! | When is a node computed, and what do pools send to each other? | `pool` |
//! | How is that carried out? | `computation` |
//! | How does a run begin, how do others join it, when is it over? | `run`, `runs` |
//!
//! Source: T. C. Leliveld, *A Resiliency-First Approach to Distributed DAG Computations* (2017),
//! ch. 2 to 4.

mod assignment;
mod block;
mod builder;
mod computation;
mod error;
mod graph;
mod handles;
mod kind;
mod local;
mod pool;
mod run;
mod runs;

pub use assignment::Assignment;
pub use builder::Builder;
pub use error::DagError;
pub use handles::{Inputs, Node, NodeId, Wanted};
pub use local::evaluate;
pub use run::{Dag, dag};

#[doc(hidden)]
pub use computation::runs_known;
