//! Messages that are on their way to a peer apart from its stream: their arrays take a while.

use crate::array::Array;
use std::collections::VecDeque;

/// A message, and the array that is delivered with it.
pub(super) struct Queued {
    pub(super) message: Vec<u8>,
    pub(super) array: Option<Array>,
    /// No later message that is in order, too, may arrive before it.
    pub(super) in_order: bool,
}

impl Queued {
    fn bytes(&self) -> usize {
        self.message.len() + array_bytes(self.array.as_ref())
    }
}

/// Such messages, the oldest first.
#[derive(Default)]
pub(super) struct Queue {
    all: VecDeque<Queued>,
    /// The bytes of all together.
    bytes: usize,
    /// How many are in order.
    in_order: usize,
}

impl Queue {
    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.bytes();
        self.in_order += usize::from(queued.in_order);
        self.all.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let oldest = self.all.pop_front()?;
        self.bytes -= oldest.bytes();
        self.in_order -= usize::from(oldest.in_order);
        Some(oldest)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a message in order has to wait for any of these.
    pub(super) fn has_in_order(&self) -> bool {
        self.in_order > 0
    }

    /// Gives back memory for more than this many.
    pub(super) fn shrink_to(&mut self, kept: usize) {
        self.all.shrink_to(kept);
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.all.capacity()
    }
}

/// The number of bytes of an array, if there is one.
pub(super) fn array_bytes(array: Option<&Array>) -> usize {
    array.map_or(0, Array::size_bytes)
}
