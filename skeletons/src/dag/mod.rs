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
//! | How does a run begin, how do others join it, when is it over? | `host`, `pe`, `runs` |
//! | How far is it? | `progress` |
//! | Which PE has computed which node, and when? | `trace` |
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
mod kept;
mod kind;
mod local;
mod messages;
mod neighbours;
mod part;
mod pe;
mod pool;
mod progress;
mod run;
mod runs;
mod stream;
mod trace;
mod value;

pub use assignment::Assignment;
pub use builder::Builder;
pub use error::DagError;
pub use handles::{Inputs, Node, NodeId, Wanted};
pub use local::{evaluate, evaluate_blocks};
pub use run::{Dag, dag};
pub use stream::DagStream;
pub use trace::{PictureError, Span, Trace};

#[doc(hidden)]
pub use pe::runs_known;
