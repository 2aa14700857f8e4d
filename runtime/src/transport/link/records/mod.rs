//! What a stream consists of.
//!
//! A stream is a sequence of records. Each stands behind its kind and length, together a
//! little-endian `u32`:
//!
//! | kind | content |
//! |---|---|
//! | `MESSAGE` | a message |
//! | `ANNOUNCEMENT` | the lengths and alignments of an array's blocks, and a message that is delivered with it |
//! | `PIECE` | the next bytes of the array that was announced last |
//! | `HANDED_OVER` | the number of an array in the lane's [hand-off table](ArrayHandoff), 8 bytes, and its message |
//! | `OFFER` | where the sender has an array in its memory, and its message; see `offers.rs` |
//! | `FETCHED` | the sender has copied the oldest array that it was offered |
//! | `REFUSED` | the sender copies none of the arrays that it was offered, now or later |
//!
//! A large array takes a while to arrive. Messages may stand between its pieces, and are delivered
//! at once. So messages that are sent after a message with a large array may overtake it; no other
//! message is ever overtaken.

#[cfg(test)]
mod tests;

use crate::array::{Array, BLOCKS_MAX, BlockShape, IncomingBlocks, shapes_bytes};
use crate::transport::handoff::ArrayHandoff;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes in front of each record.
pub(super) const PREFIX_BYTES: usize = 4;

/// The most bytes between an announcement's prefix and its message: the number of blocks, and of
/// each the length, 8 bytes, and the alignment.
const ARRAY_HEAD_BYTES_MAX: usize = 1 + 9 * BLOCKS_MAX;

/// Bytes between the prefix and the message of an array that is handed over.
const NUMBER_BYTES: usize = 8;

/// The most bytes between the prefix and the message of an array that is offered. Of each block its
/// address is there as well, 8 bytes.
const OFFER_BYTES_MAX: usize = 21 + 17 * BLOCKS_MAX;

/// The longest record, in bytes without its prefix.
const RECORD_BYTES_MAX: usize = (1 << KIND_SHIFT) - 1;

/// The longest message, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = RECORD_BYTES_MAX - OFFER_BYTES_MAX;

/// The lowest bit of the kind in a prefix.
const KIND_SHIFT: u32 = 29;

const MESSAGE: u32 = 0;
const ANNOUNCEMENT: u32 = 1;
const PIECE: u32 = 2;
const HANDED_OVER: u32 = 3;
const OFFER: u32 = 4;
const FETCHED: u32 = 5;
const REFUSED: u32 = 6;

/// A buffer that has held a record longer than this, in bytes, is given back to the allocator.
const BUFFER_KEPT_MAX: usize = 1 << 20;

fn prefix(kind: u32, bytes: usize) -> [u8; PREFIX_BYTES] {
    (kind << KIND_SHIFT | bytes as u32).to_le_bytes()
}

/// Appends a message to a stream.
pub(super) fn write_message(stream: &mut Vec<u8>, message: &[u8]) {
    stream.extend_from_slice(&prefix(MESSAGE, message.len()));
    stream.extend_from_slice(message);
}

/// Appends the announcement of an array with the message that it belongs to.
pub(super) fn write_announcement(stream: &mut Vec<u8>, message: &[u8], array: &Array) {
    let blocks = array.blocks();
    let head_bytes = 1 + 9 * blocks.len();
    stream.extend_from_slice(&prefix(ANNOUNCEMENT, head_bytes + message.len()));
    stream.push(blocks.len() as u8);
    blocks.iter().for_each(|block| write_shape(stream, BlockShape::of(block)));
    stream.extend_from_slice(message);
}

fn write_shape(stream: &mut Vec<u8>, shape: BlockShape) {
    stream.extend_from_slice(&shape.bytes.to_le_bytes());
    stream.push(shape.alignment);
}

/// Appends a message whose array lies in the hand-off table under this number.
pub(super) fn write_handed_over(stream: &mut Vec<u8>, message: &[u8], number: u64) {
    stream.extend_from_slice(&prefix(HANDED_OVER, NUMBER_BYTES + message.len()));
    stream.extend_from_slice(&number.to_le_bytes());
    stream.extend_from_slice(message);
}

/// Appends a message whose array the peer copies itself.
pub(super) fn write_offer(stream: &mut Vec<u8>, message: &[u8], offer: &Offer) {
    let head_bytes = 21 + 17 * offer.blocks.len();
    stream.extend_from_slice(&prefix(OFFER, head_bytes + message.len()));
    stream.extend_from_slice(&offer.process.to_le_bytes());
    for number in [offer.seal_address, offer.seal] {
        stream.extend_from_slice(&number.to_le_bytes());
    }
    stream.push(offer.blocks.len() as u8);
    for (address, shape) in &offer.blocks {
        stream.extend_from_slice(&address.to_le_bytes());
        write_shape(stream, *shape);
    }
    stream.extend_from_slice(message);
}

/// Appends the reply to an offer.
pub(super) fn write_reply(stream: &mut Vec<u8>, reply: OfferReply) {
    let kind = match reply {
        OfferReply::Fetched => FETCHED,
        OfferReply::Refused => REFUSED,
    };
    stream.extend_from_slice(&prefix(kind, 0));
}

