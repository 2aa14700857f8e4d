//! Both streams between this PE and one peer, and their acknowledgements.

use super::buffers::Buffers;
use super::credit::{Budget, Loan};
use super::frame::{Frame, Header};
use super::inbound::{Inbound, PayloadOutcome};
use super::offers::Fetches;
use super::outbound::{AckOutcome, Outbound};
use super::records::{CopyRecord, Malformed};
use crate::array::Array;
use crate::transport::handoff::ArrayHandoff;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Ball, Pe};

/// How long an acknowledgement may wait for a frame in the same direction, or for further frames
/// that it acknowledges as well. A PE that fishes speaks to hundreds of others, once to most: after
/// 1 ms, every other frame was an acknowledgement.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(100);

/// The same when the job ends, and all PEs wait for acknowledgements.
const ACKNOWLEDGE_SOON_AFTER: Duration = Duration::from_millis(1);

/// Acknowledgements that wait fall due at multiples of this: many at the same moment, as each
/// moment costs a look at each peer.
const ACKNOWLEDGE_EVERY: Duration = Duration::from_millis(50);

/// The least number of acknowledgements that a sender gets while it uses up its credit, so that a
/// steady flow never waits for one: if it has more to send, and if it has not.
const ACKNOWLEDGEMENTS_PER_WINDOW: [u64; 2] = [4, 2];

/// How much of a stream moves at a time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Flow {
    /// Bytes of the stream that fit into a frame of the lane.
    pub(super) frame_bytes: usize,
    /// The most bytes that may be in flight, in one direction.
    pub(super) window_bytes: usize,
}

/// The limits of a port's streams.
#[derive(Clone, Copy)]
pub(super) struct StreamLimits {
    pub(super) far: Flow,
    /// PEs to which the lane's frames are shorter.
    pub(super) near: Option<(Ball, Flow)>,
    pub(super) message_bytes_max: usize,
    pub(super) resend_after: Duration,
    /// Whether acknowledgements are urgent.
    pub(super) is_ending: bool,
}

impl StreamLimits {
    /// When an acknowledgement must be sent, at the latest.
    fn acknowledge_by(&self, now: Duration) -> Duration {
        if self.is_ending {
            return now + ACKNOWLEDGE_SOON_AFTER;
        }
        // The sender must not send its bytes again, or suspect this PE.
        let by = now + ACKNOWLEDGE_AFTER.min(self.resend_after / 4);
        let every = ACKNOWLEDGE_EVERY.min(self.resend_after / 8).max(Duration::from_nanos(1));
        let count = by.as_nanos().div_ceil(every.as_nanos());
        Duration::from_nanos((count * every.as_nanos()) as u64)
    }

    /// How much of the streams between this PE and a peer moves at a time.
    pub(super) fn flow(&self, peer: Pe) -> Flow {
        self.near.filter(|(near, _)| near.contains(peer)).map_or(self.far, |(_, flow)| flow)
    }
}

/// What all peers of a port share.
pub(super) struct PortResources {
    pub(super) buffers: Buffers,
    pub(super) budget: Budget,
    /// The number of arrays that are offered to peers and not yet answered.
    pub(super) offered: usize,
}

/// See the [module](self).
pub(super) struct PeerStreams {
    pub(super) outbound: Outbound,
    pub(super) inbound: Inbound,
    /// Arrays that this PE copies out of the peer's memory, since the peer offered the first.
    fetches: Option<Box<Fetches>>,
    /// The position in the peer's stream that this PE's last frame acknowledged.
    acknowledged: u64,
    /// The credit that this frame gave.
    credited: u32,
    loan: Loan,
    /// When an acknowledgement must be sent, if one is owed.
    acknowledge_by: Option<Duration>,
    /// When the peer's last frame arrived.
    pub(super) heard: Duration,
    /// Nothing more is sent to this peer or taken from it.
    pub(super) is_closed: bool,
    /// Whether the port's list of peers to send to has this peer.
    pub(super) is_ready: bool,
    /// Whether the port's list of peers with a running clock has this peer.
    pub(super) is_timed: bool,
}

/// What is left of the streams of a pair between which nothing is on its way: their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RestingStreams {
    sent: u64,
    received: u64,
}

/// What became of a frame.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum FrameOutcome {
    Good,
    /// All its bytes had arrived before.
    Duplicate,
    /// Bytes before its own are missing.
    Gap,
    /// It acknowledges bytes that were never sent.
    Impossible,
    /// The peer is closed.
    Refused,
    /// No port writes such bytes, or they hold a message over the limit. The peer is closed now.
    Malformed(Malformed),
}

