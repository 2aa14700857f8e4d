//! A reliable first-in-first-out channel between every two PEs, above any [`Lane`].
//!
//! Towards each peer a [`Port`] keeps one stream of bytes, in which every message stands behind
//! its length, and the pieces of large arrays between them (`records/`).
//! [`flush`](Port::flush) cuts the stream into frames, many small messages to a frame
//! or many frames to an array; the receiving port puts the frames together again. Each
//! frame carries its position in the stream, the position up to which the other direction has
//! arrived, and a checksum. What is not acknowledged for a while is sent again, from there on
//! (go-back-N); what arrives twice, out of order or damaged is dropped and counted.
//!
//! A peer on the same host is told where a large array lies, and copies it from there
//! (`offers.rs`).
//!
//! How much may be in flight is bounded twice: towards each peer by a window, and towards a
//! receiver by the credit that it gives to all who send to it (`credit.rs`).
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
//! use ultramarine_topology::{Ball, Pe};
//!
//! let mut ports: Vec<Port> = memory::network(2)
//!     .into_iter()
//!     .zip(0..)
//!     .map(|(lane, pe)| Port::new(Pe::new(pe), 2, Box::new(lane), PortSettings::default()))
//!     .collect();
//! ports[0].send(Pe::new(1), b"hello", None)?;
//! ports[0].flush(Duration::ZERO)?;
//! let mut heard = Vec::new();
//! ports[1].poll(Duration::ZERO, &mut |from, message, _| heard.push((from, message.to_vec())))?;
//! assert_eq!(heard, [(Pe::ROOT, b"hello".to_vec())]);
//! # Ok::<(), ultramarine_runtime::transport::link::LinkError>(())
//! ```

mod buffers;
mod counters;
mod credit;
mod error;
mod foreign;
mod frame;
mod inbound;
mod offers;
mod outbound;
mod peer;
mod receiving;
mod records;
mod sending;
mod settings;
mod silence;
#[cfg(test)]
mod tests;

pub use counters::{LinkCounters, Progress, Silence};
pub use error::LinkError;
pub(crate) use foreign::prefer_huge_pages;
pub use settings::PortSettings;

use super::{Connections, Lane, LaneError, Shelf, Sleeper};
use crate::array::Array;
use buffers::Buffers;
use credit::Budget;
use frame::HEADER_BYTES;
use offers::{OFFERED_BYTES_MIN, PartSize};
use outbound::Way;
use peer::{Common, Limits, Peer};
use records::{MESSAGE_BYTES_MAX, PREFIX_BYTES};
use silence::Silences;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Ball, Pe};

/// What is done with each message that arrives: from whom, the message, and its array if it has
/// one.
pub type Deliver<'a> = dyn FnMut(Pe, &[u8], Option<Array>) + 'a;

/// One PE's end of the channels to all others. See the [module](self).
pub struct Port {
    me: Pe,
    lane: Box<dyn Lane>,
    /// Where arrays lie for PEs of this process.
    shelf: Option<Arc<Shelf>>,
    /// The PEs that may be able to read our memory.
    neighbours: Option<Ball>,
    settings: PortSettings,
    limits: Limits,
    counters: LinkCounters,
    common: Common,
    silences: Silences,
    /// The streams, made when first needed.
    peers: Vec<Option<Box<Peer>>>,
    /// The peers for whom a frame can go out now; those, and only those, have `is_ready` set.
    ready: Vec<Pe>,
    /// The peers for whom something may fall due; those, and only those, have `is_timed` set.
    timed: Vec<Pe>,
    /// The peers that have offered arrays which we have not copied yet, whose turn it is first.
    fetched: VecDeque<Pe>,
    part_size: PartSize,
    /// Nothing falls due before this moment.
    due: Duration,
    /// Messages to oneself, until the next poll.
    own: VecDeque<(Vec<u8>, Option<Array>)>,
    /// How long they are together, in bytes.
    own_bytes: usize,
    /// The frame being written.
    frame: Vec<u8>,
    /// What [`Progress`] says of the last poll.
    is_streaming: bool,
}