/// The prefix of a piece of this many bytes.
pub(super) fn piece_prefix(bytes: usize) -> [u8; PREFIX_BYTES] {
    prefix(PIECE, bytes)
}

/// Where a sender has an array in its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub(super) process: u32,
    /// The address of the sender's seal, and its value as long as the array is there.
    pub(super) seal_address: u64,
    pub(super) seal: u64,
    /// The address of each block. Without any it is a message without an array.
    pub(super) blocks: Vec<(u64, BlockShape)>,
}

impl Offer {
    /// Splits a record into its offer and its message.
    fn split(mut record: &[u8]) -> Option<(Offer, &[u8])> {
        let process = u32::from_le_bytes(take_chunk(&mut record)?);
        let seal_address = u64::from_le_bytes(take_chunk(&mut record)?);
        let seal = u64::from_le_bytes(take_chunk(&mut record)?);
        let blocks = take_list(&mut record, |record| {
            let address = u64::from_le_bytes(take_chunk(record)?);
            Some((address, take_shape(record)?))
        });
        Some((Offer { process, seal_address, seal, blocks: blocks? }, record))
    }

    /// The shapes of the blocks.
    pub(super) fn shapes(&self) -> impl Iterator<Item = BlockShape> {
        self.blocks.iter().map(|(_, shape)| *shape)
    }
}

/// Takes the first bytes of a record.
fn take_chunk<const N: usize>(record: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, rest) = record.split_first_chunk()?;
    *record = rest;
    Some(*chunk)
}

fn take_shape(record: &mut &[u8]) -> Option<BlockShape> {
    let bytes = u64::from_le_bytes(take_chunk(record)?);
    let [alignment] = take_chunk(record)?;
    Some(BlockShape { bytes, alignment })
}

/// Takes as many items as the next byte says. `None`: they are too many, or cut.
fn take_list<T>(
    record: &mut &[u8],
    mut take: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let [count] = take_chunk(record)?;
    let is_possible = usize::from(count) <= BLOCKS_MAX;
    is_possible.then(|| (0..count).map(|_| take(record)).collect())?
}

/// The reply to an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OfferReply {
    /// The oldest array is copied.
    Fetched,
    /// The peer cannot copy any array.
    Refused,
}

/// A record about arrays that are copied.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum CopyRecord {
    /// The peer offers the array of this message.
    Offered(Vec<u8>, Offer),
    /// The peer replies to an offer.
    Replied(OfferReply),
}

/// Why a stream cannot be cut any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Malformed {
    /// A message or an array of this many bytes is over the limit.
    TooLong(usize),
    /// No port writes such bytes.
    Nonsense,
}

/// A stream that is being cut into its records.
#[derive(Default)]
pub(super) struct Records {
    /// The beginning of a record whose end has not arrived yet, unless it is a piece. Grows with
    /// the bytes that arrive, never by what a length promises.
    partial: Vec<u8>,
    /// The number of bytes of a piece that are still to come.
    piece_bytes: usize,
    /// The array that is arriving, and the message that waits for it.
    incoming: Option<Box<(Vec<u8>, IncomingBlocks)>>,
    /// Records about arrays that are still to be handled.
    to_copy: VecDeque<CopyRecord>,
    /// The table by which arrays may be handed over.
    handoff: Option<Arc<ArrayHandoff>>,
}

impl Records {
    /// A stream whose arrays may be handed over in this table.
    pub(super) fn new(handoff: Option<Arc<ArrayHandoff>>) -> Self {
        Records { handoff, ..Records::default() }
    }

    /// Whether nothing has arrived in part or is still to be handled.
    pub(super) fn is_resting(&self) -> bool {
        self.is_between()
            && self.piece_bytes == 0
            && self.incoming.is_none()
            && self.to_copy.is_empty()
    }

    /// Whether the bytes so far end with a whole record (or within a piece).
    pub(super) fn is_between(&self) -> bool {
        self.partial.is_empty()
    }

    /// Replaces its buffer by another, empty one, and returns the old. To be called only
    /// [between](Self::is_between) two records.
    pub(super) fn exchange_buffer(&mut self, buffer: Vec<u8>) -> Vec<u8> {
        debug_assert!(self.partial.is_empty() && buffer.is_empty(), "no byte is lost");
        std::mem::replace(&mut self.partial, buffer)
    }

    /// Takes the oldest record about arrays that are copied.
    pub(super) fn take_copy_record(&mut self) -> Option<CopyRecord> {
        self.to_copy.pop_front()
    }

    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Takes the stream's next bytes, and delivers each message that they complete. A message that
    /// lies within `bytes` is not copied.
    pub(super) fn cut(
        &mut self,
        mut bytes: &[u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            if self.piece_bytes > 0 {
                bytes = self.take_piece(bytes, deliver);
                continue;
            }
            if self.partial.is_empty()
                && let Some(end) = end_of_record(bytes, bytes_max)?
                && let Some((record, rest)) = bytes.split_at_checked(end)
            {
                self.take(record, bytes_max, deliver)?;
                bytes = rest;
                continue;
            }
            bytes = self.fill(bytes, PREFIX_BYTES);
            let Some(end) = end_of_record(&self.partial, bytes_max)? else { break };
            bytes = self.fill(bytes, end);
            if self.partial.len() == end {
                let mut record = std::mem::take(&mut self.partial);
                self.take(&record, bytes_max, deliver)?;
                record.clear();
                record.shrink_to(BUFFER_KEPT_MAX);
                self.partial = record;
            }
        }
        Ok(())
    }