impl PeerStreams {
    pub(super) fn new(flow: Flow, handoff: Option<Arc<ArrayHandoff>>) -> Self {
        PeerStreams {
            outbound: Outbound::new(flow),
            inbound: Inbound::new(handoff),
            fetches: None,
            acknowledged: 0,
            credited: 0,
            loan: Loan::default(),
            acknowledge_by: None,
            heard: Duration::ZERO,
            is_closed: false,
            is_ready: false,
            is_timed: false,
        }
    }

    /// Streams that go on where they rested.
    pub(super) fn resume(
        RestingStreams { sent, received }: RestingStreams,
        flow: Flow,
        handoff: Option<Arc<ArrayHandoff>>,
    ) -> Self {
        PeerStreams {
            outbound: Outbound::resume(sent, flow),
            inbound: Inbound::resume(received, handoff.clone()),
            acknowledged: received,
            ..PeerStreams::new(flow, handoff)
        }
    }

    /// The positions of the streams, if nothing is on its way between the two, nothing is lent, and
    /// no list of the port has the peer.
    pub(super) fn resting(&self) -> Option<RestingStreams> {
        let is_listed = self.is_ready || self.is_timed || self.fetches.is_some();
        let received = self.inbound.position();
        let is_resting = self.acknowledge_by.is_none()
            && self.acknowledged == received
            && self.inbound.is_resting()
            && self.loan.is_over(received)
            && !self.is_closed
            && !is_listed;
        let sent = self.outbound.resting_at().filter(|_| is_resting)?;
        Some(RestingStreams { sent, received })
    }

