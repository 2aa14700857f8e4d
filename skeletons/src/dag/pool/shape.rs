//! What a pool must know of a graph and its results.

use crate::dag::handles::NodeId;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// A graph, as far as it is the same on every PE.
pub(in crate::dag) trait Shape {
    type Block: BlockShape;
    type Result: Held;

    /// The nodes whose results the program wants.
    fn wanted(&self) -> &[NodeId];

    /// The owner of a node, once these PEs are dead. Some PE lives.
    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe;

    /// Whether all results are held until the run is over.
    fn holds_all(&self) -> bool;

    /// Whether a node may be computed elsewhere than at its owner.
    fn may_move(&self, node: NodeId) -> bool;

    /// The PEs that this one tells of its load, once these are dead.
    fn neighbours(&self, me: Pe, dead: &BTreeSet<Pe>) -> Vec<Pe>;

    /// What those get that ask for a node that its block does not have.
    fn no_such_node(&self, node: NodeId) -> Self::Result;
}

/// The nodes of a block.
pub(in crate::dag) trait BlockShape {
    /// The number of nodes.
    fn nodes(&self) -> u32;

    /// The inputs of a node, in order. A node may be there more than once.
    fn inputs(&self, index: u32) -> impl Iterator<Item = NodeId>;
}

/// A result, as far as a pool knows it.
pub(in crate::dag) trait Held: Clone {
    /// How many bytes of memory it takes.
    fn bytes(&self) -> u64;

    /// How long it took to compute it here, in nanoseconds.
    fn cost_ns(&self) -> u64;
}
