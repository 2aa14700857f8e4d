//! One record in the file. The format is a table in the crate's documentation.
//!
//! Two checksums, so that a reader that looks for the next record in damaged bytes needs to look at
//! 48 bytes only to know whether a record begins there: the search is linear in the length of the
//! file, whatever is in it. The checksum of the head depends on the journal's random mark and on
//! the place in the file. So bytes of a result are never taken for a record, even if they are a
//! copy of this very file.

use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What comes before the bytes of the result.
pub(crate) const HEAD_BYTES: usize = 48;

/// Where a [note](crate::builds::BuildNote) stands instead of a result: no item has this position.
const NOTE_POSITION: u64 = u64::MAX;

/// The head of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) positions: Range<u64>,
    /// The number of bytes of the result.
    pub(crate) result_bytes: u64,
    pub(crate) result_sum: u64,
}

impl Head {
    pub(crate) fn new(mark: u64, positions: Range<u64>, result: &[u8]) -> Self {
        let result_sum = xxh3_64_with_seed(result, mark);
        Head { positions, result_bytes: result.len() as u64, result_sum }
    }

    /// The head of a note.
    pub(crate) fn of_note(mark: u64, note: &[u8]) -> Self {
        Head::new(mark, NOTE_POSITION..NOTE_POSITION, note)
    }

    pub(crate) fn is_note(&self) -> bool {
        self.positions == (NOTE_POSITION..NOTE_POSITION)
    }

    /// The bytes of the head of a record at this offset in the file.
    pub(crate) fn encode(&self, mark: u64, offset: u64) -> [u8; HEAD_BYTES] {
        let Range { start, end } = self.positions;
        let mut bytes = [0; HEAD_BYTES];
        let fields = [mark, start, end, self.result_bytes, self.result_sum];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let sum = head_sum(&bytes[..40], mark, offset);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The head that these bytes begin with, if that is intact.
    pub(crate) fn decode(bytes: &[u8], mark: u64, offset: u64) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let field = |index: usize| {
            let field = bytes[8 * index..].first_chunk().expect("a head has six fields");
            u64::from_le_bytes(*field)
        };
        // Nearly all bytes that begin no record are told apart here.
        if field(0) != mark || field(5) != head_sum(&bytes[..40], mark, offset) {
            return None;
        }
        Some(Head { positions: field(1)..field(2), result_bytes: field(3), result_sum: field(4) })
    }

    /// Whether the bytes after the head are those that were written.
    pub(crate) fn fits(&self, mark: u64, result: &[u8]) -> bool {
        xxh3_64_with_seed(result, mark) == self.result_sum
    }
}

fn head_sum(fields: &[u8], mark: u64, offset: u64) -> u64 {
    xxh3_64_with_seed(fields, mark.wrapping_add(offset))
}

/// The length of the whole records at the beginning of `bytes`, which has records from end to end,
/// as they were encoded, and is cut off after `limit`.
pub(crate) fn whole_records(bytes: &[u8], limit: usize) -> usize {
    let mut end = 0;
    while let Some(length) = bytes.get(end + 24..).and_then(<[u8]>::first_chunk) {
        let next = end + HEAD_BYTES + u64::from_le_bytes(*length) as usize;
        if next > limit {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_intact_only_as_it_was_and_where_it_was() {
        let (mark, offset) = (4711, 1000);
        let head = Head::new(mark, 3..5, b"result");
        let bytes = head.encode(mark, offset);
        assert_eq!(Head::decode(&bytes, mark, offset), Some(head.clone()));
        assert_eq!(Head::decode(&bytes, mark, offset + 1), None);
        assert_eq!(Head::decode(&bytes, mark + 1, offset), None);
        assert_eq!(Head::decode(&bytes[..47], mark, offset), None);
        for index in 0..HEAD_BYTES {
            let mut bytes = bytes;
            bytes[index] ^= 1;
            assert_eq!(Head::decode(&bytes, mark, offset), None, "{index}");
        }
        assert!(head.fits(mark, b"result") && !head.fits(mark, b"resulT"));
    }

    #[test]
    fn whole_records_end_where_a_record_ends() {
        let mut bytes = Vec::new();
        for result in ["", "a", "bcd"] {
            bytes.extend(Head::new(1, 0..1, result.as_bytes()).encode(1, 0));
            bytes.extend(result.as_bytes());
        }
        let wholes = [0, 47, 48, 96, 97, 147, 148, 1000].map(|limit| whole_records(&bytes, limit));
        assert_eq!(wholes, [0, 0, 48, 48, 97, 97, 148, 148]);
    }
}
