//! Searching trees that are generated on the way: enumeration, and branch and bound.
//!
//! A [`Tree`] says which children a node has; nobody holds more of it than the way to the node that
//! he has come to, so that it may be of any depth. A task visits nodes depth first. How it comes to
//! share its work is [`Splitting`]:
//!
//! ```text
//!   depth 2: a task for each          budget 1000: who has visited     steal-driven: when nothing
//!   node down to depth 2              1000 hands on the rest of        waits to be stolen, half of
//!                                     its highest level, 256 at most   what is left, 256 at most
//!          ●                                 ●                                ●
//!       ╱  │  ╲                           ╱  │  ╲                          ╱  │  ╲
//!      ○   ○   ○                         ●   ○   ○                        ●   ●   ○
//!     ╱╲  ╱╲  ╱╲                        ╱╲                               ╱╲   ┆
//!    ○ ○ ○ ○ ○ ○                       ● …                              ● ○  …
//!              ● the task's own way      ○ what becomes tasks of others
//! ```
//!
//! A search must never know which PE takes a task, nor what a node means.
//!
//! Depth-bounded splitting is simple and even for regular trees; budgets suit trees of which nobody
//! knows the shape; steal-driven splitting makes tasks only where they are taken (lazy splitting:
//! Tzannes, Caragea, Barua and Vishkin 2010; the three as skeletons: `YewPar`, Archibald et al.
//! 2020).

mod bound;
mod enumerate;
mod frontier;
mod task;

pub use bound::{Bounded, par_maximise};
pub use enumerate::par_enumerate;

use serde::{Deserialize, Serialize};
use ultramarine_runtime::executor::Portable;

/// A tree whose nodes are generated when the search comes to them. The value is what all nodes have
/// in common (a graph, a board's size); it is sent once to each PE that takes part. What each PE
/// makes of it for itself goes into a field that does not travel: `#[serde(skip)] table:
/// OnceLock<Table>`.
pub trait Tree: Portable + Sync {
    /// A node, with all that its children depend on.
    type Node: Portable;

    /// The children of a node, generated one by one.
    fn children(&self, node: Self::Node) -> impl Iterator<Item = Self::Node> + Send;
}

/// When a search makes tasks for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Splitting {
    /// A task for each node of this depth and above; the root's depth is 0.
    Depth(u32),
    /// A task that has visited this many nodes (at least one; those that are left out do not count)
    /// makes a task of each node that is left on its highest level, of 256 at most, and goes on
    /// with what stays: the level's rest has its turn when this many more have been visited.
    Budget(u64),
    /// Whenever no task waits on this PE, half of the nodes that are left become one, of 256 nodes
    /// at most.
    StealDriven,
}
