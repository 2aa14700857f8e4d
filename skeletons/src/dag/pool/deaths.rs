//! What a pool asks of others once more: after a death, and when its run is opened again.

use super::state::{NodePhase, NodeState};
use super::{Pool, PoolEffect, Shape};
use crate::dag::handles::NodeId;
use ultramarine_topology::Pe;

impl<S: Shape> Pool<S> {
    /// A PE is dead: what was asked of it is asked of its heir.
    pub fn died(&mut self, pe: Pe) {
        if !self.dead.insert(pe) {
            return;
        }
        self.balance.meet(self.shape.neighbours(self.me, &self.dead));
        let blocks: Vec<u32> = self.blocks.keys().copied().collect();
        blocks.into_iter().for_each(|number| self.count_readers(number));
        self.asks = true;
        self.ask_again(|asked| asked == pe);
        self.begin_wanted();
        self.go_on();
    }

    /// The run is opened again. What this pool has asked of others may be lost, and so may news of
    /// blocks that could not be built: it asks again. What has failed may go well this time.
    pub fn renew(&mut self) {
        self.forget_failed();
        self.begin_wanted();
        self.tell_to_ask();
        self.asks = true;
        self.ask_again(|_| true);
        let unbuilt = self.blocks.iter().filter(|(_, block)| block.is_being_built());
        self.out.extend(unbuilt.map(|(number, _)| PoolEffect::Build(*number)));
        self.go_on();
    }

    /// Drops the results of nodes that have failed, or whose inputs have. A node that has been
    /// promised one of them is [skipped](Self::skipped) when it is to be computed.
    fn forget_failed(&mut self) {
        let mut failed = Vec::new();
        for (number, block) in &self.blocks {
            let has_failed = |index| block.result(index).is_some_and(|r| self.shape.is_failed(r));
            let known = block.known().into_iter().map(|(index, _)| index);
            let known = known.filter(|index| has_failed(*index));
            failed.extend(known.map(|index| NodeId { block: *number, index }));
        }
        failed.into_iter().for_each(|node| self.drop_result(node));
    }

    /// Asks again for what was asked of these PEs, and for what is awaited.
    pub(super) fn ask_again(&mut self, of: impl Fn(Pe) -> bool) {
        let mut asked = Vec::new();
        for (block, state) in &self.blocks {
            let is_asked = |state: &NodeState| {
                let is_asked = matches!(state.phase, NodePhase::Asked | NodePhase::Pushed)
                    && of(Pe::new(state.count));
                is_asked || state.phase == NodePhase::Awaited
            };
            let nodes = state.known().into_iter().filter(|(_, state)| is_asked(state));
            asked.extend(nodes.map(|(index, _)| NodeId { block: *block, index }));
        }
        for node in asked {
            let NodeState { phase, count, .. } = self.slot(node).state;
            match (phase, Pe::new(count)) {
                (NodePhase::Pushed, to) if !self.dead.contains(&to) => self.push(node, to),
                // It is this pool's again, and not its owner's: that one may wait for this pool.
                (NodePhase::Pushed, _) if !self.is_over(node) => self.enqueue(node),
                _ => self.ask_for(node),
            }
        }
    }
}