impl Port {
    /// The port of PE `me`, in a job of `pes` PEs, above `lane`.
    ///
    /// # Panics
    ///
    /// If the lane's frames have no room for anything but a frame's header (32 bytes).
    pub fn new(me: Pe, pes: u32, lane: Box<dyn Lane>, settings: PortSettings) -> Port {
        let settings = settings.within_range();
        Port {
            me,
            limits: limits(&*lane, &settings),
            shelf: lane.shelf(),
            neighbours: None,
            lane,
            settings,
            counters: LinkCounters::default(),
            common: Common {
                buffers: Buffers::default(),
                budget: Budget::new(settings.credit_bytes_max),
                offered: 0,
            },
            silences: Silences::default(),
            peers: std::iter::repeat_with(|| None).take(pes as usize).collect(),
            ready: Vec::new(),
            timed: Vec::new(),
            fetched: VecDeque::new(),
            part_size: PartSize::default(),
            due: Duration::MAX,
            own: VecDeque::new(),
            own_bytes: 0,
            frame: Vec::new(),
            is_streaming: false,
        }
    }

    /// Says which PEs run on the same host. They are to copy large arrays straight from our memory,
    /// if [`PortSettings::single_copy`] is set and the host lets them. Over a lane that carries
    /// arrays within a process that is not needed.
    pub fn has_neighbours(&mut self, neighbours: Ball) {
        if self.settings.single_copy && neighbours.len() > 1 {
            foreign::allow_reading();
            self.neighbours = Some(neighbours);
        }
    }

