//! A reliable first-in-first-out channel between every two PEs, above any [`Lane`].
//!
//! Towards each peer a [`Port`] keeps one stream of bytes, in which every message stands behind
//! its length. [`flush`](Port::flush) cuts the stream into frames, many small messages to a frame
//! or many frames to a large message; the receiving port puts the frames together again. Each
//! frame carries its position in the stream, the position up to which the other direction has
//! arrived, and a checksum. What is not acknowledged for a while is sent again, from there on
//! (go-back-N); what arrives twice, out of order or damaged is dropped and counted.
//!
//! Because positions count bytes and not frames, a port can [change its lane](Port::switch_lane)
//! between any two frames, also for one with shorter frames, and nothing is lost or doubled.
//!
//! A port owns no thread and no clock: the caller passes in the time since any fixed moment. It
//! must never know what a message means, nor who is alive: it only says who is silent.
//!
//! ```
//! use std::time::Duration;
//! use ultramarine_runtime::transport::{Port, PortSettings, memory};
//! use ultramarine_topology::Pe;
//!
//! let mut ports: Vec<Port> = memory::network(2)
//!     .into_iter()
//!     .zip(0..)
//!     .map(|(lane, pe)| Port::new(Pe::new(pe), 2, Box::new(lane), PortSettings::default()))
//!     .collect();
//! ports[0].send(Pe::new(1), b"hello")?;
//! ports[0].flush(Duration::ZERO)?;
//! let mut heard = Vec::new();
//! ports[1].poll(Duration::ZERO, &mut |from, message| heard.push((from, message.to_vec())))?;
//! assert_eq!(heard, [(Pe::ROOT, b"hello".to_vec())]);
//! # Ok::<(), ultramarine_runtime::transport::link::LinkError>(())
//! ```

mod counters;
mod error;
mod frame;
mod inbound;
mod outbound;
mod peer;
mod settings;
#[cfg(test)]
mod tests;

pub use counters::{LinkCounters, Progress};
pub use error::LinkError;
pub use settings::PortSettings;

use super::pieces::{PREFIX_BYTES, Pieces, TooLong};
use super::{Connections, Lane, LaneError, Sleeper};
use frame::{Frame, HEADER_BYTES};
use peer::{Peer, Receipt};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// When to try again on a lane that was full: no lane says when it no longer is.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// One PE's end of the channels to all others. See the [module](self).
pub struct Port {
    me: Pe,
    lane: Box<dyn Lane>,
    settings: PortSettings,
    /// Bytes of the stream that fit into a frame of the lane.
    payload_bytes_max: usize,
    counters: LinkCounters,
    /// The streams, made when first needed.
    peers: Vec<Option<Box<Peer>>>,
    /// The peers for whom a frame can go out now; those, and only those, have `is_ready` set.
    ready: Vec<Pe>,
    /// The peers for whom something may fall due; those, and only those, have `is_timed` set.
    timed: Vec<Pe>,
    /// Nothing falls due before this moment.
    due: Duration,
    /// Messages to oneself, until the next poll.
    own: Vec<u8>,
    /// The other buffer for messages to oneself, so that neither is ever allocated twice.
    own_spare: Vec<u8>,
    /// The frame being written.
    frame: Vec<u8>,
}

