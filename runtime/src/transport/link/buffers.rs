//! Buffers that all streams of a port share. An empty stream owns no buffer, so the memory that a
//! port keeps after a burst does not grow with the number of peers.

use crate::array::Array;

/// A buffer larger than this, in bytes, goes back to the allocator.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The most bytes that all free buffers may hold together.
pub(super) const POOL_BYTES_MAX: usize = 8 << 20;

/// The most free buffers.
const POOL_BUFFERS_MAX: usize = 256;

/// An array of this size or more, in bytes, is dropped outside of the port: dropping can take 0.2
/// ms for each MiB, and all messages would wait for it.
const LARGE_BYTES: usize = 1 << 20;

/// The free buffers of a port.
#[derive(Default)]
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
    /// The bytes that they hold together.
    bytes: usize,
    /// Large arrays that are not needed any more.
    pub(super) discarded: Vec<Array>,
}

impl Buffers {
    /// An empty buffer: the one given back last, which is most likely in the cache.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        let fits = self.bytes + bytes <= POOL_BYTES_MAX && self.free.len() < POOL_BUFFERS_MAX;
        if bytes > 0 && bytes <= BUFFER_BYTES_MAX && fits {
            buffer.clear();
            self.bytes += bytes;
            self.free.push(buffer);
        }
    }

    /// Drops an array, or keeps it for the port's owner to drop if it is large.
    pub(super) fn discard(&mut self, array: Array) {
        if array.size_bytes() >= LARGE_BYTES {
            self.discarded.push(array);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