    /// Appends a message to the stream towards `to`; the next [`poll`](Self::poll) or
    /// [`flush`](Self::flush) sends it. A message to oneself is delivered by the next `poll`; one
    /// to a peer that was [closed](Self::close) goes nowhere.
    ///
    /// An array that belongs to it is not copied, and other messages to the same peer need not wait
    /// for it: those that are sent later may be delivered earlier.
    ///
    /// `Ok(false)`: too much is waiting for that PE already. Nothing was queued; try again after a
    /// `poll` in which it has acknowledged some. A message always fits where nothing waits.
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
        let limit = self.settings.message_bytes_max;
        let array_bytes = array.map_or(0, |array| array.bytes().len());
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
            let slot =
                self.peers.get_mut(to.index()).ok_or(LinkError::Lane(LaneError::NoSuchPe(to)))?;
            let peer =
                slot.get_or_insert_with(|| Box::new(Peer::new(&self.limits, self.shelf.clone())));
            if peer.is_closed {
                return Ok(true);
            }
            if !room(peer.outbound.backlog_bytes()) {
                return Ok(false);
            }
            let way = match &self.shelf {
                Some(shelf) => Way::Shelf(shelf),
                None if array_bytes >= OFFERED_BYTES_MIN
                    && self.neighbours.is_some_and(|neighbours| neighbours.contains(to))
                    && peer.outbound.may_offer() =>
                {
                    Way::Offer
                }
                None => Way::Pieces,
            };
            self.common.offered += usize::from(array.is_some() && matches!(way, Way::Offer));
            let array = array.map(|array| (array, way));
            peer.outbound.push(message, array, &mut self.common.buffers);
            peer.enlist_ready(to, &mut self.ready);
        }
        self.counters.messages_sent += 1;
        Ok(true)
    }

    /// Takes what has arrived, hands every complete message to `deliver`, in order, and sends what
    /// is to be sent: queued messages, acknowledgements, and what has waited for an
    /// acknowledgement too long. `now` is the time since any fixed moment; it must not go back.
    ///
    /// # Errors
    ///
    /// The lane failed, or a peer announced a message over the limit (which closes its stream).
    /// Other peers are unaffected, and the port can go on.
    pub fn poll(
        &mut self,
        now: Duration,
        deliver: &mut Deliver<'_>,
    ) -> Result<Progress, LinkError> {
        let before = self.counters;
        self.is_streaming = false;
        self.deliver_own(deliver);
        let received = self.receive(now, deliver);
        self.fetch(deliver);
        self.check_timers(now);
        self.flush(now)?;
        received?;
        let after = &self.counters;
        Ok(Progress {
            messages: (after.messages_received - before.messages_received) as usize,
            frames_received: (after.frames_received - before.frames_received) as usize,
            frames_sent: (after.frames_sent - before.frames_sent) as usize,
            is_streaming: self.is_streaming || self.common.offered > 0 || !self.fetched.is_empty(),
        })
    }

    fn deliver_own(&mut self, deliver: &mut Deliver<'_>) {
        self.own_bytes = 0;
        for (message, array) in self.own.drain(..) {
            self.counters.messages_received += 1;
            deliver(self.me, &message, array);
        }
    }

    /// Goes on with another lane: everything that is not acknowledged is sent again over it. What
    /// the old lane still delivers, it delivers no more.
    ///
    /// # Panics
    ///
    /// If the lane's frames have no room for anything but a frame's header (32 bytes).
    pub fn switch_lane(&mut self, lane: Box<dyn Lane>) {
        self.limits = limits(&*lane, &self.settings);
        self.shelf = lane.shelf();
        self.lane = lane;
        self.silences = Silences::default();
        for (slot, pe) in self.peers.iter_mut().zip(0..) {
            let Some(peer) = slot else { continue };
            peer.outbound.restart(self.limits.frame_bytes);
            if peer.outbound.may_send() {
                peer.enlist_ready(Pe::new(pe), &mut self.ready);
            }
        }
    }

    /// Has the lane make its connection with a PE anew; what is lost with the old one is sent
    /// again.
    pub fn reconnect(&mut self, pe: Pe) {
        self.lane.forget(pe);
    }

    /// Ends the channel to a PE that is dead: what waits for it is dropped, and whatever it may
    /// still send, and is sent to it, is dropped from now on.
    pub fn close(&mut self, pe: Pe) {
        if let Some(slot) = self.peers.get_mut(pe.index()) {
            let peer =
                slot.get_or_insert_with(|| Box::new(Peer::new(&self.limits, self.shelf.clone())));
            peer.close(&mut self.common);
        }
        self.lane.forget(pe);
    }

    /// Whether these PEs have acknowledged everything that they were sent.
    pub fn has_reached(&self, pes: impl IntoIterator<Item = Pe>) -> bool {
        let peer = |pe: Pe| self.peers.get(pe.index()).and_then(Option::as_ref);
        pes.into_iter().filter_map(peer).all(|peer| peer.outbound.is_empty())
    }

    /// Large arrays that have been sent, to be dropped where no message waits for that.
    pub fn take_discarded(&mut self) -> Vec<Array> {
        std::mem::take(&mut self.common.buffers.discarded)
    }

    /// Whether everything sent has been acknowledged (messages to oneself: delivered), no
    /// acknowledgement is owed, and the lane has let go of everything. For an orderly shutdown.
    pub fn is_idle(&mut self) -> bool {
        let peers = &self.peers;
        let is_idle = |pe: &Pe| peers[pe.index()].as_ref().is_none_or(|peer| peer.is_idle());
        self.own.is_empty()
            && self.common.offered == 0
            && self.fetched.is_empty()
            && self.ready.is_empty()
            && self.timed.iter().all(is_idle)
            && self.lane.is_flushed()
    }

    /// The moment, in the caller's time, at which [`poll`](Self::poll) should be called although
    /// nothing arrives. It may turn out that nothing is due then.
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_resting = self.own.is_empty() && self.fetched.is_empty();
        let due = if is_resting { self.due } else { Duration::ZERO };
        (due < Duration::MAX).then_some(due)
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

    /// What its streams' buffers hold, those in use and those kept.
    #[cfg(test)]
    fn buffer_bytes(&self) -> usize {
        let of = |peer: &Peer| peer.outbound.buffer_bytes() + peer.inbound.buffer_bytes();
        let peers = self.peers.iter().flatten().map(|peer| of(peer)).sum::<usize>();
        peers + self.common.buffers.bytes()
    }

    /// What this port has seen since it was made.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }
}

fn limits(lane: &dyn Lane, settings: &PortSettings) -> Limits {
    let frame_bytes_max = lane.frame_bytes_max();
    assert!(frame_bytes_max > HEADER_BYTES, "the lane's frames hold no more than a header");
    let frame_bytes = frame_bytes_max - HEADER_BYTES;
    let window_bytes = frame_bytes.saturating_mul(settings.window_frames as usize);
    let resend_after = if lane.is_lossless() { Duration::MAX } else { settings.resend_after };
    let message_bytes_max = settings.message_bytes_max;
    Limits { frame_bytes, window_bytes, message_bytes_max, resend_after }
}
