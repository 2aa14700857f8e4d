//! The sending half of one pair: the stream towards the peer, kept until it is acknowledged.
//!
//! ```text
//!      acknowledged          sent          appended      end
//!           |--- in flight ----|---------------|--- arrays that wait ---|
//!                    `sent` goes back to `acknowledged` when silence lasts too long
//! ```
//!
//! Positions count bytes of the stream, not frames, so bytes that were sent in frames of one size
//! can be sent again in frames of another.
//!
//! Messages are appended to the stream as they come. A large array is appended piece by piece, each
//! when most of the last has been sent, so that no message waits behind the whole array. If
//! messages come faster than the peer takes them, a piece follows each piece's worth of messages,
//! so that no array waits for ever. The array is never copied: a piece refers to it. A message in
//! order takes the way of those in order that are still on theirs.

use super::buffers::Buffers;
use super::offers::Offers;
use super::peer::Flow;
use super::queue::{Queue, Queued};
use super::records::{self, OfferReply, PREFIX_BYTES};
use super::segment::{Appending, PIECE_BYTES_MAX, SegmentContent, StreamSegment};
use crate::array::Array;
use crate::transport::handoff::ArrayHandoff;
use std::collections::VecDeque;
use std::time::Duration;

/// Messages go into a new segment when the last segment has this many bytes: a segment that is
/// never acknowledged as a whole would grow without end.
const SEGMENT_BYTES: usize = 64 << 10;

/// The most places that the queues of an idle stream keep.
const KEPT_MAX: usize = 4;

/// The stream towards the peer.
#[derive(Default)]
pub(super) struct Outbound {
    /// The stream from `acknowledged`, or a little before it, to `appended`.
    segments: VecDeque<StreamSegment>,
    /// The array of which pieces are being appended.
    appending: Option<Appending>,
    /// Messages whose arrays are appended after it, and those in order behind them.
    waiting: Queue,
    /// Arrays that the peer copies itself, since it was offered the first.
    offers: Option<Box<Offers>>,
    /// The peer has every byte before this position.
    acknowledged: u64,
    /// The next byte to hand to the lane.
    sent: u64,
    /// No byte from this position on was ever handed to a lane, so none can be acknowledged.
    sent_max: u64,
    /// The end of the segments.
    appended: u64,
    /// Where the last piece ends.
    last_piece_end: u64,
    /// The peer has given credit up to this position; see `credit.rs`.
    limit: u64,
    /// One frame may be in flight without any credit.
    flow: Flow,
    /// The most bytes that may be in flight whatever the credit. It is one frame after a resend,
    /// because the peer may have everything and only its acknowledgement may be late. It doubles
    /// with each acknowledgement.
    window_bytes: usize,
    /// Since when the peer has owed an acknowledgement. Runs while the lane has taken bytes that
    /// are not acknowledged: the peer cannot answer what the lane has not taken.
    silent_since: Option<Duration>,
    /// How many times the stream was resent in this silence.
    resends: u32,
}

/// How an array gets to the peer.
#[derive(Clone, Copy)]
pub(super) enum ArrayRoute<'a> {
    /// Through a table: the peer is in the same process.
    Handoff(&'a ArrayHandoff),
    /// The peer copies it out of this process's memory.
    Offer,
    /// In pieces, in the stream.
    Pieces,
}

/// What follows from an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckOutcome {
    /// More of the stream has arrived.
    Progress,
    /// Nothing new.
    Old,
    /// It acknowledges bytes that were never sent.
    Impossible,
}

impl Outbound {
    pub(super) fn new(flow: Flow) -> Self {
        // Between two answers there is mostly one segment.
        let segments = VecDeque::with_capacity(1);
        Outbound { segments, flow, window_bytes: flow.window_bytes, ..Outbound::default() }
    }

    pub(super) fn flow(&self) -> Flow {
        self.flow
    }

    /// A stream that goes on where it [rested](Self::resting_at).
    pub(super) fn resume(at: u64, flow: Flow) -> Self {
        Outbound {
            acknowledged: at,
            sent: at,
            sent_max: at,
            appended: at,
            last_piece_end: at,
            ..Outbound::new(flow)
        }
    }

