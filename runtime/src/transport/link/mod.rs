//! A reliable first-in-first-out channel between every two PEs, above any [`Lane`].
//!
//! Towards each peer a [`Port`] keeps one stream of bytes. In the stream every message stands
//! behind its length, and the pieces of large arrays stand between messages (`records/`).
//! [`flush`](Port::flush) cuts the stream into frames, with many small messages in one frame, or
//! one array in many frames; the receiving port puts the stream together again. Each frame carries
//! its position in the stream, the position up to which the other direction has arrived, and a
//! checksum. Bytes that are not acknowledged for a while are sent again, with all that follow them
//! (go-back-N). Frames that arrive twice, out of order or damaged are dropped and counted.
//!
//! A peer on the same host gets the address of a large array, and copies the array from there
//! (`offers.rs`).
//!
//! Two limits bound the bytes in flight: a window for each peer, and the credit that a receiver
//! gives to its senders (`credit.rs`).
//!
//! Positions count bytes, not frames. So a port can [change its lane](Port::switch_lane) between
//! any two frames, also to a lane with shorter frames, and nothing is lost or doubled.
//!
//! A port owns no thread and no clock: the caller passes in the time since any fixed moment. It
//! must never know what a message means, nor which PE is alive: it only reports silent peers.
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
mod frame;
mod inbound;
mod offers;
mod outbound;
mod peer;
mod peers;
mod queue;
mod receiving;
mod records;
mod segment;
mod sending;
mod settings;
mod silence;
#[cfg(test)]
mod tests;

pub use counters::{LinkCounters, Progress, Silence};
pub use error::LinkError;
pub use settings::PortSettings;

use super::error::LaneError;
use super::handoff::ArrayHandoff;
use super::lane::{Connections, Lane, Sleeper};
use crate::array::Array;
use crate::os_memory;
use buffers::Buffers;
use credit::Budget;
use frame::HEADER_BYTES;
use offers::PartSize;
use peer::{Flow, PeerStreams, PortResources, StreamLimits};
use peers::Peers;
use silence::SilenceMonitor;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Ball, Pe};

/// A peer is taken to copy what it was offered for so long after the last offer or answer. (At 10
/// GB/s an array of 128 MB takes that long.)
const COPIED_WITHIN: Duration = Duration::from_millis(13);

/// Called with each message that arrives: its sender, its bytes, and its array if it has one.
pub type Deliver<'a> = dyn FnMut(Pe, &[u8], Option<Array>) + 'a;

/// One PE's end of the channels to all others. See the [module](self).
pub struct Port {
    me: Pe,
    lane: Box<dyn Lane>,
    /// The table by which PEs of this process hand over arrays.
    handoff: Option<Arc<ArrayHandoff>>,
    /// The PEs that may be able to read this process's memory.
    neighbours: Option<Ball>,
    settings: PortSettings,
    limits: StreamLimits,
    counters: LinkCounters,
    resources: PortResources,
    silences: SilenceMonitor,
    peers: Peers,
    /// The peers to which a frame can be sent now. Those, and only those, have `is_ready` set.
    ready: Vec<Pe>,
    /// The peers for which something may fall due. Those, and only those, have `is_timed` set.
    timed: Vec<Pe>,
    /// The peers that have offered arrays that are still to be copied, in the order of their turns.
    fetched: VecDeque<Pe>,
    part_size: PartSize,
    /// Nothing falls due before this moment.
    due: Duration,
    /// Messages of this PE to itself, until the next poll.
    own: VecDeque<(Vec<u8>, Option<Array>)>,
    /// The length of those messages together, in bytes.
    own_bytes: usize,
    /// The frame being written.
    frame: Vec<u8>,
    /// What [`Progress`] says of the last poll.
    is_streaming: bool,
    /// The arrays that were offered at the last poll, and when their number last changed.
    offered: (usize, Duration),
}