    /// Takes the bytes that belong to a piece, and returns the rest.
    fn take_piece<'a>(
        &mut self,
        bytes: &'a [u8],
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> &'a [u8] {
        let (piece, rest) = bytes.split_at(self.piece_bytes.min(bytes.len()));
        self.piece_bytes -= piece.len();
        if let Some(incoming) = &mut self.incoming {
            incoming.1.take(piece);
        }
        if let Some(incoming) = self.incoming.take_if(|incoming| incoming.1.missing() == 0) {
            let (message, incoming) = *incoming;
            deliver(&message, incoming.into_array());
        }
        rest
    }

    /// Takes a whole record; of a piece its prefix.
    fn take(
        &mut self,
        record: &[u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> Result<(), Malformed> {
        let Some((kind, bytes)) = kind_and_length(record) else { return Ok(()) };
        let record = &record[PREFIX_BYTES..];
        match kind {
            MESSAGE => deliver(record, None),
            PIECE => {
                let missing = self.incoming.as_ref().map_or(0, |incoming| incoming.1.missing());
                if bytes > missing {
                    return Err(Malformed::Nonsense);
                }
                self.piece_bytes = bytes;
            }
            HANDED_OVER => {
                let (number, message) = record.split_first_chunk().ok_or(Malformed::Nonsense)?;
                let number = u64::from_le_bytes(*number);
                let array = self.handoff.as_ref().and_then(|handoff| handoff.take(number));
                deliver(message, Some(array.ok_or(Malformed::Nonsense)?));
            }
            OFFER => {
                let (offer, message) = Offer::split(record).ok_or(Malformed::Nonsense)?;
                array_bytes(offer.shapes(), message, bytes_max)?;
                self.to_copy.push_back(CopyRecord::Offered(message.to_vec(), offer));
            }
            FETCHED => self.to_copy.push_back(CopyRecord::Replied(OfferReply::Fetched)),
            REFUSED => self.to_copy.push_back(CopyRecord::Replied(OfferReply::Refused)),
            ANNOUNCEMENT => {
                let mut message = record;
                let shapes = take_list(&mut message, take_shape).ok_or(Malformed::Nonsense)?;
                let array_bytes = array_bytes(shapes.iter().copied(), message, bytes_max)?;
                let incoming = IncomingBlocks::new(shapes);
                let incoming = incoming.filter(|_| self.incoming.is_none());
                let incoming = incoming.ok_or(Malformed::Nonsense)?;
                if array_bytes == 0 {
                    deliver(message, incoming.into_array());
                } else {
                    self.incoming = Some(Box::new((message.to_vec(), incoming)));
                }
            }
            _ => return Err(Malformed::Nonsense),
        }
        Ok(())
    }

    fn fill<'a>(&mut self, bytes: &'a [u8], up_to: usize) -> &'a [u8] {
        let missing = up_to.saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        rest
    }
}

/// The length of an array of these blocks, if it and its message are within the limit.
fn array_bytes(
    shapes: impl Iterator<Item = BlockShape>,
    message: &[u8],
    bytes_max: usize,
) -> Result<usize, Malformed> {
    let bytes = shapes_bytes(shapes).ok_or(Malformed::Nonsense)?;
    let longest = bytes.max(message.len());
    if longest > bytes_max { Err(Malformed::TooLong(longest)) } else { Ok(bytes) }
}

/// The kind of the record that begins here, and its length in bytes without the prefix, if the
/// prefix is complete.
fn kind_and_length(bytes: &[u8]) -> Option<(u32, usize)> {
    let prefix = u32::from_le_bytes(*bytes.first_chunk()?);
    Some((prefix >> KIND_SHIFT, prefix as usize & RECORD_BYTES_MAX))
}

/// Where the record that begins here ends; for a piece, where its prefix ends.
fn end_of_record(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, Malformed> {
    let (end, overhead) = match kind_and_length(bytes) {
        None => return Ok(None),
        Some((MESSAGE, length)) => (length, 0),
        Some((ANNOUNCEMENT, length)) => (length, ARRAY_HEAD_BYTES_MAX),
        Some((HANDED_OVER, length)) => (length, NUMBER_BYTES),
        Some((OFFER, length)) => (length, OFFER_BYTES_MAX),
        Some(_) => (0, 0),
    };
    let message_bytes = end.saturating_sub(overhead);
    if message_bytes > bytes_max {
        return Err(Malformed::TooLong(message_bytes));
    }
    Ok(Some(PREFIX_BYTES + end))
}
