//! Parts of a stream, as the sender keeps them until they are acknowledged.

use super::records::PREFIX_BYTES;
use crate::array::Array;
use std::ops::Range;

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
