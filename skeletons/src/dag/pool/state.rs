//! What a pool knows of the nodes of a block.

use super::waiters::WaiterLists;
use std::collections::HashMap;
use std::sync::Arc;

/// What a pool knows of a block.
pub(super) struct BlockState<B, V> {
    /// The block, once this PE has it.
    pub(super) shape: Option<Arc<B>>,
    slots: Slots<V>,
    /// Nodes that are to be begun once the block is there. If there are any, it is being built.
    pub(super) parked: Vec<u32>,
    /// How many readers of each result are known that do not have it yet; empty if that is not
    /// counted.
    pub(super) readers: Vec<u32>,
}

enum Slots<V> {
    /// Of a block that others own, a PE knows the nodes that it has asked for.
    Some(HashMap<u32, Slot<V>>),
    All(Vec<Slot<V>>),
}

/// What a pool knows of a node, and its result, if that is there.
pub(super) struct Slot<V> {
    pub(super) state: NodeState,
    pub(super) result: Option<V>,
}

/// What a pool knows of a node: 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct NodeState {
    pub(super) phase: NodePhase,
    /// Whether the result is a copy of another PE's.
    pub(super) is_copy: bool,
    /// Whether the PE that was asked is one to which the node was pushed, and not its owner.
    pub(super) is_pushed: bool,
    /// How often the node may be pushed on.
    pub(super) pushes_left: u8,
    /// The number of times that nodes which are being computed here need the result.
    pub(super) uses: u32,
    /// The number of inputs that are missing, while the node waits; the PE that was asked, if one
    /// was.
    pub(super) count: u32,
    /// Who waits for the result: a list in `waiters`.
    pub(super) waiters: u32,
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
    /// Another PE was asked for the result.
    Asked,
    Done,
}

/// How often a node is pushed on, at most.
pub(super) const PUSHES_MAX: u8 = 4;

impl<V> Slot<V> {
    fn unknown() -> Self {
        let state = NodeState {
            phase: NodePhase::Unknown,
            is_copy: false,
            is_pushed: false,
            pushes_left: PUSHES_MAX,
            uses: 0,
            count: 0,
            waiters: WaiterLists::END,
        };
        Slot { state, result: None }
    }
}

impl<B, V> BlockState<B, V> {
    /// A block that is not built here.
    pub(super) fn unbuilt() -> Self {
        let slots = Slots::Some(HashMap::new());
        BlockState { shape: None, slots, parked: Vec::new(), readers: Vec::new() }
    }

    /// The block is there, and has this number of nodes. What was known of others is forgotten.
    pub(super) fn build(&mut self, shape: Arc<B>, nodes: u32, readers: Vec<u32>) {
        let mut slots: Vec<Slot<V>> = (0..nodes).map(|_| Slot::unknown()).collect();
        if let Slots::Some(known) = &mut self.slots {
            for (index, slot) in known.drain() {
                if let Some(place) = slots.get_mut(index as usize) {
                    *place = slot;
                }
            }
        }
        (self.shape, self.slots, self.readers) = (Some(shape), Slots::All(slots), readers);
    }

    /// Whether the block is known to have no such node.
    pub(super) fn lacks(&self, index: u32) -> bool {
        matches!(&self.slots, Slots::All(slots) if index as usize >= slots.len())
    }

    pub(super) fn slot(&mut self, index: u32) -> &mut Slot<V> {
        match &mut self.slots {
            Slots::All(slots) => &mut slots[index as usize],
            Slots::Some(slots) => slots.entry(index).or_insert_with(Slot::unknown),
        }
    }

    /// What is known of a node.
    pub(super) fn state(&self, index: u32) -> Option<NodeState> {
        match &self.slots {
            Slots::All(slots) => slots.get(index as usize).map(|slot| slot.state),
            Slots::Some(slots) => slots.get(&index).map(|slot| slot.state),
        }
    }

    pub(super) fn result(&self, index: u32) -> Option<&V> {
        match &self.slots {
            Slots::All(slots) => slots.get(index as usize)?.result.as_ref(),
            Slots::Some(slots) => slots.get(&index)?.result.as_ref(),
        }
    }

    /// All nodes of which something is known, in order.
    pub(super) fn known(&self) -> Vec<(u32, NodeState)> {
        match &self.slots {
            Slots::All(slots) => {
                (0..).zip(slots).map(|(index, slot)| (index, slot.state)).collect()
            }
            Slots::Some(slots) => {
                let mut known: Vec<_> =
                    slots.iter().map(|(index, slot)| (*index, slot.state)).collect();
                known.sort_unstable_by_key(|(index, _)| *index);
                known
            }
        }
    }

    /// Takes all results.
    pub(super) fn into_results(self) -> Vec<V> {
        match self.slots {
            Slots::All(slots) => slots.into_iter().filter_map(|slot| slot.result).collect(),
            Slots::Some(slots) => slots.into_values().filter_map(|slot| slot.result).collect(),
        }
    }
}