impl Port {
    /// The port of PE `me`, in a job of `pes` PEs, above `lane`.
    ///
    /// # Panics
    ///
    /// If the lane's frames have no room for anything but a frame's header (24 bytes).
    pub fn new(me: Pe, pes: u32, lane: Box<dyn Lane>, settings: PortSettings) -> Port {
        Port {
            me,
            payload_bytes_max: payload_bytes_max(&*lane),
            lane,
            settings: settings.within_range(),
            counters: LinkCounters::default(),
            peers: std::iter::repeat_with(|| None).take(pes as usize).collect(),
            ready: Vec::new(),
            timed: Vec::new(),
            due: Duration::MAX,
            own: Vec::new(),
            own_spare: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// Appends a message to the stream towards `to`; the next [`poll`](Self::poll) or
    /// [`flush`](Self::flush) sends it. A message to oneself is delivered by the next `poll`; one
    /// to a peer that was [closed](Self::close) goes nowhere.
    ///
    /// # Errors
    ///
    /// There is no such PE, the message is too long, or too much is waiting for that PE already.
    /// Nothing was queued, and the port can go on.
    pub fn send(&mut self, to: Pe, message: &[u8]) -> Result<(), LinkError> {
        let limit = self.settings.message_bytes_max;
        if message.len() > limit {
            return Err(LinkError::TooLongToSend { to, bytes: message.len(), limit });
        }
        let backlog = PREFIX_BYTES + message.len();
        if to == self.me {
            self.check_backlog(to, self.own.len() + backlog)?;
            self.own.extend_from_slice(&(message.len() as u32).to_le_bytes());
            self.own.extend_from_slice(message);
        } else {
            let limit = self.settings.backlog_bytes_max;
            let window_bytes = self.window_bytes();
            let slot =
                self.peers.get_mut(to.index()).ok_or(LinkError::Lane(LaneError::NoSuchPe(to)))?;
            let peer = slot.get_or_insert_with(|| Box::new(Peer::new(window_bytes)));
            if peer.is_closed {
                return Ok(());
            }
            let backlog = peer.outbound.backlog_bytes() + backlog;
            if backlog > limit {
                return Err(LinkError::Backlog { pe: to, bytes: backlog, limit });
            }
            peer.outbound.push(message);
            peer.enlist_ready(to, &mut self.ready);
        }
        self.counters.messages_sent += 1;
        Ok(())
    }

    fn check_backlog(&self, pe: Pe, bytes: usize) -> Result<(), LinkError> {
        let limit = self.settings.backlog_bytes_max;
        if bytes > limit { Err(LinkError::Backlog { pe, bytes, limit }) } else { Ok(()) }
    }

    fn window_bytes(&self) -> usize {
        self.payload_bytes_max.saturating_mul(self.settings.window_frames as usize)
    }

    /// Takes what has arrived, hands every complete message to `deliver`, in order, and sends what
    /// is to be sent: queued messages, acknowledgements, and what has waited for an
    /// acknowledgement too long. `now` is the time since any fixed moment; it must not go back.
    ///
    /// # Errors
    ///
    /// The lane failed, a peer announced a message over the limit (which closes its stream), or a
    /// peer has been silent too long (said again after each further
    /// [`resend_after`](PortSettings::resend_after) until the peer is heard or
    /// [closed](Self::close)). Other peers are unaffected, and the port can go on.
    pub fn poll(
        &mut self,
        now: Duration,
        deliver: &mut dyn FnMut(Pe, &[u8]),
    ) -> Result<Progress, LinkError> {
        let before = self.counters;
        self.deliver_own(deliver);
        let received = self.receive(now, deliver);
        let timed = self.check_timers(now);
        self.flush(now)?;
        received?;
        timed?;
        let after = &self.counters;
        Ok(Progress {
            messages: (after.messages_received - before.messages_received) as usize,
            frames_received: (after.frames_received - before.frames_received) as usize,
            frames_sent: (after.frames_sent - before.frames_sent) as usize,
        })
    }

    fn deliver_own(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) {
        if self.own.is_empty() {
            return;
        }
        std::mem::swap(&mut self.own, &mut self.own_spare);
        let (me, received) = (self.me, &mut self.counters.messages_received);
        let taken = Pieces::default().cut(&self.own_spare, usize::MAX, &mut |message| {
            *received += 1;
            deliver(me, message);
        });
        debug_assert!(taken.is_ok(), "nothing is longer than usize::MAX");
        self.own_spare.clear();
        self.own_spare.shrink_to(1 << 20);
    }

    fn receive(
        &mut self,
        now: Duration,
        deliver: &mut dyn FnMut(Pe, &[u8]),
    ) -> Result<(), LinkError> {
        let mut failure = None;
        let window_bytes = self.window_bytes();
        let Port { me, lane, settings, counters, peers, ready, timed, due, .. } = self;
        lane.poll(&mut |from, bytes| {
            counters.frames_received += 1;
            counters.bytes_received += bytes.len() as u64;
            let Some(slot) = peers.get_mut(from.index()).filter(|_| from != *me) else {
                counters.corrupt += 1;
                return;
            };
            let Some(frame) = Frame::decode(from, *me, bytes) else {
                counters.corrupt += 1;
                return;
            };
            let peer = slot.get_or_insert_with(|| Box::new(Peer::new(window_bytes)));
            let limit = settings.message_bytes_max;
            let mut messages = 0;
            let receipt = peer.receive(frame, window_bytes, limit, now, &mut |message| {
                messages += 1;
                deliver(from, message);
            });
            counters.messages_received += messages;
            match receipt {
                Receipt::Good => {}
                Receipt::Duplicate => counters.duplicates += 1,
                Receipt::Gap => counters.gaps += 1,
                Receipt::Impossible => counters.corrupt += 1,
                Receipt::Refused => counters.refused += 1,
                Receipt::TooLong(TooLong(bytes)) => {
                    counters.oversized += 1;
                    failure = Some(LinkError::MessageTooLong { from, bytes, limit });
                }
            }
            if peer.may_send(now) {
                peer.enlist_ready(from, ready);
            } else if let Some(deadline) = peer.deadline(now, settings.resend_after) {
                *due = deadline.min(*due);
                peer.enlist_timed(from, timed);
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Looks at the clock of every peer that has one running, if any may be due.
    fn check_timers(&mut self, now: Duration) -> Result<(), LinkError> {
        if now < self.due {
            return Ok(());
        }
        self.due = Duration::MAX;
        let mut failure = None;
        let Port { settings, peers, ready, timed, due, payload_bytes_max, .. } = self;
        timed.retain(|&pe| {
            let Some(peer) = peers[pe.index()].as_mut() else { return false };
            if peer.outbound.resend_at(now, settings.resend_after).is_some_and(|at| at <= now) {
                let resends = peer.outbound.resend(*payload_bytes_max, now);
                if resends > settings.resends_max {
                    let silent = settings.resend_after.saturating_mul(resends);
                    failure = Some(LinkError::Unresponsive { pe, silent });
                }
            }
            // Whoever is sent to gets a new clock then.
            let deadline = if peer.may_send(now) {
                peer.enlist_ready(pe, ready);
                None
            } else {
                peer.deadline(now, settings.resend_after)
            };
            *due = deadline.map_or(*due, |deadline| deadline.min(*due));
            peer.is_timed = deadline.is_some();
            peer.is_timed
        });
        failure.map_or(Ok(()), Err)
    }

    /// Sends what is to be sent as far as the lane takes it.
    ///
    /// # Errors
    ///
    /// The lane failed.
    pub fn flush(&mut self, now: Duration) -> Result<(), LinkError> {
        let mut at = 0;
        while let Some(&to) = self.ready.get(at) {
            if self.flush_peer(to, now)? {
                self.ready.swap_remove(at);
            } else {
                at += 1;
            }
        }
        if !self.ready.is_empty() {
            self.due = self.due.min(now + RETRY_AFTER);
        }
        Ok(())
    }

    /// Sends to one peer. Returns whether the lane took everything.
    fn flush_peer(&mut self, to: Pe, now: Duration) -> Result<bool, LinkError> {
        let Some(peer) = self.peers[to.index()].as_mut() else { return Ok(true) };
        let mut is_done = true;
        while peer.may_send(now) {
            let (sequence, payload) = peer.outbound.next(self.payload_bytes_max);
            let payload_bytes = payload.0.len() + payload.1.len();
            let position = peer.inbound.position();
            frame::encode(&mut self.frame, (self.me, to), sequence, position, payload);
            if !self.lane.send(to, &self.frame)? {
                is_done = false;
                break;
            }
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += self.frame.len() as u64;
            self.counters.bytes_resent += peer.outbound.advance(payload_bytes) as u64;
            peer.has_acknowledged(position);
        }
        if let Some(deadline) = peer.deadline(now, self.settings.resend_after) {
            // What the lane did not take now may have been due already.
            self.due = self.due.min(deadline.max(now + RETRY_AFTER));
            peer.enlist_timed(to, &mut self.timed);
        }
        peer.is_ready = !is_done;
        Ok(is_done)
    }

    /// Goes on with another lane: everything that is not acknowledged is sent again over it. What
    /// the old lane still delivers, it delivers no more.
    ///
    /// # Panics
    ///
    /// If the lane's frames have no room for anything but a frame's header (24 bytes).
    pub fn switch_lane(&mut self, lane: Box<dyn Lane>) {
        self.payload_bytes_max = payload_bytes_max(&*lane);
        self.lane = lane;
        for (slot, pe) in self.peers.iter_mut().zip(0..) {
            let Some(peer) = slot else { continue };
            peer.outbound.restart(self.payload_bytes_max);
            if peer.outbound.may_send() {
                peer.enlist_ready(Pe::new(pe), &mut self.ready);
            }
        }
    }

    /// Ends the channel to a PE that is dead: what waits for it is dropped, and whatever it may
    /// still send, and is sent to it, is dropped from now on.
    pub fn close(&mut self, pe: Pe) {
        let window_bytes = self.window_bytes();
        if let Some(slot) = self.peers.get_mut(pe.index()) {
            slot.get_or_insert_with(|| Box::new(Peer::new(window_bytes))).close();
        }
        self.lane.forget(pe);
    }

    /// Whether these PEs have acknowledged everything that they were sent.
    pub fn has_reached(&self, pes: impl IntoIterator<Item = Pe>) -> bool {
        let peer = |pe: Pe| self.peers.get(pe.index()).and_then(Option::as_ref);
        pes.into_iter().filter_map(peer).all(|peer| peer.outbound.is_empty())
    }

    /// Whether everything sent has been acknowledged (messages to oneself: delivered), no
    /// acknowledgement is owed, and the lane has let go of everything. For an orderly shutdown.
    pub fn is_idle(&mut self) -> bool {
        let peers = &self.peers;
        let is_idle = |pe: &Pe| peers[pe.index()].as_ref().is_none_or(|peer| peer.is_idle());
        self.own.is_empty()
            && self.ready.is_empty()
            && self.timed.iter().all(is_idle)
            && self.lane.is_flushed()
    }

    /// The moment, in the caller's time, at which [`poll`](Self::poll) should be called although
    /// nothing arrives. It may turn out that nothing is due then.
    pub fn next_deadline(&self) -> Option<Duration> {
        (self.due < Duration::MAX).then_some(self.due)
    }

    /// The lane's sleeper; another one after [`switch_lane`](Self::switch_lane).
    pub fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.lane.sleeper()
    }

    /// The lane's name.
    pub fn lane_name(&self) -> &'static str {
        self.lane.name()
    }

    /// The connections of the lane; after [`switch_lane`](Self::switch_lane) those of the new one.
    pub fn connections(&self) -> Connections {
        self.lane.connections()
    }

    /// What this port has seen since it was made.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }
}

fn payload_bytes_max(lane: &dyn Lane) -> usize {
    let frame_bytes_max = lane.frame_bytes_max();
    assert!(frame_bytes_max > HEADER_BYTES, "the lane's frames hold no more than a header");
    frame_bytes_max - HEADER_BYTES
}
