//! The sending half of one pair: our stream towards the peer, kept until it is acknowledged.
//!
//! ```text
//!      acknowledged          sent              end
//!           |--- in flight ----|--- backlog ----|
//!                    `sent` goes back to `acknowledged` when silence lasts too long
//! ```
//!
//! Positions count bytes of the stream, not frames, so what was sent in frames of one size can be
//! sent again in frames of another.

use super::buffers::Buffers;
use crate::transport::pieces::PREFIX_BYTES;
use std::collections::VecDeque;
use std::time::Duration;

/// Where our stream towards the peer stands.
#[derive(Default)]
pub(super) struct Outbound {
    /// The stream from `acknowledged` to its end. Without a buffer while it is empty.
    bytes: VecDeque<u8>,
    /// The peer has every byte before this position.
    acknowledged: u64,
    /// The next byte to hand to the lane.
    sent: u64,
    /// No byte from this position on was ever handed to a lane, so none can be acknowledged.
    sent_max: u64,
    /// The peer has given us credit up to this position; see `credit.rs`.
    limit: u64,
    /// One frame may be in flight without any credit.
    frame_bytes: usize,
    /// How many bytes may be in flight whatever the credit. One frame after a resend, because the
    /// peer may in truth have had everything and only its acknowledgement may be late; doubles with
    /// each acknowledgement.
    window_bytes: usize,
    /// Since when the peer has owed an acknowledgement without giving any. Runs while the lane has
    /// bytes that are not acknowledged: what it did not take, the peer cannot answer.
    silent_since: Option<Duration>,
    /// How many times the stream was resent in this silence.
    resends: u32,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// More of the stream has arrived than was known.
    Progress,
    /// Nothing new.
    Old,
    /// Bytes are acknowledged that were never sent.
    Impossible,
}

impl Outbound {
    pub(super) fn new((frame_bytes, window_bytes): (usize, usize)) -> Self {
        Outbound { frame_bytes, window_bytes, ..Outbound::default() }
    }

    /// Bytes not yet acknowledged.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, message: &[u8], buffers: &mut Buffers) {
        if self.bytes.is_empty() {
            self.bytes = buffers.take().into();
        }
        self.bytes.reserve(PREFIX_BYTES + message.len());
        self.bytes.extend(&(message.len() as u32).to_le_bytes());
        self.bytes.extend(message);
    }

    fn in_flight_bytes(&self) -> usize {
        (self.sent - self.acknowledged) as usize
    }

    /// How many bytes may be in flight now.
    fn allowed_bytes(&self) -> usize {
        let credit = self.limit.saturating_sub(self.acknowledged) as usize;
        self.window_bytes.min(credit.max(self.frame_bytes))
    }

    /// Whether [`next`](Self::next) has bytes to send.
    pub(super) fn may_send(&self) -> bool {
        let in_flight = self.in_flight_bytes();
        in_flight < self.bytes.len() && in_flight < self.allowed_bytes()
    }

    /// The position of the next frame to send, its bytes, which may be none, and how many come
    /// after them; in two pieces because they are cut from a ring.
    pub(super) fn next(&self) -> (u64, (&[u8], &[u8]), usize) {
        let from = self.in_flight_bytes();
        let room = self.allowed_bytes().saturating_sub(from).min(self.bytes.len() - from);
        let to = from + room.min(self.frame_bytes);
        let (front, back) = self.bytes.as_slices();
        let split = front.len();
        let pieces = (
            &front[from.min(split)..to.min(split)],
            &back[from.saturating_sub(split)..to.saturating_sub(split)],
        );
        (self.sent, pieces, self.bytes.len() - to)
    }

    /// The lane took the next `bytes` bytes. Returns how many of them had been sent before.
    pub(super) fn advance(&mut self, bytes: usize, now: Duration) -> usize {
        if bytes > 0 {
            self.silent_since.get_or_insert(now);
        }
        let resent = self.sent_max.saturating_sub(self.sent).min(bytes as u64);
        self.sent += bytes as u64;
        self.sent_max = self.sent_max.max(self.sent);
        resent as usize
    }

    /// The peer has every byte before `position`, and gives us credit for so many bytes more.
    pub(super) fn acknowledge(
        &mut self,
        position: u64,
        credit: u32,
        window_bytes_max: usize,
        now: Duration,
        buffers: &mut Buffers,
    ) -> Heard {
        if position > self.sent_max {
            return Heard::Impossible;
        }
        self.limit = self.limit.max(position + u64::from(credit));
        if position <= self.acknowledged {
            return Heard::Old;
        }
        self.bytes.drain(..(position - self.acknowledged) as usize);
        if self.bytes.is_empty() {
            buffers.give(std::mem::take(&mut self.bytes).into());
        }
        self.acknowledged = position;
        self.sent = self.sent.max(position);
        self.window_bytes = self.window_bytes.saturating_mul(2).min(window_bytes_max);
        self.resends = 0;
        self.silent_since = (self.in_flight_bytes() > 0).then_some(now);
        Heard::Progress
    }

    /// When the stream is to be resent unless something is heard.
    pub(super) fn resend_at(&self, resend_after: Duration) -> Option<Duration> {
        Some(self.silent_since?.saturating_add(resend_after))
    }

    /// Nothing was heard until the deadline: goes back to what is not acknowledged. Returns how
    /// many times that has happened in this silence.
    pub(super) fn resend(&mut self) -> u32 {
        self.rewind(self.frame_bytes);
        self.resends = self.resends.saturating_add(1);
        self.resends
    }

    /// Goes back to what is not acknowledged, on a lane where nothing has been sent yet.
    pub(super) fn restart(&mut self, frame_bytes: usize) {
        self.rewind(frame_bytes);
        self.resends = 0;
    }

    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn rewind(&mut self, frame_bytes: usize) {
        self.sent = self.acknowledged;
        self.frame_bytes = frame_bytes;
        self.window_bytes = frame_bytes;
        self.silent_since = None;
    }
}
