//! An endless graph, whose blocks come one after the other. A block uses nodes of its own, and what
//! the block before has returned.
//!
//! The PE whose program consumes the stream holds what the last block returned that it has
//! consumed: it is the **keeper**. So all before that can be forgotten, and a death costs the
//! blocks that are under way, however long the stream is: an heir asks the keeper for what its
//! dead owner had.

use super::state::{BlockState, NodePhase};
use super::{Pool, Shape};
use crate::dag::handles::NodeId;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// How far a stream has come.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    keeper: Pe,
    /// The first block that is not over.
    first: u32,
}

impl<S: Shape> Pool<S> {
    /// The blocks before this one are over: the keeper has what they returned.
    pub(in crate::dag) fn advance(&mut self, keeper: Pe, first: u32) {
        if self.stream.is_some_and(|stream| stream.first >= first) {
            return;
        }
        self.stream = Some(Stream { keeper, first });
        let over: Vec<u32> =
            self.blocks.range(..first.saturating_sub(1)).map(|(n, _)| *n).collect();
        over.into_iter().for_each(|block| self.forget(block));
        // What is computed once more for the one block that is left may need what is forgotten.
        let Some(number) = first.checked_sub(1) else { return };
        let known = self.blocks.get(&number).map(BlockState::known).unwrap_or_default();
        for (index, state) in known {
            let is_open = !matches!(state.phase, NodePhase::Unknown | NodePhase::Done);
            if is_open && state.phase != NodePhase::Running {
                self.ask_for(NodeId { block: number, index });
            }
        }
        self.go_on();
    }

    /// The first block that is not over, if this PE is the keeper.
    pub(in crate::dag) fn first_kept(&self) -> Option<u32> {
        self.stream.filter(|stream| stream.keeper == self.me).map(|stream| stream.first)
    }

    /// Whether the node is of a block that was forgotten. None that is not over needs it; one that
    /// asks for it has not heard that yet.
    pub(super) fn is_forgotten(&self, node: NodeId) -> bool {
        self.stream.is_some_and(|stream| node.block + 1 < stream.first)
    }

    /// Whether the node is of a block that is over.
    pub(super) fn is_over(&self, node: NodeId) -> bool {
        self.stream.is_some_and(|stream| node.block < stream.first)
    }

    /// Who has the result of a node of a block that is over, if its owner is dead, or is this PE,
    /// which has dropped it. The keeper itself asks no other.
    pub(super) fn keeper(&self, node: NodeId) -> Option<Pe> {
        let Stream { keeper, .. } = self.stream.filter(|stream| node.block < stream.first)?;
        let owner = self.shape.owner(node, &BTreeSet::new());
        let is_lost = owner == self.me || self.dead.contains(&owner);
        (is_lost || keeper == self.me).then_some(keeper)
    }
}
