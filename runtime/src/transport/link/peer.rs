//! Both streams of one pair, and the acknowledgements between them.

use super::frame::Frame;
use super::inbound::{Inbound, Taken};
use super::outbound::{Heard, Outbound};
use crate::transport::pieces::TooLong;
use std::time::Duration;
use ultramarine_topology::Pe;

/// How long an acknowledgement may wait for a frame that goes the same way.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(1);

/// How many acknowledgements a sender gets, at the least, while it fills its window, so that a
/// steady flow never waits for one.
const ACKNOWLEDGEMENTS_PER_WINDOW: u64 = 4;

/// What a port keeps about a PE that it talks to.
pub(super) struct Peer {
    pub(super) outbound: Outbound,
    pub(super) inbound: Inbound,
    /// The position in the peer's stream that our last frame acknowledged.
    acknowledged: u64,
    /// When an acknowledgement has to go out, if one is owed.
    acknowledge_by: Option<Duration>,
    /// Nothing more is sent to this peer or taken from it.
    pub(super) is_closed: bool,
    /// Whether the port's list of peers to send to has this peer.
    pub(super) is_ready: bool,
    /// Whether the port's list of peers with a running clock has this peer.
    pub(super) is_timed: bool,
}

/// What became of a frame.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Receipt {
    Good,
    Duplicate,
    Gap,
    /// It acknowledges what was never sent.
    Impossible,
    /// The peer is closed.
    Refused,
    /// It announces a message over the limit; the peer is closed now.
    TooLong(TooLong),
}

impl Peer {
    pub(super) fn new(window_bytes: usize) -> Self {
        Peer {
            outbound: Outbound::new(window_bytes),
            inbound: Inbound::default(),
            acknowledged: 0,
            acknowledge_by: None,
            is_closed: false,
            is_ready: false,
            is_timed: false,
        }
    }

    /// Takes a frame of this peer.
    pub(super) fn receive(
        &mut self,
        frame: Frame<'_>,
        window_bytes: usize,
        message_bytes_max: usize,
        now: Duration,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Receipt {
        if self.is_closed {
            return Receipt::Refused;
        }
        let heard = self.outbound.acknowledge(frame.acknowledged, window_bytes, now);
        if heard == Heard::Impossible {
            return Receipt::Impossible;
        }
        if frame.payload.is_empty() {
            return Receipt::Good;
        }
        match self.inbound.take(frame.sequence, frame.payload, message_bytes_max, deliver) {
            Ok(Taken::New) => {
                let owed_bytes = self.inbound.position() - self.acknowledged;
                if owed_bytes >= window_bytes as u64 / ACKNOWLEDGEMENTS_PER_WINDOW {
                    self.acknowledge_by = Some(now);
                } else {
                    self.acknowledge_by.get_or_insert(now + ACKNOWLEDGE_AFTER);
                }
                Receipt::Good
            }
            // The acknowledgement of the first copy may be lost: the peer needs another.
            Ok(Taken::Duplicate) => {
                self.acknowledge_by = Some(now);
                Receipt::Duplicate
            }
            Ok(Taken::Gap) => Receipt::Gap,
            Err(too_long) => {
                self.close();
                Receipt::TooLong(too_long)
            }
        }
    }

    /// Whether a frame can go out now, be it only to acknowledge.
    pub(super) fn may_send(&self, now: Duration) -> bool {
        self.outbound.may_send() || self.acknowledge_by.is_some_and(|by| by <= now)
    }

    /// A frame went out that acknowledges the peer's stream up to `position`.
    pub(super) fn has_acknowledged(&mut self, position: u64) {
        self.acknowledged = position;
        self.acknowledge_by = None;
    }

    /// When something falls due; starts the clock of what is not acknowledged where needed.
    pub(super) fn deadline(&mut self, now: Duration, resend_after: Duration) -> Option<Duration> {
        let resend_at = self.outbound.resend_at(now, resend_after);
        match (resend_at, self.acknowledge_by) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Whether nothing is on its way in either direction.
    pub(super) fn is_idle(&self) -> bool {
        self.outbound.is_empty() && self.acknowledge_by.is_none()
    }

    /// Drops what waits, and whatever may come.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.outbound = Outbound::default();
        self.inbound = Inbound::default();
        self.acknowledge_by = None;
    }

    /// Puts the peer, whose name is `pe`, on the list of those to send to.
    pub(super) fn enlist_ready(&mut self, pe: Pe, ready: &mut Vec<Pe>) {
        if !std::mem::replace(&mut self.is_ready, true) {
            ready.push(pe);
        }
    }

    /// Puts the peer, whose name is `pe`, on the list of those with a running clock.
    pub(super) fn enlist_timed(&mut self, pe: Pe, timed: &mut Vec<Pe>) {
        if !std::mem::replace(&mut self.is_timed, true) {
            timed.push(pe);
        }
    }
}