impl Port {
    /// The port of PE `me`, in a job of `pes` PEs, above `lane`.
    ///
    /// # Panics
    ///
    /// The lane's frames have room for nothing but a frame's header (32 bytes).
    pub fn new(me: Pe, pes: u32, lane: Box<dyn Lane>, settings: PortSettings) -> Port {
        let settings = settings.within_range();
        Port {
            me,
            limits: limits(&*lane, &settings),
            handoff: lane.handoff(),
            neighbours: None,
            lane,
            settings,
            counters: LinkCounters::default(),
            resources: PortResources {
                buffers: Buffers::default(),
                budget: Budget::new(settings.credit_bytes_max),
                offered: 0,
            },
            silences: SilenceMonitor::default(),
            peers: Peers::new(pes),
            ready: Vec::new(),
            timed: Vec::new(),
            fetched: VecDeque::new(),
            part_size: PartSize::default(),
            due: Duration::MAX,
            own: VecDeque::new(),
            own_bytes: 0,
            frame: Vec::new(),
            is_streaming: false,
            offered: (0, Duration::ZERO),
        }
    }

    /// Says which PEs run on the same host. They copy large arrays straight from this process's
    /// memory, if [`PortSettings::single_copy`] is set and the host allows it. A lane within one
    /// process does not need that.
    pub fn has_neighbours(&mut self, neighbours: Ball) {
        if self.settings.single_copy && neighbours.len() > 1 {
            os_memory::allow_reading();
            self.neighbours = Some(neighbours);
        }
    }

