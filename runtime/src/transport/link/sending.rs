//! How a port sends: messages, those that wait, acknowledgements that it owes, and bytes that were
//! not acknowledged in time.

use super::frame::{self, HEADER_BYTES};
use super::offers::OFFERED_BYTES_MIN;
use super::outbound::ArrayRoute;
use super::queue::array_bytes;
use super::records::{MESSAGE_BYTES_MAX, PREFIX_BYTES};
use super::{LaneError, LinkError, Port};
use crate::array::Array;
use std::time::Duration;
use ultramarine_topology::Pe;

/// When to try again on a lane that was full: no lane says when it has room again.
const RETRY_AFTER: Duration = Duration::from_millis(1);

impl Port {
    /// Appends a message to the stream towards `to`. The next [`poll`](Self::poll) or
    /// [`flush`](Self::flush) sends it. A message of this PE to itself is delivered by the next
    /// `poll`; a message to a [closed](Self::close) peer is dropped.
    ///
    /// The message's array is not copied. Other messages to the same peer do not wait for it, so
    /// messages that are sent later may be delivered earlier. (But see
    /// [`send_in_order`](Self::send_in_order).)
    ///
    /// `Ok(false)`: too much is waiting for that PE already. Nothing was queued; try again after a
    /// `poll` in which the peer has acknowledged some. If nothing waits, a message always fits.
    ///
    /// # Errors
    ///
    /// There is no such PE, or the message or the array is too long. Nothing was queued, and the
    /// port can go on.
    pub fn send(
        &mut self,
        to: Pe,
        message: &[u8],
        array: Option<&Array>,
    ) -> Result<bool, LinkError> {
        self.send_as(to, message, array, false)
    }

