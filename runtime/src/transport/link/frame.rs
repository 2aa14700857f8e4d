//! The layout of a frame on a lane.
//!
//! ```text
//! 0         8           16              24       28        32
//! | checksum | sequence | acknowledged | credit | waiting | bytes of the stream ... |
//! ```
//!
//! All numbers are little endian. Positions are 64 bits wide, so none wraps in the life of a job.
//! Amounts are 32 bits wide; a larger amount is sent as the largest number. The checksum covers the
//! bytes that follow it and, through its seed, sender and receiver: a frame that a lane delivers to
//! the wrong PE, or under the wrong name, is as corrupt as one with a flipped bit.

use ultramarine_topology::Pe;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes in front of the stream's bytes.
pub(super) const HEADER_BYTES: usize = 32;

const CHECKSUM_BYTES: usize = 8;

/// A frame's header, without the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Header {
    /// The position in the sender's stream of the frame's first byte.
    pub(super) sequence: u64,
    /// The sender has every byte of the receiver's stream before this position.
    pub(super) acknowledged: u64,
    /// The number of bytes that the receiver may send beyond `acknowledged`; one frame is always
    /// allowed.
    pub(super) credit: u32,
    /// The number of bytes of the sender's stream that come after those of this frame.
    pub(super) waiting: u32,
}

/// A frame that passed its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame<'a> {
    pub(super) header: Header,
    /// Bytes of the stream; none in a frame that only acknowledges.
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame that arrived at `to`, as the lane says from `from`. `None`: it is corrupt.
    pub(super) fn decode(from: Pe, to: Pe, bytes: &'a [u8]) -> Option<Self> {
        let (checksum, covered) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
        let (sequence, rest) = covered.split_first_chunk()?;
        let (acknowledged, rest) = rest.split_first_chunk()?;
        let (credit, rest) = rest.split_first_chunk()?;
        let (waiting, payload) = rest.split_first_chunk()?;
        let sequence = u64::from_le_bytes(*sequence);
        sequence.checked_add(payload.len() as u64)?;
        let header = Header {
            sequence,
            acknowledged: u64::from_le_bytes(*acknowledged),
            credit: u32::from_le_bytes(*credit),
            waiting: u32::from_le_bytes(*waiting),
        };
        (u64::from_le_bytes(*checksum) == xxh3_64_with_seed(covered, seed(from, to)))
            .then_some(Frame { header, payload })
    }
}

/// Begins a frame in `out`, whose old contents are dropped. The caller appends the payload, and
/// then [seals](seal) the frame.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; HEADER_BYTES]);
}

/// Writes header and checksum in front of the payload of a frame that was [begun](begin).
pub(super) fn seal(frame: &mut [u8], (from, to): (Pe, Pe), header: Header) {
    frame[8..16].copy_from_slice(&header.sequence.to_le_bytes());
    frame[16..24].copy_from_slice(&header.acknowledged.to_le_bytes());
    frame[24..28].copy_from_slice(&header.credit.to_le_bytes());
    frame[28..HEADER_BYTES].copy_from_slice(&header.waiting.to_le_bytes());
    let checksum = xxh3_64_with_seed(&frame[CHECKSUM_BYTES..], seed(from, to));
    frame[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

fn seed(from: Pe, to: Pe) -> u64 {
    u64::from(from.number()) << 32 | u64::from(to.number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Pe = Pe::new(1);
    const B: Pe = Pe::new(2);

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            sequence in 0..u64::MAX / 2,
            (acknowledged, credit, waiting) in any::<(u64, u32, u32)>(),
            payload: Vec<u8>,
        ) {
            let header = Header { sequence, acknowledged, credit, waiting };
            let mut bytes = vec![9; 3];
            begin(&mut bytes);
            bytes.extend(&payload);
            seal(&mut bytes, (A, B), header);
            let frame = Frame { header, payload: &payload };
            prop_assert_eq!(Frame::decode(A, B, &bytes), Some(frame));
            prop_assert_eq!(Frame::decode(B, B, &bytes), None);
            prop_assert_eq!(Frame::decode(A, A, &bytes), None);
        }

        #[test]
        fn a_flipped_bit_is_noticed(payload: Vec<u8>, bit: prop::sample::Index) {
            let mut bytes = Vec::new();
            let header = Header { sequence: 7, acknowledged: 8, credit: 9, waiting: 10 };
            begin(&mut bytes);
            bytes.extend(payload);
            seal(&mut bytes, (A, B), header);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Frame::decode(A, B, &bytes), None);
        }

        #[test]
        fn random_bytes_are_no_frame(bytes: Vec<u8>) {
            prop_assert_eq!(Frame::decode(A, B, &bytes), None);
        }
    }

    #[test]
    fn a_stream_position_past_the_end_of_counting_is_no_frame() {
        let mut bytes = Vec::new();
        let header = Header { sequence: u64::MAX, ..Header::default() };
        begin(&mut bytes);
        bytes.push(1);
        seal(&mut bytes, (A, B), header);
        assert_eq!(Frame::decode(A, B, &bytes), None);
    }
}
