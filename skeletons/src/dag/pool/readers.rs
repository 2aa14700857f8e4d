//! How many readers a result still has.

use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// The readers of the results of a block, as far as this PE knows them and they do not have the
/// results yet: nodes that are computed here, once for each input, and other PEs.
#[derive(Default)]
pub struct Readers {
    /// The number of readers of each result; empty if they are not counted.
    left: Vec<u32>,
    /// The other PEs among them, with the result that they read.
    others: BTreeSet<(u32, Pe)>,
}

/// A result that is held for ever has this number.
const FOR_EVER: u32 = u32::MAX;

impl Readers {
    /// Of this number of nodes.
    pub(in crate::dag) fn of(nodes: usize) -> Self {
        Readers { left: vec![0; nodes], others: BTreeSet::new() }
    }

    /// A node that is computed here reads this result.
    pub(in crate::dag) fn add_here(&mut self, index: u32) {
        if let Some(left) = self.left.get_mut(index as usize) {
            *left = left.saturating_add(1);
        }
    }

    /// A node that another PE computes reads this result, which belongs to this PE.
    pub(in crate::dag) fn add_other(&mut self, index: u32, pe: Pe) {
        if self.others.insert((index, pe)) {
            self.add_here(index);
        }
    }

    /// The result is to be held for ever.
    pub(in crate::dag) fn hold(&mut self, index: u32) {
        if let Some(left) = self.left.get_mut(index as usize) {
            *left = FOR_EVER;
        }
    }

    pub(super) fn are_counted(&self) -> bool {
        !self.left.is_empty()
    }

    /// A node that is computed here has read this result.
    pub(super) fn note_read(&mut self, index: u32) {
        if let Some(left) = self.left.get_mut(index as usize).filter(|left| **left < FOR_EVER) {
            *left = left.saturating_sub(1);
        }
    }

    /// Another PE has this result.
    pub(super) fn note_sent(&mut self, index: u32, pe: Pe) {
        if self.others.remove(&(index, pe)) {
            self.note_read(index);
        }
    }

    /// Whether all known readers have the result.
    pub(super) fn have_all(&self, index: u32) -> bool {
        self.left.get(index as usize) == Some(&0)
    }

    /// Whether a known reader does not have the result, which need not be held for ever.
    pub(super) fn await_it(&self, index: u32) -> bool {
        self.left.get(index as usize).is_some_and(|left| (1..FOR_EVER).contains(left))
    }
}
