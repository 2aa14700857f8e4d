//! Taking from a queue that is mostly empty.

use crossbeam_queue::SegQueue;

/// Takes the oldest item. Looking first whether there is one needs no fence, as trying does.
#[inline]
pub(crate) fn pop<T>(queue: &SegQueue<T>) -> Option<T> {
    if queue.is_empty() { None } else { queue.pop() }
}