    /// Takes a frame of this peer.
    pub(super) fn receive(
        &mut self,
        Frame { header, payload }: Frame<'_>,
        limits: &StreamLimits,
        resources: &mut PortResources,
        now: Duration,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> FrameOutcome {
        if self.is_closed {
            return FrameOutcome::Refused;
        }
        self.heard = now;
        let (position, credit) = (header.acknowledged, header.credit);
        let buffers = &mut resources.buffers;
        let heard = self.outbound.acknowledge(position, credit, now, buffers);
        if heard == AckOutcome::Impossible {
            return FrameOutcome::Impossible;
        }
        if payload.is_empty() {
            return FrameOutcome::Good;
        }
        let limit = limits.message_bytes_max;
        let taken = self.inbound.take(header.sequence, payload, limit, buffers, deliver);
        match taken.and_then(|taken| self.handle_copy_records(resources).map(|()| taken)) {
            Ok(PayloadOutcome::New) => {
                self.schedule_acknowledgement(header.waiting, limits, &mut resources.budget, now);
                FrameOutcome::Good
            }
            // The acknowledgement of the first copy may have been lost: the peer needs another.
            Ok(PayloadOutcome::Duplicate) => {
                self.acknowledge_by = Some(now);
                FrameOutcome::Duplicate
            }
            Ok(PayloadOutcome::Gap) => FrameOutcome::Gap,
            Err(malformed) => {
                self.close(resources);
                FrameOutcome::Malformed(malformed)
            }
        }
    }

    /// Handles what the peer has said about arrays that are copied.
    fn handle_copy_records(&mut self, resources: &mut PortResources) -> Result<(), Malformed> {
        while let Some(copy_record) = self.inbound.take_copy_record() {
            match copy_record {
                CopyRecord::Offered(message, offer) => {
                    self.fetches.get_or_insert_default().add(message, offer);
                }
                CopyRecord::Replied(reply) => {
                    let settled = self.outbound.handle_reply(reply, &mut resources.buffers);
                    resources.offered -= settled.ok_or(Malformed::Nonsense)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the next part of the arrays that the peer has offered, and delivers what need not
    /// wait any longer.
    pub(super) fn fetch(
        &mut self,
        part_bytes: usize,
        resources: &mut PortResources,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) {
        let Some(fetches) = &mut self.fetches else { return };
        while let Some(reply) = fetches.go_on(part_bytes, deliver) {
            self.outbound.reply(reply, &mut resources.buffers);
            if !fetches.is_ready() {
                return;
            }
        }
    }

    /// New bytes have arrived, and at least `waiting` more follow: gives the peer credit, and
    /// decides when to acknowledge.
    fn schedule_acknowledgement(
        &mut self,
        waiting: u32,
        limits: &StreamLimits,
        budget: &mut Budget,
        now: Duration,
    ) {
        let (position, flow) = (self.inbound.position(), self.outbound.flow());
        budget.renew(&mut self.loan, position, waiting, flow);
        let owed_bytes = position - self.acknowledged;
        let may_bytes = u64::from(self.credited).max(flow.frame_bytes as u64);
        let may_bytes = may_bytes.min(flow.window_bytes as u64);
        if owed_bytes >= may_bytes / ACKNOWLEDGEMENTS_PER_WINDOW[usize::from(waiting == 0)] {
            self.acknowledge_by = Some(now);
        } else {
            self.acknowledge_by.get_or_insert_with(|| limits.acknowledge_by(now));
        }
    }

    /// Appends the bytes of the next frame for this peer, if any. Returns the frame's header.
    pub(super) fn next(&self, frame: &mut Vec<u8>) -> Header {
        let (sequence, waiting) = self.outbound.next(frame);
        let acknowledged = self.inbound.position();
        let credit = self.loan.credit(acknowledged);
        let waiting = waiting.try_into().unwrap_or(u32::MAX);
        Header { sequence, acknowledged, credit, waiting }
    }

    /// Whether a frame can be sent now, if only to acknowledge.
    pub(super) fn may_send(&self, now: Duration) -> bool {
        self.outbound.may_send() || self.acknowledge_by.is_some_and(|by| by <= now)
    }

    /// The lane took a frame with this header and this many bytes of the stream. Returns how many
    /// of these had been sent before.
    pub(super) fn has_sent(
        &mut self,
        header: &Header,
        bytes: usize,
        now: Duration,
        resources: &mut PortResources,
    ) -> usize {
        self.acknowledged = header.acknowledged;
        self.credited = header.credit;
        self.acknowledge_by = None;
        self.outbound.advance(bytes, now, &mut resources.buffers)
    }

    /// When the next resend or acknowledgement falls due.
    pub(super) fn deadline(&self, resend_after: Duration) -> Option<Duration> {
        let resend_at = self.outbound.resend_at(resend_after);
        match (resend_at, self.acknowledge_by) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The acknowledgement that it may owe becomes urgent.
    pub(super) fn acknowledge_soon(&mut self, now: Duration) {
        self.acknowledge_by = self.acknowledge_by.map(|by| by.min(now));
    }

    /// Whether nothing is on its way in either direction.
    pub(super) fn is_idle(&self) -> bool {
        self.outbound.is_empty() && self.acknowledge_by.is_none()
    }

    /// Drops what waits, and everything that may still arrive.
    pub(super) fn close(&mut self, resources: &mut PortResources) {
        resources.budget.end(&mut self.loan);
        resources.offered -= self.outbound.offered();
        self.is_closed = true;
        self.outbound = Outbound::default();
        self.inbound = Inbound::default();
        self.fetches = None;
        self.acknowledge_by = None;
    }

    /// Puts the peer, which is `pe`, on the list of peers to send to.
    pub(super) fn enlist_ready(&mut self, pe: Pe, ready: &mut Vec<Pe>) {
        if !std::mem::replace(&mut self.is_ready, true) {
            ready.push(pe);
        }
    }

    /// Puts the peer, which is `pe`, on the list of peers with arrays to copy, if it has any.
    pub(super) fn enlist_fetched(&mut self, pe: Pe, fetched: &mut VecDeque<Pe>) {
        let are_open = self.fetches.as_ref().is_some_and(|fetches| fetches.are_open());
        if are_open && !fetched.contains(&pe) {
            fetched.push_back(pe);
        }
    }

    /// Puts the peer, which is `pe`, on the list of peers for which something may fall due.
    pub(super) fn enlist_timed(&mut self, pe: Pe, timed: &mut Vec<Pe>) {
        if !std::mem::replace(&mut self.is_timed, true) {
            timed.push(pe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_rests_only_while_nothing_is_owed_lent_or_listed() {
        let flow = Flow { frame_bytes: 100, window_bytes: 1000 };
        let rested = RestingStreams { sent: 7, received: 9 };
        let resumed = || PeerStreams::resume(rested, flow, None);
        assert_eq!(resumed().resting(), Some(rested));
        let mut budget = Budget::new(10_000);
        let half = [5_u8, 0, 0, 0, b'h'];
        let disturbances: [&mut dyn FnMut(&mut PeerStreams); 9] = [
            &mut |peer| peer.acknowledge_by = Some(Duration::ZERO),
            &mut |peer| peer.acknowledged = 8,
            &mut |peer| budget.renew(&mut peer.loan, 9, 5000, flow),
            &mut |peer| _ = peer.outbound.push(b"more", None, false, &mut Buffers::default()),
            &mut |peer| peer.is_timed = true,
            &mut |peer| peer.is_ready = true,
            &mut |peer| peer.is_closed = true,
            &mut |peer| peer.fetches = Some(Box::default()),
            &mut |peer| {
                // The beginning of a message, which is acknowledged.
                let buffers = &mut Buffers::default();
                let taken = peer.inbound.take(9, &half, 1000, buffers, &mut |_, _| {});
                assert!(matches!(taken, Ok(PayloadOutcome::New)));
                peer.acknowledged = peer.inbound.position();
            },
        ];
        for (number, disturb) in disturbances.into_iter().enumerate() {
            let mut peer = resumed();
            disturb(&mut peer);
            assert_eq!(peer.resting(), None, "number {number}");
        }
    }
}
