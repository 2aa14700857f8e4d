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

use crate::transport::pieces::PREFIX_BYTES;
use std::collections::VecDeque;
use std::time::Duration;

/// An empty buffer larger than this, in bytes, is given back to the allocator.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// Where our stream towards the peer stands.
#[derive(Default)]
pub(super) struct Outbound {
    /// The stream from `acknowledged` to its end.
    bytes: VecDeque<u8>,
    /// The peer has every byte before this position.
    acknowledged: u64,
    /// The next byte to hand to the lane.
    sent: u64,
    /// No byte from this position on was ever handed to a lane, so none can be acknowledged.
    sent_max: u64,
    /// How many bytes may be in flight. One frame after a resend, because the peer may in truth
    /// have had everything and only its acknowledgement may be late; doubles with each
    /// acknowledgement.
    window_bytes: usize,
    /// Since when the peer has owed an acknowledgement without giving any.
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
    pub(super) fn new(window_bytes: usize) -> Self {
        Outbound { window_bytes, ..Outbound::default() }
    }

    /// Bytes not yet acknowledged.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, message: &[u8]) {
        self.bytes.reserve(PREFIX_BYTES + message.len());
        self.bytes.extend(&(message.len() as u32).to_le_bytes());
        self.bytes.extend(message);
    }

    fn in_flight_bytes(&self) -> usize {
        (self.sent - self.acknowledged) as usize
    }

    /// Whether [`next`](Self::next) has bytes to send.
    pub(super) fn may_send(&self) -> bool {
        let in_flight = self.in_flight_bytes();
        in_flight < self.bytes.len() && in_flight < self.window_bytes
    }

    /// The position of the next frame to send and its at most `bytes_max` bytes, which may be
    /// none; in two pieces because they are cut from a ring.
    pub(super) fn next(&self, bytes_max: usize) -> (u64, (&[u8], &[u8])) {
        let from = self.in_flight_bytes();
        let room = self.window_bytes.saturating_sub(from).min(self.bytes.len() - from);
        let to = from + room.min(bytes_max);
        let (front, back) = self.bytes.as_slices();
        let split = front.len();
        let pieces = (
            &front[from.min(split)..to.min(split)],
            &back[from.saturating_sub(split)..to.saturating_sub(split)],
        );
        (self.sent, pieces)
    }

    /// The lane took the next `bytes` bytes. Returns how many of them had been sent before.
    pub(super) fn advance(&mut self, bytes: usize) -> usize {
        let resent = self.sent_max.saturating_sub(self.sent).min(bytes as u64);
        self.sent += bytes as u64;
        self.sent_max = self.sent_max.max(self.sent);
        resent as usize
    }

    /// The peer has every byte before `position`.
    pub(super) fn acknowledge(
        &mut self,
        position: u64,
        window_bytes_max: usize,
        now: Duration,
    ) -> Heard {
        if position > self.sent_max {
            return Heard::Impossible;
        }
        if position <= self.acknowledged {
            return Heard::Old;
        }
        self.bytes.drain(..(position - self.acknowledged) as usize);
        if self.bytes.is_empty() {
            self.bytes.shrink_to(BUFFER_KEPT_MAX);
        }
        self.acknowledged = position;
        self.sent = self.sent.max(position);
        self.window_bytes = self.window_bytes.saturating_mul(2).min(window_bytes_max);
        self.resends = 0;
        self.silent_since = (!self.bytes.is_empty()).then_some(now);
        Heard::Progress
    }

    /// When the stream is to be resent unless something is heard; starts the clock where needed.
    pub(super) fn resend_at(&mut self, now: Duration, resend_after: Duration) -> Option<Duration> {
        if self.bytes.is_empty() {
            return None;
        }
        Some(self.silent_since.get_or_insert(now).saturating_add(resend_after))
    }

    /// Nothing was heard until the deadline: goes back to what is not acknowledged. Returns how
    /// many times that has happened in this silence.
    pub(super) fn resend(&mut self, window_bytes: usize, now: Duration) -> u32 {
        self.rewind(window_bytes);
        self.silent_since = Some(now);
        self.resends = self.resends.saturating_add(1);
        self.resends
    }

    /// Goes back to what is not acknowledged, on a lane where nothing has been sent yet.
    pub(super) fn restart(&mut self, window_bytes: usize) {
        self.rewind(window_bytes);
        self.silent_since = None;
        self.resends = 0;
    }

    fn rewind(&mut self, window_bytes: usize) {
        self.sent = self.acknowledged;
        self.window_bytes = window_bytes;
    }
}
