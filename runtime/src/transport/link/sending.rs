//! How a port sends: messages that wait, acknowledgements that it owes, and bytes that were not
//! acknowledged in time.

use super::frame::{self, HEADER_BYTES};
use super::{LaneError, LinkError, Port};
use std::time::Duration;
use ultramarine_topology::Pe;

/// When to try again on a lane that was full: no lane says when it has room again.
const RETRY_AFTER: Duration = Duration::from_millis(1);

impl Port {
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
