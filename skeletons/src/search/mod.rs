//! Searches of trees that are generated on the way: enumeration, and branch and bound.
//!
//! A [`Tree`] is a function from a node to its children. A task visits nodes depth first and stores
//! only the path to its current node, so a tree may have any depth. [`Splitting`] says when a task
//! gives work to others:
//!
//! ```text
//!   depth 2: a task for each       budget 1000: after 1000 visits   steal-driven: when no task
//!   node down to depth 2           the rest of the highest level    waits to be stolen, half of
//!                                  becomes tasks, 256 at most       the rest, 256 nodes at most
//!          ●                                 ●                                ●
//!       ╱  │  ╲                           ╱  │  ╲                          ╱  │  ╲
//!      ○   ○   ○                         ●   ○   ○                        ●   ●   ○
//!     ╱╲  ╱╲  ╱╲                        ╱╲                               ╱╲   ┆
//!    ○ ○ ○ ○ ○ ○                       ● …                              ● ○  …
//!              ● visited by the task itself      ○ becomes a task for others
//! ```
//!
//! | question | module |
//! |---|---|
//! | What is done with a node of an enumeration? | `enumerate` |
//! | How does a better bound reach all PEs? | `bound` |
//! | How does the caller hear of it? | `better` |
//! | When does a task give work to others? | `task` |
//! | In which order does it visit nodes? | `walk` |
//! | Which nodes has a task still to visit? | `frontier` |
//! | How do all workers keep to one order? | `ordered` |
//! | Which parts of the tree are left, in order? | `pool` |
//! | How do results outlive the job? | `journal` |
//!
//! A search must never know which PE takes a task, nor what a node means.
//!
//! Depth-bounded splitting is simple, and fair for regular trees. Budgets suit trees of unknown
//! shape. Steal-driven splitting makes tasks only where thieves take them. (Lazy splitting:
//! Tzannes, Caragea, Barua and Vishkin 2010. The three as skeletons: `YewPar`, Archibald et al.
//! 2020.)

mod better;
mod bound;
mod enumerate;
mod frontier;
mod journal;
mod ordered;
mod pool;
mod task;
mod walk;

pub use better::Listener;
pub use bound::{Bounded, Maximise, maximise, par_maximise};
pub use enumerate::{Enumerate, enumerate, par_enumerate};
pub use frontier::Frontier;
pub use task::{Pruning, SearchType};

use serde::{Deserialize, Serialize};
use ultramarine_runtime::executor::Portable;

/// A tree whose nodes are generated when the search gets to them. A search visits no more than
/// [`children`](Self::children) yields: to prune, leave children out.
///
/// The value of this type is the data that all nodes share, such as a graph or the size of a board.
/// It is sent once to each PE that takes part. Data that each PE computes from it goes into a field
/// that is not sent: `#[serde(skip)] table: OnceLock<Table>`.
///
/// The example at [`par_enumerate`] implements it.
pub trait Tree: Portable + Sync {
    /// A node, with all data that its children depend on.
    type Node: Portable;

    /// Generates the children of a node one by one.
    fn children(&self, node: Self::Node) -> impl Iterator<Item = Self::Node> + Send;
}

/// When a task of a search splits off tasks for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Splitting {
    /// Each node of this depth or less is a task. The depth of the root is 0.
    Depth(u32),
    /// After this number of visits (at least 1; pruned nodes do not count) a task makes a task of
    /// each unvisited node of its highest level, 256 at most. It goes on with the rest, and does
    /// the same after this number of further visits.
    Budget(u64),
    /// Whenever no task waits to be stolen on this PE, half of the unvisited nodes become one task,
    /// 256 nodes at most.
    StealDriven,
    /// For [`maximise`]: the workers together take the nodes in the order of a depth-first search
    /// by one. Every 5 ms or so a task gives the unvisited nodes of its highest level back
    /// to the PE that began the search, 256 at most. A worker that has none left takes the first
    /// nodes there. What is given back waits in the memory of that PE: a level of more than some
    /// 10^7 nodes, each visited for microseconds, is for another splitting. Nodes must not contain
    /// handles, such as [`Shared`](ultramarine_runtime::executor::Shared). (An [`enumerate()`] is
    /// [`StealDriven`](Self::StealDriven) instead.)
    Ordered,
}

/// A search that has not started: made by [`enumerate()`] or [`maximise`]. `K` is the type of
/// search. [`run`](Self::run) starts it, and [`journal`](Self::journal) keeps its results in a
/// file.
#[must_use = "a search does nothing until it is run"]
#[derive(Debug)]
pub struct Search<T: Tree, K> {
    kind: K,
    splitting: Splitting,
    tree: T,
    root: T::Node,
    listener: Option<Listener<T::Node>>,
}
