//! Who waits for the results of nodes.

use crate::dag::handles::NodeId;
use ultramarine_topology::Pe;

/// Who waits for a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    Node(NodeId),
    Pool(Pe),
    /// The program.
    Program,
}

/// A waiter in 8 bytes: a node, or a PE in the place of one of a block that does not exist.
#[derive(Clone, Copy)]
struct PackedWaiter(NodeId);

/// A graph has fewer blocks.
const NO_BLOCK: u32 = u32::MAX;
/// A job has fewer PEs.
const PROGRAM: NodeId = NodeId { block: NO_BLOCK, index: u32::MAX };

impl From<Waiter> for PackedWaiter {
    fn from(waiter: Waiter) -> Self {
        PackedWaiter(match waiter {
            Waiter::Node(node) => node,
            Waiter::Pool(pe) => NodeId { block: NO_BLOCK, index: pe.number() },
            Waiter::Program => PROGRAM,
        })
    }
}

impl From<PackedWaiter> for Waiter {
    fn from(PackedWaiter(place): PackedWaiter) -> Self {
        match place {
            PROGRAM => Waiter::Program,
            NodeId { block: NO_BLOCK, index } => Waiter::Pool(Pe::new(index)),
            node => Waiter::Node(node),
        }
    }
}

/// Lists of waiters, in one piece of memory, which grows with the number of those that wait at the
/// same time. A list is the place of its first entry.
#[derive(Default)]
pub(super) struct WaiterLists {
    /// Of those that wait, and where the next of its list is.
    entries: Vec<(PackedWaiter, u32)>,
    /// A list of the free entries.
    free: Option<u32>,
}

impl WaiterLists {
    /// The empty list.
    pub(super) const END: u32 = u32::MAX;

    /// Puts a waiter before a list. Returns the new list.
    pub(super) fn push(&mut self, list: u32, waiter: Waiter) -> u32 {
        if let Some(place) = self.free {
            let entry = &mut self.entries[place as usize];
            self.free = Some(entry.1).filter(|next| *next != Self::END);
            *entry = (waiter.into(), list);
            return place;
        }
        self.entries.push((waiter.into(), list));
        u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 wait at the same time")
    }

    /// Takes the first waiter of a list.
    pub(super) fn pop(&mut self, list: &mut u32) -> Option<Waiter> {
        let place = *list;
        let entry = self.entries.get_mut(place as usize)?;
        let waiter = entry.0.into();
        *list = std::mem::replace(&mut entry.1, self.free.unwrap_or(Self::END));
        self.free = Some(place);
        Some(waiter)
    }

    /// Takes all entries of this waiter out of a list. Returns the rest.
    pub(super) fn without(&mut self, mut list: u32, waiter: Waiter) -> u32 {
        let mut rest = Self::END;
        while let Some(one) = self.pop(&mut list) {
            if one != waiter {
                rest = self.push(rest, one);
            }
        }
        rest
    }

    /// The most that have waited at the same time.
    #[cfg(test)]
    pub(super) fn most(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self, mut list: u32) -> impl Iterator<Item = Waiter> + '_ {
        std::iter::from_fn(move || {
            let (waiter, next) = *self.entries.get(list as usize)?;
            list = next;
            Some(waiter.into())
        })
    }
}
