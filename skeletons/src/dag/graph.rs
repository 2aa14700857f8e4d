//! A graph as all PEs have it: its nodes, which of them are wanted, and who owns them.

use super::assignment::{Assignment, heir};
use super::block::Block;
use super::error::DagError;
use super::handles::NodeId;
use super::kind::Value;
use super::pool::{Held, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// How a graph is to be computed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RunOptions {
    pub(super) assignment: Assignment,
    /// How many bytes of results a PE should hold at most.
    pub(super) memory: u64,
}

impl RunOptions {
    /// What tells them apart from others.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        [&[self.assignment as u8][..], &self.memory.to_le_bytes()].concat()
    }
}

/// The result of a node, or why there is none.
pub(super) type Outcome = Result<Value, Arc<DagError>>;

/// The result of a node, and how many bytes of memory it takes.
#[derive(Clone)]
pub(super) struct Weighed {
    pub(super) outcome: Outcome,
    bytes: u64,
}

impl Held for Weighed {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// See the [module](self).
pub(super) struct Graph {
    pub(super) block: Block,
    /// The nodes whose results the program wants.
    pub(super) wanted: Vec<NodeId>,
    /// The number of different ones among them.
    pub(super) different: usize,
    owners: Vec<Pe>,
    pes: u32,
    /// How many bytes of results a PE should hold at most.
    pub(super) memory: u64,
}

impl Graph {
    /// A graph, for a job whose PEs have these numbers of cores.
    pub(super) fn new(
        block: Block,
        wanted: Vec<NodeId>,
        options: RunOptions,
        cores: &[u64],
    ) -> Self {
        let owners = options.assignment.owners(&block, &wanted, cores);
        let different = wanted.iter().collect::<BTreeSet<_>>().len();
        let (pes, memory) = (cores.len() as u32, options.memory);
        Graph { block, wanted, different, owners, pes, memory }
    }

    /// A node's result with the memory that it takes, which matters if that is limited. One that is
    /// larger than the limit is an error.
    pub(super) fn weighed(&self, node: NodeId, outcome: Outcome) -> Weighed {
        let bytes = match &outcome {
            Ok(value) if self.memory < u64::MAX => (self.block.results(node.index).bytes)(value),
            _ => 0,
        };
        if bytes <= self.memory {
            return Weighed { outcome, bytes };
        }
        let name = self.block.name(node.index).to_owned();
        let error = DagError::TooLarge { node, name, bytes, limit: self.memory };
        Weighed { outcome: Err(Arc::new(error)), bytes: 0 }
    }
}

impl Shape for Graph {
    fn nodes_of(&self, _: u32) -> u32 {
        self.block.len()
    }

    fn wanted(&self) -> &[NodeId] {
        &self.wanted
    }

    fn inputs(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.block.inputs(node.index)
    }

    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe {
        heir(self.owners[node.index as usize], self.pes, |pe| dead.contains(&pe))
    }
}
