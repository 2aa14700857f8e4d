//! Pools tell their neighbours how much waits with them, and push nodes to those with less
//! (Leliveld, §3.4 and listing 3.9).
//!
//! A node that is pushed stays the pusher's to answer for: it asks the other for the result as it
//! would ask an owner, and hands it on. So if the other dies, the node is the pusher's again; and
//! no third PE need know of it. A node is pushed on a bounded number of times, so it comes to rest
//! (theorem 3).

use super::Pool;
use super::state::{NodePhase, NodeState};
use super::{PoolEffect, PoolMessage, Shape};
use crate::dag::handles::NodeId;
use std::collections::{BTreeMap, VecDeque};
use ultramarine_topology::Pe;

/// A neighbour gets a node if this number more wait here than there.
const IMBALANCE: u32 = 2;

/// Nodes that take less are not pushed: a message and the way of the result take about 10 µs.
const WORTH_NS: u64 = 20_000;

/// How many nodes are looked at for one that may be pushed.
const LOOKS: usize = 8;

/// What a pool knows of the load of its neighbours.
#[derive(Default)]
pub(super) struct Balance {
    neighbours: Vec<Pe>,
    /// The number of nodes that wait at each PE, as it has told, with what was pushed since.
    loads: BTreeMap<Pe, u32>,
    /// The number that the neighbours have been told.
    told: u32,
    /// About how long a node takes, in nanoseconds; 0 if none was computed yet.
    mean_ns: u64,
}

impl Balance {
    /// These are the neighbours. Those that have told nothing have nothing to do.
    pub(super) fn meet(&mut self, neighbours: Vec<Pe>) {
        let loads = neighbours.iter().map(|pe| (*pe, self.loads.get(pe).copied().unwrap_or(0)));
        self.loads = loads.collect();
        self.neighbours = neighbours;
    }

    /// About how long a node takes, in nanoseconds.
    pub(super) fn mean_ns(&self) -> u64 {
        self.mean_ns
    }

    pub(super) fn computed(&mut self, cost_ns: u64) {
        let former = if self.mean_ns == 0 { cost_ns } else { self.mean_ns };
        self.mean_ns = (former - former / 8 + cost_ns / 8).max(1);
    }

    /// A PE has told its load. It counts if it is a neighbour still: it may be dead.
    pub(super) fn note(&mut self, pe: Pe, load: u32) {
        self.loads.entry(pe).and_modify(|known| *known = load);
    }

    /// The load to tell, if the neighbours should know it.
    fn news(&mut self, load: u32) -> Option<u32> {
        let is_far = load.abs_diff(self.told) >= IMBALANCE.max(self.told / 4);
        let is_worth = self.mean_ns == 0 || self.mean_ns >= WORTH_NS;
        (is_far && is_worth && !self.neighbours.is_empty()).then(|| self.told = load)?;
        Some(load)
    }

    /// The neighbour that should have a node of those that wait here.
    fn receiver(&mut self, load: u32) -> Option<(Pe, &mut u32)> {
        if self.mean_ns < WORTH_NS || load <= IMBALANCE {
            return None;
        }
        let least = self.loads.iter_mut().min_by_key(|(_, load)| **load)?;
        (*least.1 + IMBALANCE < load).then_some((*least.0, least.1))
    }
}

impl<S: Shape> Pool<S> {
    /// Tells neighbours of the load, and pushes nodes to those that have less.
    pub(super) fn balance(&mut self) {
        // Some of those that were noted may have gone another way meanwhile.
        let all = self.queue.len() + self.unasked.sources.len() + self.ready.len();
        let mut load = all as u32;
        if let Some(load) = self.balance.news(load) {
            for pe in self.balance.neighbours.clone() {
                self.out.push_back(PoolEffect::Send(pe, PoolMessage::Load(load)));
            }
        }
        while self.balance.receiver(load).is_some()
            && let Some(node) = self.take_to_push()
            && let Some((pe, its)) = self.balance.receiver(load)
        {
            *its += 1;
            load -= 1;
            self.push(node, pe);
        }
    }

    /// Takes a node that may be pushed out of the queue, or of those without inputs that are begun
    /// unasked, or else out of those that are ready, whose inputs must travel.
    fn take_to_push(&mut self) -> Option<NodeId> {
        let may_push = |node: &NodeId| self.may_push(*node, NodePhase::Queued);
        let find = |list: &VecDeque<NodeId>| list.iter().take(LOOKS).position(may_push);
        if let Some(at) = find(&self.queue) {
            return self.queue.remove(at);
        }
        if let Some(at) = find(&self.unasked.sources) {
            return self.unasked.sources.remove(at);
        }
        let mut ready = self.ready.iter().rev().take(LOOKS).copied();
        let last = ready.find(|node| self.may_push(*node, NodePhase::Ready))?;
        self.ready.remove(&last);
        self.release_inputs(last, true, false);
        Some(last)
    }

    fn may_push(&self, node: NodeId, phase: NodePhase) -> bool {
        let may = |state: NodeState| state.phase == phase && state.pushes_left > 0;
        self.known(node).is_some_and(may)
            && self.shape.may_move(node)
            // Readers are counted by owners.
            && !self.memory.drops_used
    }

    pub(super) fn push(&mut self, node: NodeId, to: Pe) {
        let state = &mut self.slot(node).state;
        (state.phase, state.count) = (NodePhase::Pushed, to.number());
        let left = state.pushes_left.saturating_sub(1);
        self.out.push_back(PoolEffect::Send(to, PoolMessage::Push(node, left)));
    }

    /// Another pool has pushed a node here.
    pub(super) fn take_over(&mut self, node: NodeId, pushes_left: u8) {
        // The other counts it as this pool's load.
        self.balance.told += 1;
        let state = &mut self.slot(node).state;
        let is_elsewhere = matches!(
            state.phase,
            NodePhase::Unknown | NodePhase::Asked | NodePhase::Awaited | NodePhase::Pushed
        );
        if is_elsewhere {
            state.pushes_left = pushes_left;
            self.enqueue(node);
        }
    }
}
