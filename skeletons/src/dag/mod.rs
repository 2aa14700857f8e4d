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
//! | When is a node computed, and what do pools send to each other? | `pool`, `neighbours` |
//! | How is that carried out? | `part`, `messages`, `value` |
//! | How does a program ask for it? | `run`, `kept` (with a journal), `stream` (without end) |
//! | How does a run begin, how do others join it? | `host`, `invitation`, and [`ultramarine_group`] |
//! | How far is it? | `progress` |
//! | Which PE has computed which node? | `picture` |
//!
//! Source: T. C. Leliveld, *A Resiliency-First Approach to Distributed DAG Computations* (2017),
//! ch. 2 to 4.

mod assignment;
mod block;
mod builder;
mod error;
mod graph;
mod handles;
mod host;
mod invitation;
mod kept;
mod kind;
mod local;
mod messages;
mod neighbours;
mod part;
mod picture;
#[doc(hidden)]
pub mod pool;
mod progress;
mod run;
mod stream;
mod value;

pub use assignment::Assignment;
pub use builder::Builder;
pub use error::DagError;
pub use handles::{Inputs, Node, NodeId, Wanted};
pub use local::{evaluate, evaluate_blocks};
pub use picture::Picture;
pub use run::{Dag, dag};
pub use stream::DagStream;

/// The number of runs that this PE knows and that are not over: for tests that none is left behind.
#[doc(hidden)]
pub fn runs_known(cx: &ultramarine_runtime::executor::Context) -> usize {
    ultramarine_group::Groups::<part::RunPart>::on(cx).known()
}
