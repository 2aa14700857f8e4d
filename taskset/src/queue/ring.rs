//! The ring of a queue: entries, as many as a power of two, somewhere in shared memory.

use crate::memory::Memory;
use crate::sync::AtomicU64;

/// Alignment of a ring in bytes. The bits of its offset below this hold its length.
pub const RING_ALIGN: u64 = 64;

/// Longest ring: 2^40 entries, whose bytes can be counted on any machine.
const LENGTH_LOG2_MAX: u64 = 40;

/// The numbers name no ring that the queue can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no ring of {length} entries at offset {offset}: it must lie within the memory, aligned to \
     {RING_ALIGN} bytes, its length a power of two, and hold what the queue holds"
)]
pub struct BadRing {
    /// In bytes.
    pub offset: u64,
    /// In entries.
    pub length: u64,
}

/// A ring in this process's memory. Its length is a power of two.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    entries: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// What the queue stores of a ring, one word: its offset, and the logarithm of its length in
    /// the bits that the offset leaves. A thief needs no header of the ring, which would be a cache
    /// miss.
    pub(super) fn word(offset: u64, length: u64) -> u64 {
        offset | u64::from(length.trailing_zeros())
    }

    pub(super) fn new(memory: &'a impl Memory, offset: u64, length: u64) -> Option<Self> {
        let is_fit = offset.is_multiple_of(RING_ALIGN) && length.is_power_of_two();
        if is_fit { Self::at(memory, Self::word(offset, length)) } else { None }
    }

    /// The ring that `word` names, if there can be one. Offset 0 is none.
    #[inline]
    pub(super) fn at(memory: &'a impl Memory, word: u64) -> Option<Self> {
        let (offset, length_log2) = (word & !(RING_ALIGN - 1), word & (RING_ALIGN - 1));
        if offset == 0 || length_log2 > LENGTH_LOG2_MAX {
            return None;
        }
        memory.words(offset, 1 << length_log2).map(|entries| Self { entries })
    }

    #[inline]
    pub(super) fn length(self) -> i64 {
        self.entries.len() as i64
    }

    #[inline]
    pub(super) fn entry(self, index: u64) -> &'a AtomicU64 {
        &self.entries[index as usize & (self.entries.len() - 1)]
    }
}
