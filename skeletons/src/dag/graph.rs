//! A graph as all PEs have it: its nodes, which of them are wanted, and who owns them.

use super::assignment::{Assignment, heir};
use super::block::Block;
use super::handles::NodeId;
use super::pool::Shape;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// See the [module](self).
pub(super) struct Graph {
    pub(super) block: Block,
    /// The nodes whose results the program wants.
    pub(super) wanted: Vec<NodeId>,
    owners: Vec<Pe>,
    pes: u32,
}

impl Graph {
    /// A graph, for a job whose PEs have these numbers of cores.
    pub(super) fn new(
        block: Block,
        wanted: Vec<NodeId>,
        assignment: Assignment,
        cores: &[u64],
    ) -> Self {
        let owners = assignment.owners(&block, &wanted, cores);
        Graph { block, wanted, owners, pes: cores.len() as u32 }
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