    /// [Sends](Self::send) a message that arrives after all that were sent in order to this PE
    /// before it, also after those with arrays.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn send_in_order(
        &mut self,
        to: Pe,
        message: &[u8],
        array: Option<&Array>,
    ) -> Result<bool, LinkError> {
        self.send_as(to, message, array, true)
    }

    /// Whether the array of a message in order is still on its way to this PE: a message without an
    /// array that must not arrive before it is to be sent in order, too.
    pub fn is_behind_array(&self, to: Pe) -> bool {
        self.peers.get(to).is_some_and(|peer| peer.outbound.has_in_order())
    }

    fn send_as(
        &mut self,
        to: Pe,
        message: &[u8],
        array: Option<&Array>,
        in_order: bool,
    ) -> Result<bool, LinkError> {
        let limit = self.settings.message_bytes_max;
        let array_bytes = array_bytes(array);
        for (bytes, limit) in [(message.len(), limit.min(MESSAGE_BYTES_MAX)), (array_bytes, limit)]
        {
            if bytes > limit {
                return Err(LinkError::TooLongToSend { to, bytes, limit });
            }
        }
        let bytes = PREFIX_BYTES + message.len() + array_bytes;
        let room =
            |waiting: usize| waiting == 0 || waiting + bytes <= self.settings.backlog_bytes_max;
        if to == self.me {
            if !room(self.own_bytes) {
                return Ok(false);
            }
            self.own_bytes += bytes;
            self.own.push_back((message.to_vec(), array.cloned()));
        } else {
            if !self.peers.exist(to) {
                return Err(LinkError::Lane(LaneError::NoSuchPe(to)));
            }
            let peer = self.peers.open(to, &self.limits, self.handoff.as_ref());
            let Some(peer) = peer.filter(|peer| !peer.is_closed) else { return Ok(true) };
            if !room(peer.outbound.backlog_bytes()) {
                return Ok(false);
            }
            let route = match &self.handoff {
                Some(handoff) => ArrayRoute::Handoff(handoff),
                None if array_bytes >= OFFERED_BYTES_MIN
                    && self.neighbours.is_some_and(|neighbours| neighbours.contains(to))
                    && peer.outbound.may_offer() =>
                {
                    ArrayRoute::Offer
                }
                None => ArrayRoute::Pieces,
            };
            let array = array.map(|array| (array, route));
            let buffers = &mut self.resources.buffers;
            let is_offer = peer.outbound.push(message, array, in_order, buffers);
            self.resources.offered += usize::from(is_offer);
            peer.enlist_ready(to, &mut self.ready);
        }
        self.counters.messages_sent += 1;
        Ok(true)
    }

    /// Checks every peer for which something may be due.
    pub(super) fn check_timers(&mut self, now: Duration) {
        if now < self.due {
            return;
        }
        self.due = Duration::MAX;
        let Port { settings, limits, peers, ready, timed, due, silences, .. } = self;
        timed.retain(|&pe| {
            let Some(peer) = peers.get_mut(pe) else { return false };
            if peer.outbound.resend_at(limits.resend_after).is_some_and(|at| at <= now) {
                let unheard = now.saturating_sub(peer.heard);
                silences.note_resend(pe, peer.outbound.resend(), unheard, settings);
            }
            // A peer that gets a frame now gets its next deadline then.
            let deadline = if peer.may_send(now) {
                peer.enlist_ready(pe, ready);
                None
            } else {
                peer.deadline(limits.resend_after)
            };
            *due = deadline.map_or(*due, |deadline| deadline.min(*due));
            let is_timed = deadline.is_some();
            peer.is_timed = is_timed;
            if !is_timed {
                peers.rest(pe);
            }
            is_timed
        });
    }

    /// Sends what can be sent, as far as the lane takes it.
    ///
    /// # Errors
    ///
    /// The lane failed.
    pub fn flush(&mut self, now: Duration) -> Result<(), LinkError> {
        let before = self.counters.frames_sent;
        let mut at = 0;
        while let Some(&to) = self.ready.get(at) {
            if self.flush_peer(to, now)? {
                self.ready.swap_remove(at);
            } else {
                at += 1;
            }
        }
        if self.ready.is_empty() {
            self.silences.lane_has_taken();
        } else {
            self.due = self.due.min(now + RETRY_AFTER);
            if self.counters.frames_sent == before {
                self.silences.lane_has_refused(now, &self.settings);
            } else {
                self.silences.lane_has_taken();
            }
        }
        Ok(())
    }

    /// Sends to one peer. Returns whether the lane took everything.
    fn flush_peer(&mut self, to: Pe, now: Duration) -> Result<bool, LinkError> {
        let Some(peer) = self.peers.get_mut(to) else { return Ok(true) };
        let mut is_done = true;
        while peer.may_send(now) {
            if !self.lane.has_room(to) {
                is_done = false;
                break;
            }
            frame::begin(&mut self.frame);
            let header = peer.next(&mut self.frame);
            let payload_bytes = self.frame.len() - HEADER_BYTES;
            frame::seal(&mut self.frame, (self.me, to), header);
            match self.lane.send(to, &mut self.frame) {
                Ok(true) => {}
                Ok(false) => {
                    is_done = false;
                    break;
                }
                Err(error) => {
                    if matches!(error, LaneError::HasLeft(_)) {
                        // Otherwise the frames for other peers would never get their turn.
                        peer.close(&mut self.resources);
                    }
                    // The rest is tried again soon, even if nothing else falls due.
                    self.due = self.due.min(now + RETRY_AFTER);
                    return Err(error.into());
                }
            }
            self.counters.frames_sent += 1;
            self.is_streaming |= header.waiting > 0;
            self.counters.bytes_sent += (HEADER_BYTES + payload_bytes) as u64;
            let resent = peer.has_sent(&header, payload_bytes, now, &mut self.resources);
            self.counters.bytes_resent += resent as u64;
        }
        if let Some(deadline) = peer.deadline(self.limits.resend_after) {
            // The frame that the lane did not take may have been due already.
            self.due = self.due.min(deadline.max(now + RETRY_AFTER));
            peer.enlist_timed(to, &mut self.timed);
        }
        peer.is_ready = !is_done;
        self.peers.rest(to);
        Ok(is_done)
    }
}
