//! Which results a pool drops: those that all known readers have, if the program says so; and
//! above a limit, those that no node here waits for.
//!
//! Above the limit those go first that all known readers have; then what is old, and cheap to get
//! again for its size: copies of what other PEs have, and what took little time to compute. The
//! measure of both is that of
//! GreedyDual-Size (Cao and Irani, *Cost-Aware WWW Proxy Caching Algorithms*, USITS 1997): a
//! result is worth its cost per byte, plus the worth of what was dropped last when it was used.
//!
//! A dropped result is as if it had never been there: if it is needed again, it is asked for or
//! computed again.

use super::state::{NodePhase, NodeState};
use super::{BlockShape, Pool, Shape};
use crate::dag::handles::NodeId;
use std::collections::{BTreeSet, HashMap};

/// What it costs to get a copy again: a message, and for each KiB the time of its way, in
/// nanoseconds.
const COPY_NS: u64 = 10_000;
const COPY_NS_PER_KIB: u64 = 200;

/// What the results of a pool take.
pub(super) struct Memory {
    /// Whether results are dropped that all known readers have.
    pub(super) drops_used: bool,
    /// How many bytes they should take at most.
    limit: u64,
    held: u64,
    /// Results that no node here waited for when they were noted.
    unused: Unused,
    /// What the one that was dropped last was worth.
    last_worth: u64,
}

impl Memory {
    pub(super) fn new(limit: u64, drops_used: bool) -> Self {
        Memory { drops_used, limit, held: 0, unused: Unused::default(), last_worth: 0 }
    }

    /// Whether nothing is ever dropped: then it need not be known who uses what.
    fn holds_all(&self) -> bool {
        self.limit == u64::MAX && !self.drops_used
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    /// The number of results that are noted as unused.
    #[cfg(test)]
    pub(super) fn noted(&self) -> usize {
        self.unused.by_worth.len()
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}

/// Results by what they are worth.
#[derive(Default)]
struct Unused {
    worth: HashMap<NodeId, u64>,
    by_worth: BTreeSet<(u64, NodeId)>,
}

impl Unused {
    fn note(&mut self, node: NodeId, worth: u64) {
        self.forget(node);
        self.worth.insert(node, worth);
        self.by_worth.insert((worth, node));
    }

    fn forget(&mut self, node: NodeId) {
        if let Some(worth) = self.worth.remove(&node) {
            self.by_worth.remove(&(worth, node));
        }
    }

    /// Takes the one that is least worth.
    fn pop(&mut self) -> Option<(u64, NodeId)> {
        let (worth, node) = self.by_worth.pop_first()?;
        self.worth.remove(&node);
        Some((worth, node))
    }
}

impl<S: Shape> Pool<S> {
    /// A node that is being computed here needs this result.
    pub(super) fn use_result(&mut self, node: NodeId) {
        if !self.memory.holds_all() && !self.lacks(node) {
            self.slot(node).state.uses += 1;
        }
    }

    /// A node needs its inputs no more: since it `is_computed`, or since another PE does that.
    pub(super) fn release_inputs(&mut self, node: NodeId, is_computed: bool) {
        if self.memory.holds_all() {
            return;
        }
        let Some(shape) = self.block(node.block).cloned() else { return };
        for input in shape.inputs(node.index) {
            if self.known(input).is_none() {
                continue;
            }
            let uses = &mut self.slot(input).state.uses;
            *uses = uses.saturating_sub(1);
            if is_computed {
                self.note_read(input);
            }
            self.note_unused(input);
        }
    }

    /// A PE has been sent a result. The owner has counted it as a reader.
    pub(super) fn note_sent(&mut self, node: NodeId) {
        if !self.memory.holds_all() && self.shape.owner(node, &self.dead) == self.me {
            self.note_read(node);
        }
    }

    /// A reader of a result has it now.
    fn note_read(&mut self, node: NodeId) {
        if self.memory.holds_all() {
            return;
        }
        let Some(block) = self.blocks.get_mut(&node.block) else { return };
        if let Some(readers) = block.readers.get_mut(node.index as usize) {
            *readers = readers.saturating_sub(1);
        }
    }

    /// Notes a result that no node here waits for.
    pub(super) fn note_unused(&mut self, node: NodeId) {
        if self.memory.holds_all() {
            return;
        }
        self.drop_read(node);
        if self.memory.limit == u64::MAX {
            return;
        }
        let Some(block) = self.blocks.get(&node.block) else { return };
        let Some(state) = block.state(node.index).filter(|state| state.is_unused()) else { return };
        let kib = state.bytes() / 1024 + 1;
        let cost = if state.is_copy { COPY_NS + COPY_NS_PER_KIB * kib } else { state.cost_ns() };
        let is_read = block.readers.get(node.index as usize) == Some(&0);
        let worth = if is_read { 0 } else { self.memory.last_worth + cost / kib };
        self.memory.unused.note(node, worth);
    }

    /// Drops a result that all known readers have.
    pub(super) fn drop_read(&mut self, node: NodeId) {
        let Some(block) = self.blocks.get(&node.block) else { return };
        if self.memory.drops_used
            && block.readers.get(node.index as usize) == Some(&0)
            && block.state(node.index).is_some_and(NodeState::is_unused)
        {
            self.drop_result(node);
        }
    }

    /// Drops unused results until the others fit into the memory.
    pub(super) fn drop_unused(&mut self) {
        while self.memory.held > self.memory.limit {
            let Some((worth, node)) = self.memory.unused.pop() else { return };
            // It may have been needed again, or dropped, since it was noted.
            if self.known(node).is_some_and(NodeState::is_unused) {
                self.memory.last_worth = worth.max(self.memory.last_worth);
                self.drop_result(node);
            }
        }
    }

    /// If it was read by all known readers, and is needed again after all, there are others. Since
    /// a PE has died, perhaps: its heir has readers that were not counted, and each of them would
    /// have it computed again. So it is not dropped as read a second time.
    fn drop_result(&mut self, node: NodeId) {
        let block = self.blocks.get_mut(&node.block);
        if let Some(readers @ 0) = block.and_then(|b| b.readers.get_mut(node.index as usize)) {
            *readers = u32::MAX;
        }
        let slot = self.slot(node);
        let (bytes, result) = (slot.state.bytes(), slot.empty());
        self.memory.held -= bytes;
        self.memory.unused.forget(node);
        self.discarded.results.extend(result);
    }

    /// Forgets a block with all its results.
    pub(super) fn forget(&mut self, block: u32) {
        let Some(mut state) = self.blocks.remove(&block) else { return };
        for (index, node) in state.known() {
            self.memory.held -= node.bytes();
            self.memory.unused.forget(NodeId { block, index });
            let NodeState { phase, mut waiters, .. } = node;
            while phase != NodePhase::Done && self.waiters.pop(&mut waiters).is_some() {}
        }
        self.discarded.blocks.extend(state.shape.take());
        self.discarded.results.extend(state.into_results());
    }
}