    /// The position of the stream, if the peer has all of it, has lent nothing for more, and has
    /// been offered no arrays.
    pub(super) fn resting_at(&self) -> Option<u64> {
        let is_resting = self.is_empty()
            && self.offers.is_none()
            && self.silent_since.is_none()
            && self.sent_max == self.appended
            && self.limit <= self.appended + self.flow.frame_bytes as u64;
        is_resting.then_some(self.appended)
    }

    /// Bytes not yet acknowledged.
    pub(super) fn backlog_bytes(&self) -> usize {
        let offered = self.offers.as_ref().map_or(0, |offers| offers.open().bytes());
        (self.appended - self.acknowledged) as usize + self.waiting_bytes() + offered
    }

    /// Those of them that are not appended to the stream, without what is offered.
    fn waiting_bytes(&self) -> usize {
        let begun = self.appending.as_ref();
        begun.map_or(0, Appending::left) + self.waiting.bytes()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.backlog_bytes() == 0 && self.waiting.len() == 0 && self.offered() == 0
    }

    /// The number of offers that the peer has not answered.
    pub(super) fn offered(&self) -> usize {
        self.offers.as_ref().map_or(0, |offers| offers.open().len())
    }

    /// Whether a message in order has to take the way of others before it.
    pub(super) fn has_in_order(&self) -> bool {
        self.offers_in_order() || self.waits_in_order()
    }

    fn offers_in_order(&self) -> bool {
        self.offers.as_ref().is_some_and(|offers| offers.open().has_in_order())
    }

    fn waits_in_order(&self) -> bool {
        self.waiting.has_in_order() || self.appending.as_ref().is_some_and(|begun| begun.in_order)
    }

    /// Whether the peer can be expected to copy arrays that it is offered.
    pub(super) fn may_offer(&self) -> bool {
        self.offers.as_ref().is_none_or(|offers| offers.are_welcome())
    }

