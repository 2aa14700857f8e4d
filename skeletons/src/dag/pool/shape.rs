//! What a pool must know of a graph and its results.

use super::{Forwards, Readers};
use crate::dag::handles::NodeId;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// A graph, as far as it is the same on every PE.
pub trait Shape {
    /// A part of it that is built at once.
    type Block: BlockShape;
    /// What nodes come to.
    type Result: Clone;

    /// The nodes whose results the program wants.
    fn wanted(&self) -> &[NodeId];

    /// The owner of a node, once these PEs are dead. Some PE lives.
    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe;

    /// The readers of a block's results, once these PEs are dead. None are counted if results are
    /// held until the run is over.
    fn readers(&self, me: Pe, dead: &BTreeSet<Pe>, block: &Self::Block) -> Readers;

    /// Which results of a whole graph come to this PE unasked, and which it sends to others, as
    /// long as no PE is dead. `None`: all are asked for.
    fn forwards(&self, _: Pe, _: &Self::Block) -> Option<Forwards> {
        None
    }

    /// Whether results are dropped that all known readers have.
    fn drops_used(&self) -> bool;

    /// Whether a node may be computed elsewhere than at its owner.
    fn may_move(&self, node: NodeId) -> bool;

    /// The PEs that this one tells of its load, once these are dead.
    fn neighbours(&self, me: Pe, dead: &BTreeSet<Pe>) -> Vec<Pe>;

    /// Whether this is not a result, but says why there is none.
    fn is_failed(&self, result: &Self::Result) -> bool;

    /// What those get that ask for a node that its block does not have.
    fn no_such_node(&self, node: NodeId) -> Self::Result;
}

/// The nodes of a block.
pub trait BlockShape {
    /// The number of nodes.
    fn nodes(&self) -> u32;

    /// The inputs of a node, in order. A node may be there more than once.
    fn inputs(&self, index: u32) -> impl Iterator<Item = NodeId>;
}

/// A result, and what it takes. That is known to seven digits, which are enough to choose by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weighed<V> {
    /// The result.
    pub result: V,
    /// How many bytes of memory.
    pub bytes: f32,
    /// How long it took to compute it here, in nanoseconds.
    pub cost_ns: f32,
}

impl<V> Weighed<V> {
    /// A result that takes nothing.
    pub fn light(result: V) -> Self {
        Weighed { result, bytes: 0.0, cost_ns: 0.0 }
    }
}
