//! Buffers that streams share: a stream that is empty owns none, so what a port keeps after a burst
//! does not grow with the number of peers.

use crate::array::Array;

/// A larger buffer, in bytes, goes back to the allocator.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// How much all free buffers may hold together, in bytes.
pub(super) const POOL_BYTES_MAX: usize = 8 << 20;

/// How many free buffers there may be.
const POOL_BUFFERS_MAX: usize = 256;

/// An array from this size on, in bytes, is dropped apart from the port: that can take 0.2 ms a
/// MiB, for which all messages would wait.
const LARGE_BYTES: usize = 1 << 20;

/// The free buffers of a port.
#[derive(Default)]
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
    /// What they hold together.
    bytes: usize,
    /// Large arrays that are done with.
    pub(super) discarded: Vec<Array>,
}

impl Buffers {
    /// An empty buffer; the one given back last, as it is the likeliest to be in the cache.
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

    /// Drops an array, or leaves that to the port's owner, who takes those that are large.
    pub(super) fn discard(&mut self, array: Array) {
        if array.bytes().len() >= LARGE_BYTES {
            self.discarded.push(array);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