    /// Reads what has arrived, hands every complete message to `deliver`, in order, and sends
    /// queued messages, acknowledgements, and bytes that have waited for an acknowledgement too
    /// long. `now` is the time since any fixed moment; it must not go back.
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
        let offered = self.resources.offered;
        if offered != self.offered.0 {
            self.offered = (offered, now);
        }
        let is_copied = offered > 0 && now < self.offered.1 + COPIED_WITHIN;
        Ok(Progress {
            messages: (after.messages_received - before.messages_received) as usize,
            frames_received: (after.frames_received - before.frames_received) as usize,
            frames_sent: (after.frames_sent - before.frames_sent) as usize,
            is_streaming: self.is_streaming || !self.fetched.is_empty() || is_copied,
        })
    }

    fn deliver_own(&mut self, deliver: &mut Deliver<'_>) {
        self.own_bytes = 0;
        while let Some((message, array)) = self.own.pop_front() {
            self.counters.messages_received += 1;
            deliver(self.me, &message, array);
        }
    }

    /// Goes on with another lane, over which everything that is not acknowledged is sent again. The
    /// old lane is dropped, with the frames that it still holds.
    ///
    /// # Panics
    ///
    /// The lane's frames have room for nothing but a frame's header (32 bytes).
    pub fn switch_lane(&mut self, lane: Box<dyn Lane>) {
        let is_ending = self.limits.is_ending;
        self.limits = StreamLimits { is_ending, ..limits(&*lane, &self.settings) };
        self.handoff = lane.handoff();
        self.lane = lane;
        self.silences = SilenceMonitor::default();
        for pe in self.peers.opened() {
            let Some(peer) = self.peers.get_mut(pe) else { continue };
            peer.outbound.restart(self.limits.flow(pe));
            if peer.outbound.may_send() {
                peer.enlist_ready(pe, &mut self.ready);
            }
        }
    }

    /// Makes the lane drop its connection with a PE and make a new one. Frames that are lost with
    /// the old one are sent again.
    pub fn reconnect(&mut self, pe: Pe) {
        self.lane.forget(pe);
    }

    /// Ends the channel to a dead PE: drops what waits for it, and from now on everything that it
    /// sends or that is sent to it.
    pub fn close(&mut self, pe: Pe) {
        if self.peers.exist(pe)
            && let Some(mut peer) = self.peers.close(pe)
        {
            peer.close(&mut self.resources);
        }
        self.lane.forget(pe);
    }

    /// Whether these PEs have acknowledged everything that was sent to them.
    pub fn has_reached(&self, pes: impl IntoIterator<Item = Pe>) -> bool {
        pes.into_iter().filter_map(|pe| self.peers.get(pe)).all(|peer| peer.outbound.is_empty())
    }

    /// From now on acknowledgements are urgent: the job ends, and all PEs wait for them before they
    /// leave. (Otherwise they wait up to 100 ms for a frame in the same direction.)
    pub fn hasten(&mut self, now: Duration) {
        if !std::mem::replace(&mut self.limits.is_ending, true) {
            for pe in &self.timed {
                if let Some(peer) = self.peers.get_mut(*pe) {
                    peer.acknowledge_soon(now);
                }
            }
            self.due = self.due.min(now);
        }
    }

    /// Large arrays that have been sent. The caller drops them where no message waits for that.
    pub fn take_discarded(&mut self) -> Vec<Array> {
        std::mem::take(&mut self.resources.buffers.discarded)
    }

    /// The peers that have not acknowledged anything for one more
    /// [`resend_after`](PortSettings::resend_after), although the lane took frames for them. Each
    /// is reported once for each such time.
    pub fn take_silences(&mut self) -> Vec<Silence> {
        std::mem::take(&mut self.silences.silent)
    }

    /// Whether the lane seems to be stuck: a peer has been silent for longer than
    /// [`resends_max`](PortSettings::resends_max) resends, or the lane has taken nothing for as
    /// long. Reported once for each such time; a new lane starts from the beginning.
    pub fn take_stuck(&mut self) -> bool {
        std::mem::take(&mut self.silences.is_stuck)
    }

    /// Whether everything sent has been acknowledged (messages to this PE itself: delivered), no
    /// acknowledgement is owed, and the lane holds no frames. For an orderly shutdown.
    pub fn is_idle(&mut self) -> bool {
        let peers = &self.peers;
        let is_idle = |pe: &Pe| peers.get(*pe).is_none_or(PeerStreams::is_idle);
        self.own.is_empty()
            && self.resources.offered == 0
            && self.fetched.is_empty()
            && self.ready.is_empty()
            && self.timed.iter().all(is_idle)
            && self.lane.is_flushed()
    }

    /// The peers that have not acknowledged everything, or are owed an acknowledgement.
    pub fn unanswered(&self) -> Vec<Pe> {
        let is_open = |pe: &Pe| self.peers.get(*pe).is_some_and(|peer| !peer.is_idle());
        self.timed.iter().chain(&self.ready).copied().filter(is_open).collect()
    }

    /// When, in the caller's time, to call [`poll`](Self::poll) although nothing arrives. It may
    /// turn out that nothing is due then.
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_resting = self.own.is_empty() && self.fetched.is_empty();
        let due = if is_resting { self.due } else { Duration::ZERO };
        (due < Duration::MAX).then_some(due)
    }

    /// The lane's sleeper; after [`switch_lane`](Self::switch_lane) that of the new lane.
    pub fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.lane.sleeper()
    }

    /// The lane's name.
    pub fn lane_name(&self) -> &'static str {
        self.lane.name()
    }

    /// The lane's connections; after [`switch_lane`](Self::switch_lane) those of the new lane.
    pub fn connections(&self) -> Connections {
        self.lane.connections()
    }

    /// The number of other PEs to which this port has spoken, or that have spoken to it, apart from
    /// those that it has [closed](Self::close). It keeps a little of each for good.
    pub fn peers(&self) -> usize {
        self.peers.count()
    }

    /// The capacity of all buffers of streams, in use and kept, in bytes.
    #[cfg(test)]
    fn buffer_bytes(&self) -> usize {
        let of = |peer: &PeerStreams| peer.outbound.buffer_bytes() + peer.inbound.buffer_bytes();
        let opened = self.peers.opened();
        let peers = opened.into_iter().filter_map(|pe| self.peers.get(pe));
        peers.map(of).sum::<usize>() + self.resources.buffers.bytes()
    }

    /// This port's counters.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// The number of frames that the lane has taken.
    pub(crate) fn frames_sent(&self) -> u64 {
        self.counters.frames_sent
    }
}

fn limits(lane: &dyn Lane, settings: &PortSettings) -> StreamLimits {
    let flow = |frame_bytes_max: usize| {
        assert!(frame_bytes_max > HEADER_BYTES, "the lane's frames hold no more than a header");
        let frame_bytes = frame_bytes_max - HEADER_BYTES;
        let window_bytes = frame_bytes.saturating_mul(settings.window_frames as usize);
        Flow { frame_bytes, window_bytes }
    };
    let far = flow(lane.frame_bytes_max());
    let near = lane.shorter_frames().map(|(near, frame_bytes_max)| (near, flow(frame_bytes_max)));
    let resend_after = if lane.is_lossless() { Duration::MAX } else { settings.resend_after };
    let message_bytes_max = settings.message_bytes_max;
    StreamLimits { far, near, message_bytes_max, resend_after, is_ending: false }
}
