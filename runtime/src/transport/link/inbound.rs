//! The receiving half of one pair: the peer's stream, which is taken in order or not at all.

use super::buffers::Buffers;
use super::records::{CopyRecord, Malformed, Records};
use crate::array::Array;
use crate::transport::handoff::ArrayHandoff;
use std::sync::Arc;

/// The peer's stream.
#[derive(Default)]
pub(super) struct Inbound {
    /// Every byte of the stream before this position has arrived.
    position: u64,
    records: Records,
}

/// What became of a frame's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PayloadOutcome {
    /// At least one byte was new, and they came next in the stream.
    New,
    /// All bytes had arrived before.
    Duplicate,
    /// Bytes before them are missing.
    Gap,
}

impl Inbound {
    /// A stream whose arrays may be handed over in this table.
    pub(super) fn new(handoff: Option<Arc<ArrayHandoff>>) -> Self {
        Inbound { position: 0, records: Records::new(handoff) }
    }

    /// A stream that goes on from this position, where no record had begun.
    pub(super) fn resume(position: u64, handoff: Option<Arc<ArrayHandoff>>) -> Self {
        Inbound { position, records: Records::new(handoff) }
    }

    /// Whether no record has begun and not ended.
    pub(super) fn is_resting(&self) -> bool {
        self.records.is_resting()
    }

    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.records.buffer_bytes()
    }

    /// The oldest record about arrays that are copied.
    pub(super) fn take_copy_record(&mut self) -> Option<CopyRecord> {
        self.records.take_copy_record()
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Takes the bytes of the stream that begin at `sequence`, and delivers every message that they
    /// complete. They may be cut elsewhere than in an earlier transmission.
    pub(super) fn take(
        &mut self,
        sequence: u64,
        payload: &[u8],
        message_bytes_max: usize,
        buffers: &mut Buffers,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> Result<PayloadOutcome, Malformed> {
        if sequence > self.position {
            return Ok(PayloadOutcome::Gap);
        }
        let known = self.position - sequence;
        if known >= payload.len() as u64 {
            return Ok(PayloadOutcome::Duplicate);
        }
        let new = &payload[known as usize..];
        self.position += new.len() as u64;
        if self.records.is_between() {
            self.records.exchange_buffer(buffers.take());
        }
        self.records.cut(new, message_bytes_max, deliver)?;
        if self.records.is_between() {
            buffers.give(self.records.exchange_buffer(Vec::new()));
        }
        Ok(PayloadOutcome::New)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn overlapping_retransmissions_yield_the_stream_once(
            message: Vec<u8>,
            cuts in prop::collection::vec((1..40_usize, 0..60_usize), 1..50),
        ) {
            let stream = [&(message.len() as u32).to_le_bytes()[..], &message].concat();
            let (mut inbound, mut buffers) = (Inbound::default(), Buffers::default());
            let mut delivered = Vec::new();
            for &(forward, back) in cuts.iter().cycle() {
                let at = inbound.position as usize;
                if at == stream.len() {
                    break;
                }
                let from = at.saturating_sub(back);
                let to = (at + forward).min(stream.len());
                let mut deliver = |message: &[u8], _| delivered.push(message.to_vec());
                let payload = &stream[from..to];
                let taken = inbound.take(from as u64, payload, 200, &mut buffers, &mut deliver);
                prop_assert_eq!(taken, Ok(PayloadOutcome::New));
            }
            prop_assert_eq!(delivered, [message]);
        }
    }

    #[test]
    fn what_is_known_or_out_of_order_is_not_taken() {
        let (mut inbound, mut buffers) = (Inbound::default(), Buffers::default());
        let mut take =
            |sequence, bytes: &[u8]| inbound.take(sequence, bytes, 9, &mut buffers, &mut |_, _| {});
        assert_eq!(take(1, &[0, 0]), Ok(PayloadOutcome::Gap));
        assert_eq!(take(0, &[9, 0]), Ok(PayloadOutcome::New));
        assert_eq!(take(0, &[9, 0]), Ok(PayloadOutcome::Duplicate));
        assert_eq!(take(1, &[0, 0, 0]), Ok(PayloadOutcome::New));
        assert_eq!(take(3, &[0, 7]), Ok(PayloadOutcome::New));
    }
}
