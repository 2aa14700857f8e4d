//! Shared memory, as queues see it.

use crate::sync::AtomicU64;

/// Shared memory as one process sees it. References in it are offsets in bytes.
pub trait Memory {
    /// The `count` words of 64 bits from `offset`, or `None` unless all of them lie in this memory
    /// and `offset` is aligned. Neither number can be trusted: both may come from a damaged object.
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]>;
}
