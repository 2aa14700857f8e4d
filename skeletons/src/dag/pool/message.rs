//! What goes into a pool from others, and what comes out of it.

use super::{Shape, Shortage};
use crate::dag::handles::NodeId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use ultramarine_topology::Pe;

/// What one pool sends to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PoolMessage<V> {
    /// The sender wants the result of a node.
    Request(NodeId),
    /// The result of a node that the receiver has asked for, or awaits.
    Result(NodeId, V),
    /// The sender wants the result of a node of its own. The receiver may push it on this often.
    Push(NodeId, u8),
    /// The number of nodes that wait at the sender.
    Load(u32),
    /// The receiver may lack what the sender has forwarded. It is to ask.
    Ask,
}

impl<V> PoolMessage<V> {
    /// The same message, with what this makes of the result in it.
    pub fn map<W>(self, map: impl FnOnce(V) -> W) -> PoolMessage<W> {
        match self {
            PoolMessage::Request(node) => PoolMessage::Request(node),
            PoolMessage::Result(node, result) => PoolMessage::Result(node, map(result)),
            PoolMessage::Push(node, pushes_left) => PoolMessage::Push(node, pushes_left),
            PoolMessage::Load(load) => PoolMessage::Load(load),
            PoolMessage::Ask => PoolMessage::Ask,
        }
    }
}

/// What a pool wants its owner to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolEffect<V> {
    /// Send this to the pool of another PE.
    Send(Pe, PoolMessage<V>),
    /// Build a block, and say that [it is there](super::Pool::built).
    Build(u32),
    /// Compute a node, whose inputs [are there](super::Pool::result), and say what
    /// [came out](super::Pool::computed).
    Compute(NodeId),
    /// The result of a node that was [wanted](super::Pool::want).
    Deliver(NodeId, V),
    /// Say that the memory is too small.
    Short(Shortage),
}

/// What is not needed. To drop it may take long, or fail: it is the user's.
pub struct Discarded<S: Shape> {
    pub(super) results: Vec<S::Result>,
    pub(super) blocks: Vec<Arc<S::Block>>,
}

impl<S: Shape> Discarded<S> {
    pub(in crate::dag) fn append(&mut self, mut other: Self) {
        self.results.append(&mut other.results);
        self.blocks.append(&mut other.blocks);
    }
}

impl<S: Shape> Default for Discarded<S> {
    fn default() -> Self {
        Discarded { results: Vec::new(), blocks: Vec::new() }
    }
}
