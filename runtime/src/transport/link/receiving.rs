//! How a port receives: what it does with the frames that arrive.

use super::frame::Frame;
use super::peer::FrameOutcome;
use super::records::Malformed;
use super::{Deliver, LinkCounters, LinkError, Port};
use std::time::Duration;
use ultramarine_topology::Pe;

/// A peer for which nothing is due any more is looked at after this time, to let it rest.
const REST_AFTER: Duration = Duration::from_millis(500);

impl LinkCounters {
    /// Counts what became of a frame. It is an error if the message in it is none.
    fn count(&mut self, outcome: &FrameOutcome, from: Pe, limit: usize) -> Result<(), LinkError> {
        match outcome {
            FrameOutcome::Good => {}
            FrameOutcome::Duplicate => self.duplicates += 1,
            FrameOutcome::Gap => self.gaps += 1,
            FrameOutcome::Impossible => self.corrupt += 1,
            FrameOutcome::Refused => self.refused += 1,
            &FrameOutcome::Malformed(Malformed::TooLong(bytes)) => {
                self.oversized += 1;
                return Err(LinkError::MessageTooLong { from, bytes, limit });
            }
            FrameOutcome::Malformed(Malformed::Nonsense) => {
                return Err(LinkError::Malformed { from });
            }
        }
        Ok(())
    }
}

impl Port {
    pub(super) fn receive(
        &mut self,
        now: Duration,
        deliver: &mut Deliver<'_>,
    ) -> Result<(), LinkError> {
        let mut failure = Ok(());
        let Port {
            me,
            lane,
            handoff,
            limits,
            resources,
            counters,
            peers,
            ready,
            timed,
            fetched,
            due,
            is_streaming,
            ..
        } = self;
        lane.poll(&mut |from, bytes| {
            counters.frames_received += 1;
            counters.bytes_received += bytes.len() as u64;
            let is_peer = peers.exist(from) && from != *me;
            let Some(frame) = Frame::decode(from, *me, bytes).filter(|_| is_peer) else {
                counters.corrupt += 1;
                return;
            };
            let Some(peer) = peers.open(from, limits, handoff.as_ref()) else {
                counters.refused += 1;
                return;
            };
            let mut messages = 0;
            let outcome = peer.receive(frame, limits, resources, now, &mut |message, array| {
                messages += 1;
                deliver(from, message, array);
            });
            counters.messages_received += messages;
            if let Err(error) = counters.count(&outcome, from, limits.message_bytes_max) {
                failure = Err(error);
            }
            *is_streaming |= frame.header.waiting > 0
                || peer.outbound.backlog_bytes() > peer.outbound.flow().frame_bytes;
            peer.enlist_fetched(from, fetched);
            if peer.may_send(now) {
                peer.enlist_ready(from, ready);
            } else if let Some(deadline) = peer.deadline(limits.resend_after) {
                *due = deadline.min(*due);
                peer.enlist_timed(from, timed);
            } else if peer.is_timed {
                *due = (*due).min(now + REST_AFTER);
            } else {
                peers.rest(from);
            }
        })?;
        failure
    }

    /// Copies the next part of an array that the first of the waiting peers has offered.
    pub(super) fn fetch(&mut self, deliver: &mut Deliver<'_>) {
        let Some(from) = self.fetched.pop_front() else { return };
        let Some(peer) = self.peers.get_mut(from) else { return };
        let counters = &mut self.counters;
        let part_bytes = self.part_size.next(counters.messages_sent + counters.messages_received);
        peer.fetch(part_bytes, &mut self.resources, &mut |message, array| {
            counters.messages_received += 1;
            counters.bytes_fetched += array.as_ref().map_or(0, |array| array.size_bytes() as u64);
            deliver(from, message, array);
        });
        peer.enlist_fetched(from, &mut self.fetched);
        if peer.outbound.may_send() {
            peer.enlist_ready(from, &mut self.ready);
        }
    }
}
