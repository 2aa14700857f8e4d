//! A graph as all PEs have it: how it is built, which nodes are wanted, and who owns them.

use super::assignment::{Assignment, Owners, ends, heir};
use super::block::Block;
use super::error::DagError;
use super::handles::NodeId;
use super::neighbours::neighbours;
use super::pool::{Edge, Forwards, Readers, Shape, Weighed};
use super::value::{Value, error_of, failed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::{Pe, Topology};

/// How a graph is to be computed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RunOptions {
    pub(super) extent: Extent,
    pub(super) assignment: Assignment,
    /// How many bytes of results a PE should hold at most.
    pub(super) memory: u64,
    /// Whether a result is dropped as soon as all known readers have it.
    pub(super) drops_used: bool,
    /// Whether each PE notes which nodes it has computed, for a picture.
    pub(super) is_drawn: bool,
    /// How long a PE waits until it says that it has computed more nodes, if it should.
    pub(super) report_after: Option<Duration>,
}

/// How a graph is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Extent {
    /// By each PE as a whole.
    Whole,
    /// In this number of blocks, each where it is needed.
    Blocks(u32),
    /// In blocks without end.
    Stream,
}

impl Extent {
    /// The block that returns what is wanted.
    pub(super) fn last_block(self) -> u32 {
        match self {
            Extent::Blocks(blocks) => blocks - 1,
            Extent::Whole | Extent::Stream => 0,
        }
    }
}

/// A block, and the nodes that its builder has returned.
pub(super) struct Built {
    pub(super) block: Block,
    pub(super) returned: Vec<NodeId>,
}

/// Builds a block of this number.
pub(super) type BlockMaker = Arc<dyn Fn(u32) -> Result<Built, DagError> + Send + Sync>;

/// Results that the program has from elsewhere, and the PE of that program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Supplied {
    pub(super) nodes: BTreeSet<NodeId>,
    pub(super) by: Pe,
}

/// See the [module](self).
pub(super) struct Graph {
    pub(super) options: RunOptions,
    /// The nodes whose results the program wants.
    wanted: Vec<NodeId>,
    owners: Owners,
    supplied: Supplied,
    /// Nodes that the program has placed.
    placed: BTreeSet<u32>,
    topology: Arc<Topology>,
    pub(super) make: BlockMaker,
}

impl Graph {
    /// A graph that is built by `make`. If all PEs build it as a whole, this is it.
    pub(super) fn new(
        cx: &Context,
        make: BlockMaker,
        options: RunOptions,
        (wanted, supplied): (Vec<NodeId>, Supplied),
        whole: Option<&Block>,
    ) -> Self {
        let topology = cx.topology().clone();
        let cores: Vec<u64> = (0..cx.pes()).map(|pe| topology.power(Pe::new(pe))).collect();
        let owners = match (whole, options.extent, options.assignment) {
            (Some(block), ..) => {
                Owners::of_nodes(options.assignment.owners(block, &wanted, &cores))
            }
            (None, Extent::Blocks(blocks), Assignment::Levels) => {
                Owners::Blocks { ends: ends(&cores), in_order: Some(blocks) }
            }
            (None, ..) => Owners::Blocks { ends: ends(&cores), in_order: None },
        };
        let placed = whole.into_iter().flat_map(Block::placed).map(|(index, _)| index).collect();
        Graph { options, wanted, owners, supplied, placed, topology, make }
    }

    /// Whether the memory of results matters.
    pub(super) fn is_limited(&self) -> bool {
        self.options.memory < u64::MAX
    }

    /// A result with the memory that it takes, if that matters, and the time that it took here.
    pub(super) fn weighed(&self, result: Value, cost_ns: u64) -> Weighed<Value> {
        let weighed = if self.is_limited() { weighed(result) } else { Weighed::light(result) };
        Weighed { cost_ns: cost_ns as f32, ..weighed }
    }

    /// The same, for a node that was computed here. A result that is larger than the limit is an
    /// error.
    pub(super) fn computed(
        &self,
        node: NodeId,
        name: &str,
        result: Weighed<Value>,
    ) -> Weighed<Value> {
        let (bytes, limit) = (result.bytes as u64, self.options.memory);
        if bytes <= limit {
            return result;
        }
        let error = DagError::TooLarge { node, name: name.to_owned(), bytes, limit };
        Weighed { result: failed(error), bytes: 0.0, ..result }
    }
}

/// A result with the memory that it takes, before it is known whether that matters.
pub(super) fn weighed(result: Value) -> Weighed<Value> {
    let bytes = if error_of(&result).is_some() { 0 } else { result.memory() };
    Weighed { bytes: bytes as f32, ..Weighed::light(result) }
}

impl Shape for Graph {
    type Block = Block;
    type Result = Value;

    fn wanted(&self) -> &[NodeId] {
        &self.wanted
    }

    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe {
        if self.supplied.nodes.contains(&node) && !dead.contains(&self.supplied.by) {
            return self.supplied.by;
        }
        heir(self.owners.owner(node), &self.topology, dead)
    }

    /// Readers of a whole graph are known. Wanted nodes have readers for ever, and so have those
    /// that a journal keeps.
    fn readers(&self, me: Pe, dead: &BTreeSet<Pe>, block: &Block) -> Readers {
        let RunOptions { extent, memory, drops_used, .. } = self.options;
        if extent != Extent::Whole || memory == u64::MAX && !drops_used {
            return Readers::default();
        }
        let none = BTreeSet::new();
        let supplied = if dead.contains(&self.supplied.by) { &none } else { &self.supplied.nodes };
        let is_needed = block.needed(&self.wanted, supplied);
        let mut readers = Readers::of(is_needed.len());
        for index in (0..block.len()).filter(|index| is_needed[*index as usize]) {
            let owner = self.owner(NodeId { block: 0, index }, dead);
            for input in block.inputs(index) {
                if owner == me {
                    readers.add_here(input.index);
                } else if self.owner(input, dead) == me {
                    readers.add_other(input.index, owner);
                }
            }
        }
        let held = self.wanted.iter().map(|node| &node.index).chain(block.kept());
        held.for_each(|index| readers.hold(*index));
        readers
    }

    /// The edges of a whole graph are known to all PEs. But if a journal has results, a part that
    /// was made before the program had them does not know which edges are still needed.
    fn forwards(&self, me: Pe, block: &Block) -> Option<Forwards> {
        let is_known = self.options.extent == Extent::Whole && self.supplied.nodes.is_empty();
        if !is_known || self.topology.pes() == 1 {
            return None;
        }
        let is_needed = block.needed(&self.wanted, &BTreeSet::new());
        let needed = (0..block.len()).filter(|index| is_needed[*index as usize]);
        let owner = |index| self.owners.owner(NodeId { block: 0, index });
        let edges = needed.flat_map(|index| {
            let (reader, inputs) = (owner(index), block.inputs(index).map(|input| input.index));
            inputs.map(move |input| Edge { input, owner: owner(input), reader })
        });
        Some(Forwards::of(me, edges))
    }

    fn drops_used(&self) -> bool {
        self.options.drops_used
    }

    fn may_move(&self, node: NodeId) -> bool {
        !self.placed.contains(&node.index)
    }

    fn neighbours(&self, me: Pe, dead: &BTreeSet<Pe>) -> Vec<Pe> {
        neighbours(me, &self.topology, dead)
    }

    fn is_failed(&self, result: &Value) -> bool {
        error_of(result).is_some()
    }

    fn no_such_node(&self, node: NodeId) -> Value {
        failed(DagError::NoSuchNode { node })
    }
}
