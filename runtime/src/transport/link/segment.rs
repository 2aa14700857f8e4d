//! Parts of a stream, as the sender keeps them until they are acknowledged.

use super::records::PREFIX_BYTES;
use crate::array::Array;
use std::ops::Range;

/// The longest piece of an array, in bytes: with its prefix it fills the longest frame of any lane.
pub(super) const PIECE_BYTES_MAX: usize = (64 << 10) - 64;

/// Bytes that stand together in the stream.
pub(super) struct StreamSegment {
    /// The position of the first byte.
    pub(super) start: u64,
    pub(super) content: SegmentContent,
}

pub(super) enum SegmentContent {
    Messages(Vec<u8>),
    Piece { prefix: [u8; PREFIX_BYTES], array: Array, range: Range<usize> },
}

impl StreamSegment {
    pub(super) fn end(&self) -> u64 {
        let bytes = match &self.content {
            SegmentContent::Messages(bytes) => bytes.len(),
            SegmentContent::Piece { range, .. } => PREFIX_BYTES + range.len(),
        };
        self.start + bytes as u64
    }

    /// Appends its bytes from this position on to a frame, at most `bytes_max`.
    pub(super) fn write(&self, from: u64, bytes_max: usize, frame: &mut Vec<u8>) {
        let from = (from - self.start) as usize;
        let mut write =
            |bytes: &[u8]| frame.extend_from_slice(&bytes[..bytes_max.min(bytes.len())]);
        match &self.content {
            SegmentContent::Messages(bytes) => write(&bytes[from..]),
            SegmentContent::Piece { array, range, .. } if from >= PREFIX_BYTES => {
                write(&array.bytes()[range.clone()][from - PREFIX_BYTES..]);
            }
            SegmentContent::Piece { prefix, .. } => write(&prefix[from..]),
        }
    }
}

/// An array that is being appended in pieces. It has been announced.
pub(super) struct Appending {
    array: Array,
    /// The block of which the next piece is, and how many of its bytes are appended.
    block: usize,
    appended: usize,
    /// How many bytes of all blocks are not.
    left: usize,
    /// As of its message.
    pub(super) in_order: bool,
}

impl Appending {
    pub(super) fn new(array: Array, in_order: bool) -> Appending {
        let left = array.size_bytes();
        Appending { array, block: 0, appended: 0, left, in_order }
    }

    /// How many bytes are not appended.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The next piece: a block, and the range of it. `None`: there is none left.
    pub(super) fn next_piece(&mut self) -> Option<(Array, Range<usize>)> {
        loop {
            let block = self.array.blocks().get(self.block)?;
            let bytes = PIECE_BYTES_MAX.min(block.bytes().len() - self.appended);
            if bytes > 0 {
                let range = self.appended..self.appended + bytes;
                self.appended = range.end;
                self.left -= bytes;
                return Some((block.clone(), range));
            }
            (self.block, self.appended) = (self.block + 1, 0);
        }
    }
}
