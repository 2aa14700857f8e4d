//! Which results a pool drops: those that all known readers have, if the program says so; and
//! above a limit, those that no node here waits for.
//!
//! Above the limit those go first that all known readers have; then what is cheap to get again for
//! its size. What counts is all that a result would cost if it were needed again: to compute it,
//! and what it is computed from, as far as that is dropped already. (Kirisame et al., *Dynamic
//! Tensor Rematerialization*, ICLR 2021.) Otherwise one result after the other is dropped of a long
//! chain, and the next that is needed costs all of it.
//!
//! That changes with each result that comes or goes. So a result is noted with what it is worth
//! when it is used last; of those that come first by that, a few are looked at again for each that
//! is dropped, with a few steps into the graph for each of them.
//!
//! Where readers are not known, because the graph is built in blocks, a result's age counts, too:
//! it is worth its cost, plus the worth of what was dropped last when it was used (GreedyDual-Size:
//! Cao and Irani, *Cost-Aware WWW Proxy Caching Algorithms*, USITS 1997).
//!
//! A dropped result is as if it had never been there: if it is needed again, it is asked for or
//! computed again.

use super::state::{NodePhase, NodeState};
use super::{BlockShape, Pool, PoolEffect, Shape};
use crate::dag::handles::NodeId;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use ultramarine_topology::Pe;

/// What it costs to get a copy again: a message, and for each KiB the time of its way, in
/// nanoseconds.
const COPY_NS: f32 = 10_000.0;
const COPY_NS_PER_KIB: f32 = 200.0;

/// How many results are looked at for one that is dropped, and of each, how many nodes that it
/// would be computed from, and how many of their inputs.
const CANDIDATES: usize = 16;
const ANCESTORS: usize = 32;
const INPUTS: usize = 128;

/// If of the nodes one in this number is computed again, it is told at once, and not at the end.
const AGAIN_ONE_IN: u64 = 3;

/// What the results of a pool take.
pub(super) struct Memory {
    /// Whether results are dropped that all known readers have.
    pub(super) drops_used: bool,
    /// How many bytes they should take at most.
    limit: u64,
    held: u64,
    /// Results that no node here waits for, unless nothing is dropped above a limit.
    unused: Unused,
    /// What the one that was dropped last was worth, where readers are not known.
    last_worth: u64,
    /// What those take that were dropped though known readers do not have them.
    missing: u64,
    shortage: Shortage,
    is_shortage_told: bool,
}

/// The limit is too small for the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage {
    pe: Pe,
    limit: u64,
    /// How much more would have been needed so far, in bytes; 0 if that is not known.
    pub(super) missing: u64,
    /// How many nodes this PE has computed.
    computed: u64,
    /// How many of these it had computed before.
    pub(super) again: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { pe, limit, missing, computed, again } = self;
        write!(f, "`memory` of {limit} bytes is too small for the graph on {pe}")?;
        if *missing > 0 {
            write!(f, ", by {missing} bytes or more")?;
        }
        write!(f, ": of {computed} nodes it has computed {again} again")
    }
}

impl Memory {
    pub(super) fn new(pe: Pe, limit: u64, drops_used: bool) -> Self {
        let shortage = Shortage { pe, limit, missing: 0, computed: 0, again: 0 };
        let (unused, is_shortage_told) = Default::default();
        let (held, last_worth, missing) = (0, 0, 0);
        Memory { drops_used, limit, held, unused, last_worth, missing, shortage, is_shortage_told }
    }

    /// Whether nothing is ever dropped: then it need not be known who uses what.
    pub(super) fn holds_all(&self) -> bool {
        !self.is_limited() && !self.drops_used
    }

    fn is_limited(&self) -> bool {
        self.limit < u64::MAX
    }