    /// Appends a message. Returns whether that is an offer, which the peer will answer.
    pub(super) fn push(
        &mut self,
        message: &[u8],
        array: Option<(&Array, ArrayRoute<'_>)>,
        in_order: bool,
        buffers: &mut Buffers,
    ) -> bool {
        let (array, route) = array.unzip();
        let route = if in_order && self.offers_in_order() {
            Some(ArrayRoute::Offer)
        } else if in_order && self.waits_in_order() {
            Some(ArrayRoute::Pieces)
        } else {
            route
        };
        let queued = || Queued { message: message.to_vec(), array: array.cloned(), in_order };
        match (route, array) {
            (Some(ArrayRoute::Handoff(handoff)), Some(array)) => {
                let number = handoff.put(array.clone());
                self.append(buffers, |stream| records::write_handed_over(stream, message, number));
            }
            (Some(ArrayRoute::Offer), _) => {
                let offer = self.offers.get_or_insert_default().add(queued());
                self.append(buffers, |stream| records::write_offer(stream, message, &offer));
            }
            (Some(ArrayRoute::Pieces), _) => {
                self.waiting.push(queued());
                self.append_pieces(buffers);
            }
            (_, None) | (None, _) => {
                self.append(buffers, |stream| records::write_message(stream, message));
            }
        }
        if self.appended - self.last_piece_end >= PIECE_BYTES_MAX as u64 {
            self.append_piece(buffers);
        }
        matches!(route, Some(ArrayRoute::Offer))
    }

    /// Tells the peer what became of its offers.
    pub(super) fn reply(&mut self, reply: OfferReply, buffers: &mut Buffers) {
        self.append(buffers, |stream| records::write_reply(stream, reply));
    }

    /// Handles the peer's reply to this PE's offers. Returns how many it settles; `None`: there
    /// were none.
    pub(super) fn handle_reply(
        &mut self,
        reply: OfferReply,
        buffers: &mut Buffers,
    ) -> Option<usize> {
        if reply == OfferReply::Fetched {
            let fetched = self.offers.as_mut()?.take_fetched()?;
            fetched.array.into_iter().for_each(|array| buffers.discard(array));
            return Some(1);
        }
        let mut refused = self.offers.get_or_insert_default().withdraw_all();
        let count = refused.len();
        while let Some(queued) = refused.pop() {
            self.waiting.push(queued);
        }
        self.append_pieces(buffers);
        Some(count)
    }

    /// Appends to the stream, behind the last message.
    fn append(&mut self, buffers: &mut Buffers, write: impl FnOnce(&mut Vec<u8>)) {
        let is_open = self.segments.back().is_some_and(|segment| match &segment.content {
            SegmentContent::Messages(bytes) => bytes.len() < SEGMENT_BYTES,
            SegmentContent::Piece { .. } => false,
        });
        if !is_open {
            let content = SegmentContent::Messages(buffers.take());
            self.segments.push_back(StreamSegment { start: self.appended, content });
        }
        if let Some(StreamSegment { content: SegmentContent::Messages(bytes), .. }) =
            self.segments.back_mut()
        {
            let before = bytes.len();
            write(bytes);
            self.appended += (bytes.len() - before) as u64;
        }
    }

    /// Appends pieces of arrays, as many as can be sent soon.
    fn append_pieces(&mut self, buffers: &mut Buffers) {
        while self.appended - self.sent < self.flow.frame_bytes as u64 && self.append_piece(buffers)
        {
        }
    }

    /// Appends the next piece, or the next message that waits. Returns whether there was one.
    fn append_piece(&mut self, buffers: &mut Buffers) -> bool {
        if self.appending.is_none() && !self.append_waiting(buffers) {
            return false;
        }
        let Some(begun) = &mut self.appending else { return true };
        if let Some((array, range)) = begun.next_piece() {
            let bytes = range.len();
            let content =
                SegmentContent::Piece { prefix: records::piece_prefix(bytes), array, range };
            self.segments.push_back(StreamSegment { start: self.appended, content });
            self.appended += (PREFIX_BYTES + bytes) as u64;
        }
        self.last_piece_end = self.appended;
        self.appending.take_if(|begun| begun.left() == 0);
        true
    }

    /// Appends the next message that waits, and begins with its array. Returns whether there was
    /// one.
    fn append_waiting(&mut self, buffers: &mut Buffers) -> bool {
        let Some(Queued { message, array, in_order }) = self.waiting.pop() else { return false };
        self.append(buffers, |stream| match &array {
            Some(array) => records::write_announcement(stream, &message, array),
            None => records::write_message(stream, &message),
        });
        self.appending = array.map(|array| Appending::new(array, in_order));
        true
    }

    fn in_flight_bytes(&self) -> usize {
        (self.sent - self.acknowledged) as usize
    }

    /// The most bytes that may be in flight now.
    fn allowed_bytes(&self) -> usize {
        let credit = self.limit.saturating_sub(self.acknowledged) as usize;
        self.window_bytes.min(credit.max(self.flow.frame_bytes))
    }

    /// Whether [`next`](Self::next) has bytes to send.
    pub(super) fn may_send(&self) -> bool {
        self.sent < self.appended && self.in_flight_bytes() < self.allowed_bytes()
    }

    /// Appends the bytes of the next frame to send, which may be none. Returns the frame's
    /// position, and the number of bytes that come after it.
    pub(super) fn next(&self, frame: &mut Vec<u8>) -> (u64, usize) {
        let room =
            self.allowed_bytes().saturating_sub(self.in_flight_bytes()).min(self.flow.frame_bytes);
        let end = self.appended.min(self.sent + room as u64);
        let mut at = self.sent;
        let first = self.segments.partition_point(|segment| segment.end() <= at);
        let mut segments = self.segments.range(first..).peekable();
        while at < end
            && let Some(segment) = segments.next_if(|segment| segment.start <= at)
        {
            while at < end.min(segment.end()) {
                let before = frame.len();
                segment.write(at, (end - at) as usize, frame);
                at += (frame.len() - before) as u64;
            }
        }
        (self.sent, (self.appended - end) as usize + self.waiting_bytes())
    }

    /// The lane took the next `bytes` bytes. Returns how many of them had been sent before.
    pub(super) fn advance(&mut self, bytes: usize, now: Duration, buffers: &mut Buffers) -> usize {
        if bytes > 0 {
            self.silent_since.get_or_insert(now);
        }
        let resent = self.sent_max.saturating_sub(self.sent).min(bytes as u64);
        self.sent += bytes as u64;
        self.sent_max = self.sent_max.max(self.sent);
        self.append_pieces(buffers);
        resent as usize
    }

    /// The peer has every byte before `position`, and gives credit for this many bytes more.
    pub(super) fn acknowledge(
        &mut self,
        position: u64,
        credit: u32,
        now: Duration,
        buffers: &mut Buffers,
    ) -> AckOutcome {
        if position > self.sent_max {
            return AckOutcome::Impossible;
        }
        self.limit = self.limit.max(position + u64::from(credit));
        if position <= self.acknowledged {
            return AckOutcome::Old;
        }
        while self.segments.front().is_some_and(|segment| segment.end() <= position) {
            match self.segments.pop_front().map(|segment| segment.content) {
                Some(SegmentContent::Messages(bytes)) => buffers.give(bytes),
                Some(SegmentContent::Piece { array, .. }) => buffers.discard(array),
                None => {}
            }
        }
        self.acknowledged = position;
        self.sent = self.sent.max(position);
        self.append_pieces(buffers);
        if self.segments.is_empty() {
            // They may have been thousands.
            self.segments.shrink_to(KEPT_MAX);
            self.waiting.shrink_to(KEPT_MAX);
        }
        self.window_bytes = self.window_bytes.saturating_mul(2).min(self.flow.window_bytes);
        self.resends = 0;
        self.silent_since = (self.in_flight_bytes() > 0).then_some(now);
        AckOutcome::Progress
    }

    /// When to resend the stream unless the peer acknowledges something.
    pub(super) fn resend_at(&self, resend_after: Duration) -> Option<Duration> {
        Some(self.silent_since?.saturating_add(resend_after))
    }

    /// The deadline is over: goes back to what is not acknowledged. Returns how many times that has
    /// happened in this silence.
    pub(super) fn resend(&mut self) -> u32 {
        self.rewind(self.flow);
        self.resends = self.resends.saturating_add(1);
        self.resends
    }

    /// Goes back to what is not acknowledged, for a new lane.
    pub(super) fn restart(&mut self, flow: Flow) {
        self.rewind(flow);
        self.resends = 0;
    }

    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        let bytes = |segment: &StreamSegment| match &segment.content {
            SegmentContent::Messages(bytes) => bytes.capacity(),
            SegmentContent::Piece { .. } => 0,
        };
        self.segments.iter().map(bytes).sum()
    }

    fn rewind(&mut self, flow: Flow) {
        self.sent = self.acknowledged;
        self.flow = flow;
        self.window_bytes = flow.frame_bytes;
        self.silent_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_stream_is_as_small_as_a_new_one() {
        let (mut buffers, now) = (Buffers::default(), Duration::ZERO);
        let flow = Flow { frame_bytes: 1000, window_bytes: 1 << 30 };
        let mut outbound = Outbound::new(flow);
        for round in 1..4 {
            for _ in 0..1000 {
                let array = Array::from(vec![1u8; 100]);
                let array = Some((&array, ArrayRoute::Pieces));
                outbound.push(b"message", array, false, &mut buffers);
            }
            outbound.limit = u64::MAX;
            while outbound.may_send() {
                let mut frame = Vec::new();
                outbound.next(&mut frame);
                outbound.advance(frame.len(), now, &mut buffers);
            }
            assert!(outbound.segments.capacity() > 1000, "round {round}");
            outbound.acknowledge(outbound.appended, 0, now, &mut buffers);
            assert!(outbound.is_empty() && outbound.buffer_bytes() == 0);
            assert!(outbound.segments.capacity() + outbound.waiting.capacity() <= 2 * KEPT_MAX);
        }
    }
}
