//! What a pool knows of the nodes of a block.

use super::Weighed;
use super::readers::Readers;
use super::waiters::WaiterLists;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a pool knows of a block. Only nodes that it deals with take more than four bytes.
pub(super) struct BlockState<B, V> {
    /// The block, once this PE has it.
    pub(super) shape: Option<Arc<B>>,
    places: Places,
    slots: Vec<Slot<V>>,
    /// What it cost to get the result of each slot the last time, in nanoseconds; 0 if it never was
    /// there. Empty if all results are held.
    costs_ns: Vec<f32>,
    /// Nodes that are to be begun once the block is there. If there are any, it is being built.
    pub(super) parked: Vec<u32>,
    pub(super) readers: Readers,
}

/// Where the slot of a node is.
enum Places {
    /// Of a block that is not here.
    Of(BTreeMap<u32, u32>),
    /// Of all nodes; [`NONE`] for those that have no slot.
    All(Vec<u32>),
}

const NONE: u32 = u32::MAX;

/// What a pool knows of a node, and its result, if that is there: 32 bytes.
pub(super) struct Slot<V> {
    pub(super) state: NodeState,
    pub(super) result: Option<V>,
}

/// What a pool knows of a node: 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct NodeState {
    pub(super) phase: NodePhase,
    /// How often the node may be pushed on.
    pub(super) pushes_left: u8,
    /// The number of times that nodes which are being computed here need the result.
    pub(super) uses: u32,
    /// The number of inputs that are missing, while the node waits; the PE that was asked, if one
    /// was; what the result takes, once it is there: the bits of [`Weighed::bytes`].
    pub(super) count: u32,
    /// Who waits for the result: a list in `waiters`.
    pub(super) waiters: u32,
}

impl NodeState {
    /// Whether the result is there, and no node here waits for it.
    pub(super) fn is_unused(self) -> bool {
        self.phase == NodePhase::Done && self.uses == 0
    }

    /// How many bytes of memory the result takes, if it is there.
    pub(super) fn bytes(self) -> u64 {
        if self.phase == NodePhase::Done { f32::from_bits(self.count) as u64 } else { 0 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodePhase {
    /// It has not been requested here.
    Unknown,
    /// It is in the queue.
    Queued,
    /// Inputs are missing.
    Waiting,
    /// All inputs are there.
    Ready,
    Running,
    /// The owner was asked for the result.
    Asked,
    /// The owner sends the result unasked.
    Awaited,
    /// The node was pushed to another PE.
    Pushed,
    Done,
}

/// How often a node is pushed on, at most.
pub(super) const PUSHES_MAX: u8 = 4;

impl<V> Slot<V> {
    fn unknown() -> Self {
        let state = NodeState {
            phase: NodePhase::Unknown,
            pushes_left: PUSHES_MAX,
            uses: 0,
            count: 0,
            waiters: WaiterLists::END,
        };
        Slot { state, result: None }
    }

    /// The result is there. Returns what was known before.
    pub(super) fn fill(&mut self, Weighed { result, bytes, .. }: Weighed<V>) -> NodeState {
        let former = self.state;
        self.state.phase = NodePhase::Done;
        (self.state.count, self.state.waiters) = (bytes.to_bits(), WaiterLists::END);
        self.result = Some(result);
        former
    }

    /// The result is there no more. Returns it, if it was.
    pub(super) fn empty(&mut self) -> Option<V> {
        self.state.phase = NodePhase::Unknown;
        self.state.count = 0;
        self.result.take()
    }
}

impl<B, V> BlockState<B, V> {
    /// A block that is not built here.
    pub(super) fn unbuilt() -> Self {
        let (shape, places) = (None, Places::Of(BTreeMap::new()));
        let (slots, costs_ns, parked, readers) = Default::default();
        BlockState { shape, places, slots, costs_ns, parked, readers }
    }

    /// The block is there, and has this number of nodes. What was known of others is forgotten.
    pub(super) fn build(&mut self, shape: Arc<B>, nodes: u32) {
        let mut all = vec![NONE; nodes as usize];
        if let Places::Of(places) = &self.places {
            for (index, place) in places.range(..nodes) {
                all[*index as usize] = *place;
            }
        }
        (self.shape, self.places) = (Some(shape), Places::All(all));
    }

    /// Whether nodes wait for the block to be built.
    pub(super) fn is_being_built(&self) -> bool {
        self.shape.is_none() && !self.parked.is_empty()
    }

    /// Whether the block is known to have no such node.
    pub(super) fn lacks(&self, index: u32) -> bool {
        matches!(&self.places, Places::All(places) if index as usize >= places.len())
    }

    /// What is known of a node, which [is there](Self::lacks).
    pub(super) fn slot(&mut self, index: u32) -> &mut Slot<V> {
        // A block has at most 2^31 nodes.
        let next = self.slots.len() as u32;
        let place = match &mut self.places {
            Places::All(places) => &mut places[index as usize],
            Places::Of(places) => places.entry(index).or_insert(NONE),
        };
        if *place == NONE {
            *place = next;
            self.slots.push(Slot::unknown());
        }
        &mut self.slots[*place as usize]
    }

    fn place(&self, index: u32) -> Option<usize> {
        let place = match &self.places {
            Places::All(places) => places.get(index as usize),
            Places::Of(places) => places.get(&index),
        };
        Some(*place? as usize)
    }

    fn find(&self, index: u32) -> Option<&Slot<V>> {
        self.slots.get(self.place(index)?)
    }

    /// Notes what it cost to get the result of a node that has a slot.
    pub(super) fn note_cost(&mut self, index: u32, cost_ns: f32) {
        self.costs_ns.resize(self.slots.len(), 0.0);
        let place = self.place(index);
        if let Some(known) = place.and_then(|place| self.costs_ns.get_mut(place)) {
            *known = cost_ns.max(1.0);
        }
    }

    /// Whether the result of a node was there before, or is.
    pub(super) fn was_there(&self, index: u32) -> bool {
        self.cost_ns(index) > 0.0
    }

    /// What it cost to get the result of a node the last time, in nanoseconds; 0 if it never was
    /// there.
    pub(super) fn cost_ns(&self, index: u32) -> f32 {
        let known = self.place(index).and_then(|place| self.costs_ns.get(place));
        known.copied().unwrap_or(0.0)
    }

    /// What is known of a node, if anything is.
    pub(super) fn state(&self, index: u32) -> Option<NodeState> {
        self.find(index).map(|slot| slot.state)
    }

    pub(super) fn result(&self, index: u32) -> Option<&V> {
        self.find(index)?.result.as_ref()
    }

    /// All nodes of which something is known, in order.
    pub(super) fn known(&self) -> Vec<(u32, NodeState)> {
        let known = |index| Some((index, self.state(index)?));
        match &self.places {
            Places::All(places) => (0..places.len() as u32).filter_map(known).collect(),
            Places::Of(places) => places.keys().copied().filter_map(known).collect(),
        }
    }

    /// Takes all results.
    pub(super) fn into_results(self) -> Vec<V> {
        self.slots.into_iter().filter_map(|slot| slot.result).collect()
    }
}