    /// Notes what is missing now.
    fn note_missing(&mut self) {
        let missing = self.missing + self.held.saturating_sub(self.limit);
        self.shortage.missing = self.shortage.missing.max(missing);
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

/// What a result was worth when that was looked at last.
#[derive(Clone, Copy)]
struct Worth {
    /// By its age.
    age: u64,
    all: u64,
}

/// Results by what they are worth.
#[derive(Default)]
struct Unused {
    worth: HashMap<NodeId, Worth>,
    by_worth: BTreeSet<(u64, NodeId)>,
}

impl Unused {
    fn note(&mut self, node: NodeId, worth: Worth) {
        self.forget(node);
        self.worth.insert(node, worth);
        self.by_worth.insert((worth.all, node));
    }

    fn forget(&mut self, node: NodeId) {
        if let Some(Worth { all, .. }) = self.worth.remove(&node) {
            self.by_worth.remove(&(all, node));
        }
    }

    /// The one that was least worth.
    fn first(&self) -> Option<(Worth, NodeId)> {
        let (_, node) = self.by_worth.first()?;
        Some((*self.worth.get(node)?, *node))
    }
}

/// What it costs to get a copy again, in nanoseconds.
pub(super) fn copy_ns(bytes: f32) -> f32 {
    COPY_NS + COPY_NS_PER_KIB * kib(bytes)
}

fn kib(bytes: f32) -> f32 {
    (bytes / 1024.0).floor() + 1.0
}

/// What a result of this size is worth that costs so much, in nanoseconds for each MiB.
fn worth_of(cost_ns: f32, bytes: u64) -> u64 {
    (cost_ns * 1024.0 / kib(bytes as f32)) as u64
}

impl<S: Shape> Pool<S> {
    /// A node that is being computed here needs this result.
    pub(super) fn use_result(&mut self, node: NodeId) {
        if !self.memory.holds_all() && !self.lacks(node) {
            self.slot(node).state.uses += 1;
            self.memory.unused.forget(node);
        }
    }

    /// A result is there. Returns whether it was there before.
    pub(super) fn hold(&mut self, node: NodeId, bytes: u64, cost_ns: f32) -> bool {
        self.memory.held += bytes;
        if self.memory.holds_all() {
            return false;
        }
        let block = self.state_of(node.block);
        let was_there = block.was_there(node.index);
        block.note_cost(node.index, cost_ns);
        if was_there && block.readers.await_it(node.index) {
            self.memory.missing = self.memory.missing.saturating_sub(bytes);
        }
        was_there
    }

    /// A node is to be computed or asked for. If its result was there and was dropped, its inputs
    /// have a reader more.
    pub(super) fn note_needed(&mut self, node: NodeId) {
        if self.memory.holds_all() || !self.is_reader(node) {
            return;
        }
        let Some(block) = self.blocks.get_mut(&node.block) else { return };
        if let Some(shape) = block.shape.clone().filter(|_| block.was_there(node.index)) {
            shape.inputs(node.index).for_each(|input| block.readers.add_here(input.index));
        }
    }

    /// Whether a node is among the readers of its inputs that count here. Other PEs count where
    /// they are sent a result.
    fn is_reader(&self, node: NodeId) -> bool {
        self.blocks.get(&node.block).is_some_and(|block| block.readers.are_counted())
            && self.shape.owner(node, &self.dead) == self.me
    }

    /// A node needs its inputs no more, if it `was_using` them. It has read them, if it `has_come`.
    pub(super) fn release_inputs(&mut self, node: NodeId, was_using: bool, has_come: bool) {
        if self.memory.holds_all() {
            return;
        }
        let is_read = has_come && self.is_reader(node);
        let Some(shape) = self.block(node.block).cloned() else { return };
        for input in shape.inputs(node.index) {
            if is_read && let Some(block) = self.blocks.get_mut(&input.block) {
                block.readers.note_read(input.index);
            }
            if self.known(input).is_some() {
                let uses = &mut self.slot(input).state.uses;
                *uses = uses.saturating_sub(u32::from(was_using));
                self.note_unused(input);
            }
        }
    }

    /// A PE has been sent a result.
    pub(super) fn note_sent(&mut self, node: NodeId, pe: Pe) {
        if let Some(block) = self.blocks.get_mut(&node.block) {
            block.readers.note_sent(node.index, pe);
        }
    }

    /// Counts the readers of a block's results, as far as they do not have them: when it is there,
    /// and again after a death, since others have become owners of nodes.
    pub(super) fn count_readers(&mut self, number: u32) {
        let Some(block) = self.blocks.get(&number) else { return };
        let Some(shape) = block.shape.clone() else { return };
        let mut readers = self.shape.readers(self.me, &self.dead, &shape);
        if !readers.are_counted() {
            return;
        }
        let known = block.known();
        let were_there = known.iter().filter(|(index, _)| block.was_there(*index));
        for (index, state) in were_there {
            let node = NodeId { block: number, index: *index };
            if self.memory.drops_used && state.phase != NodePhase::Done {
                readers.hold(*index);
            }
            let is_open = !matches!(state.phase, NodePhase::Unknown | NodePhase::Done);
            if !is_open && self.shape.owner(node, &self.dead) == self.me {
                shape.inputs(*index).for_each(|input| readers.note_read(input.index));
            }
        }
        self.state_of(number).readers = readers;
        for (index, _) in known {
            self.note_unused(NodeId { block: number, index });
        }
    }

    /// Notes a result that no node here waits for, unless it is dropped.
    pub(super) fn note_unused(&mut self, node: NodeId) {
        if self.memory.holds_all() {
            return;
        }
        let Some(block) = self.blocks.get(&node.block) else { return };
        if !block.state(node.index).is_some_and(NodeState::is_unused) {
            return;
        }
        if self.memory.drops_used && block.readers.have_all(node.index) {
            return self.drop_result(node);
        }
        if self.memory.is_limited() {
            let age = if block.readers.are_counted() { 0 } else { self.memory.last_worth };
            let all = age + self.worth(node);
            self.memory.unused.note(node, Worth { age, all });
        }
    }

    /// Drops unused results until the others fit into the memory.
    pub(super) fn drop_unused(&mut self) {
        while self.memory.held > self.memory.limit {
            let Some((worth, node)) = self.least_worth() else { break };
            self.memory.last_worth = worth.max(self.memory.last_worth);
            self.drop_result(node);
        }
        self.memory.note_missing();
    }

    /// One of the unused results that are least worth, and what that is.
    fn least_worth(&mut self) -> Option<(u64, NodeId)> {
        let mut least: Option<(u64, NodeId)> = None;
        for _ in 0..CANDIDATES {
            let Some((known, node)) = self.memory.unused.first() else { break };
            if least.is_some_and(|(worth, _)| worth <= known.all) {
                break;
            }
            let all = known.age + self.worth(node);
            self.memory.unused.note(node, Worth { all, ..known });
            least = Some(least.map_or((all, node), |least| least.min((all, node))));
        }
        least
    }

    /// What an unused result is worth now, but for its age.
    fn worth(&self, node: NodeId) -> u64 {
        let Some(block) = self.blocks.get(&node.block) else { return 0 };
        if block.readers.have_all(node.index) {
            return 0;
        }
        let bytes = block.state(node.index).map_or(0, NodeState::bytes);
        worth_of(self.cost_of_all(node), bytes)
    }

    /// What it would cost to get a result again, with all that it is computed from and that is not
    /// there. What is too far away to be looked at is taken to cost as much as what is near.
    fn cost_of_all(&self, node: NodeId) -> f32 {
        let (mut all, mut cost_ns) = (vec![node], 0.0);
        let (mut inputs_left, mut seen, mut far) = (INPUTS, 0, 0);
        while let Some(node) = all.get(seen).copied() {
            seen += 1;
            cost_ns += self.cost_of_one(node);
            if self.shape.owner(node, &self.dead) != self.me {
                continue;
            }
            let Some(shape) = self.block(node.block) else { continue };
            for input in shape.inputs(node.index).take(inputs_left) {
                inputs_left -= 1;
                if self.is_in(NodePhase::Done, input) || all.contains(&input) {
                    continue;
                }
                if all.len() < ANCESTORS {
                    all.push(input);
                } else {
                    far += 1;
                }
            }
        }
        cost_ns * (seen + far) as f32 / seen as f32
    }

    /// What it would cost to get a result again, if all that it is computed from is there.
    fn cost_of_one(&self, node: NodeId) -> f32 {
        let known = self.blocks.get(&node.block).map_or(0.0, |block| block.cost_ns(node.index));
        if known > 0.0 { known } else { self.balance.mean_ns() as f32 }
    }

    /// If it was read by all known readers, and is needed again after all, a PE has died: what it
    /// had is computed from it once more, perhaps for many. Each of them would have it computed
    /// again. So it is not dropped as read a second time.
    pub(super) fn drop_result(&mut self, node: NodeId) {
        let slot = self.slot(node);
        let (bytes, result) = (slot.state.bytes(), slot.empty());
        let drops_used = self.memory.drops_used;
        let readers = &mut self.state_of(node.block).readers;
        let is_awaited = readers.await_it(node.index);
        if drops_used && readers.have_all(node.index) {
            readers.hold(node.index);
        }
        self.memory.held -= bytes;
        self.memory.missing += if is_awaited { bytes } else { 0 };
        self.memory.unused.forget(node);
        self.discarded.results.extend(result);
    }

    /// A node was computed here, perhaps again. If that is too often, it is told.
    pub(super) fn note_computed(&mut self, is_again: bool) {
        let shortage = &mut self.memory.shortage;
        shortage.computed += 1;
        shortage.again += u64::from(is_again);
        if is_again && shortage.again * AGAIN_ONE_IN >= shortage.computed {
            let shortage = self.take_shortage().map(PoolEffect::Short);
            self.out.extend(shortage);
        }
    }

    /// That the memory is too small, if it is and was not told yet.
    pub(in crate::dag) fn take_shortage(&mut self) -> Option<Shortage> {
        let Memory { shortage, is_shortage_told, drops_used, .. } = &mut self.memory;
        // After a death more is computed again, too, if what was used is dropped.
        let is_short = shortage.again > 0 && (shortage.missing > 0 || !*drops_used);
        let is_new = is_short && shortage.limit < u64::MAX && !*is_shortage_told;
        *is_shortage_told |= is_new;
        is_new.then_some(*shortage)
    }

    /// Forgets a block with all its results.
    pub(super) fn forget(&mut self, block: u32) {
        let Some(mut state) = self.blocks.remove(&block) else { return };
        for (index, node) in state.known() {
            self.memory.held -= node.bytes();
            self.memory.unused.forget(NodeId { block, index });
            let mut waiters = node.waiters;
            while self.waiters.pop(&mut waiters).is_some() {}
        }
        self.discarded.blocks.extend(state.shape.take());
        self.discarded.results.extend(state.into_results());
    }
}
