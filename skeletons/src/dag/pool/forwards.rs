//! Results that go to their readers unasked.
//!
//! Of a whole graph each pool knows which nodes are needed, who owns them, and who owns their
//! readers. So an owner begins unasked what others read, the first that was built first; and when
//! the result is there, it **forwards** it, once to each PE that owns a reader. These **await** it:
//!
//! ```text
//!   asked:     REQUEST ──> computed ── RESULT ──>
//!   awaited:               computed ── RESULT ──>
//! ```
//!
//! So no node waits until requests have gone through the whole graph: of a stencil of 10,000 steps
//! on two PEs the first node of the second is begun after 0.8 ms instead of 8.8, and the run takes
//! 9 % less time at nodes of 0.1 to 2 µs (medians of 5, MPICH on two cores).
//!
//! A pool asks where it cannot count on that:
//!
//! - for what no node of its own reads: the inputs of a node that was pushed here, and what its
//!   program wants;
//! - for all, from the first death on: other PEs own nodes then, and what the dead one has
//!   forwarded may be lost;
//! - for all, once the run is opened again: a pool may have been made anew, and lacks what was
//!   forwarded to the one before it. It does not know that. But each pool that was there before
//!   does, and tells those that await its results to ask.
//!
//! Where results are dropped (see `memory`) all is asked for. So an owner computes no sooner than
//! its readers want it, and no PE holds what it has no use for yet. Of a graph in blocks a PE does
//! not know the blocks of others: it asks, too.

use super::state::{NodePhase, NodeState};
use super::{BlockShape, Pool, PoolEffect, PoolMessage, Shape, Waiter};
use crate::dag::handles::NodeId;
use std::collections::{BTreeSet, VecDeque};
use ultramarine_topology::Pe;

/// Which results come to a PE unasked, and which it sends to others, as long as no PE is dead. The
/// nodes are those of the only block.
#[derive(Default, Debug)]
pub struct Forwards {
    /// Nodes of this PE that others read, with each of these PEs, in order.
    read: Vec<(u32, Pe)>,
    /// Nodes of others that this PE reads, in order.
    awaited: Vec<u32>,
}

/// That a node is read by another, and who owns them.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node that is read.
    pub input: u32,
    /// Its owner.
    pub owner: Pe,
    /// The owner of the node that reads it.
    pub reader: Pe,
}

impl Forwards {
    /// What this PE has to do with these edges, which are all that are needed.
    pub fn of(me: Pe, edges: impl Iterator<Item = Edge>) -> Self {
        let (mut read, mut awaited) = (Vec::new(), Vec::new());
        for Edge { input, owner, reader } in edges.filter(|edge| edge.owner != edge.reader) {
            if owner == me {
                read.push((input, reader));
            } else if reader == me {
                awaited.push(input);
            }
        }
        read.sort_unstable();
        read.dedup();
        awaited.sort_unstable();
        awaited.dedup();
        Forwards { read, awaited }
    }

    /// The other PEs that read a node.
    fn readers(&self, node: NodeId) -> impl Iterator<Item = Pe> + '_ {
        let begin = self.read.partition_point(|(index, _)| *index < node.index);
        let own = self.read[begin..].iter().take_while(move |(index, _)| *index == node.index);
        own.map(|(_, pe)| *pe)
    }

    /// The other PEs that read any node.
    fn all_readers(&self) -> BTreeSet<Pe> {
        self.read.iter().map(|(_, pe)| *pe).collect()
    }
}

/// Nodes that are begun unasked, as soon as no other can be: the first that was built first. The
/// lists end with the first.
#[derive(Default)]
pub(super) struct Unasked {
    /// Nodes without inputs, which can be computed at any time.
    pub(super) sources: VecDeque<NodeId>,
    others: Vec<NodeId>,
}

impl Unasked {
    pub(super) fn next(&mut self) -> Option<NodeId> {
        match (self.sources.back(), self.others.last()) {
            (Some(source), other) if other.is_none_or(|other| source < other) => {
                self.sources.pop_back()
            }
            _ => self.others.pop(),
        }
    }
}

impl<S: Shape> Pool<S> {
    /// Finds out what comes and goes unasked, if anything does.
    pub(super) fn plan_forwards(&mut self) {
        let block = self.block(0).filter(|_| self.memory.holds_all() && self.dead.is_empty());
        let forwards = block.and_then(|block| self.shape.forwards(self.me, block));
        self.asks = forwards.is_none();
        self.forwards = forwards.unwrap_or_default();
    }

    /// Begins the nodes of this PE that are wanted, and those that other PEs await.
    pub(super) fn begin_unasked(&mut self) {
        let wanted = self.wanted_here();
        let Some(block) = self.block(0).filter(|_| !self.asks).cloned() else {
            return wanted.into_iter().for_each(|node| self.enqueue(node));
        };
        let read = self.forwards.read.iter().map(|(index, _)| *index);
        let mut begun: Vec<u32> = read.chain(wanted.iter().map(|node| node.index)).collect();
        begun.sort_unstable();
        begun.dedup();
        for index in begun.into_iter().rev() {
            let node = NodeId { block: 0, index };
            self.slot(node).state.phase = NodePhase::Queued;
            match block.inputs(index).next() {
                None => self.unasked.sources.push_back(node),
                Some(_) => self.unasked.others.push(node),
            }
        }
    }

    /// Begins the nodes of this PE that are wanted.
    pub(super) fn begin_wanted(&mut self) {
        self.wanted_here().into_iter().for_each(|node| self.enqueue(node));
    }

    /// Those of the wanted nodes that this PE owns and has not begun. They are held until the run
    /// is over.
    fn wanted_here(&mut self) -> Vec<NodeId> {
        let (shape, mut here) = (self.shape.clone(), Vec::new());
        for node in shape.wanted() {
            if shape.owner(*node, &self.dead) == self.me && !self.lacks(*node) {
                let state = &mut self.slot(*node).state;
                if state.phase == NodePhase::Unknown {
                    (state.phase, state.uses) = (NodePhase::Queued, state.uses + 1);
                    self.note_needed(*node);
                    here.push(*node);
                }
            }
        }
        here
    }

    /// Whether a result comes unasked.
    pub(super) fn awaits(&self, node: NodeId) -> bool {
        !self.asks && self.forwards.awaited.binary_search(&node.index).is_ok()
    }

    /// A result is there: those that await it get it. (Of the node this was known before.)
    pub(super) fn forward(&mut self, node: NodeId, former: NodeState, result: &S::Result) {
        for pe in self.forwards.readers(node) {
            let comes_from_there = former.phase == NodePhase::Pushed && former.count == pe.number();
            let has_asked = || self.waiters.iter(former.waiters).any(|one| one == Waiter::Pool(pe));
            if !comes_from_there && !self.dead.contains(&pe) && !has_asked() {
                let message = PoolMessage::Result(node, result.clone());
                self.out.push_back(PoolEffect::Send(pe, message));
            }
        }
    }

    /// Asks for all from now on, and for what is awaited at once.
    pub(super) fn ask_for_all(&mut self) {
        if !std::mem::replace(&mut self.asks, true) {
            self.ask_again(|_| false);
        }
    }

    /// Tells the PEs that await results of this one to ask.
    pub(super) fn tell_to_ask(&mut self) {
        let readers = self.forwards.all_readers();
        let living = readers.into_iter().filter(|pe| !self.dead.contains(pe));
        self.out.extend(living.map(|pe| PoolEffect::Send(pe, PoolMessage::Ask)));
    }
}
