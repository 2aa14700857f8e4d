//! The counters of a port.

use std::time::Duration;
use ultramarine_topology::Pe;

/// What a [`Port`](super::Port) has counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Messages accepted by [`send`](super::Port::send), including those of a PE to itself.
    pub messages_sent: u64,
    /// Messages delivered.
    pub messages_received: u64,
    /// Frames that the lane took.
    pub frames_sent: u64,
    /// Frames that the lane delivered, good or bad.
    pub frames_received: u64,
    /// Bytes of the frames that the lane took, headers included.
    pub bytes_sent: u64,
    /// Bytes of the frames that the lane delivered, headers included.
    pub bytes_received: u64,
    /// Bytes of arrays that were copied from the memory of other processes.
    pub bytes_fetched: u64,
    /// Bytes of streams that were sent again.
    pub bytes_resent: u64,
    /// Frames dropped because all their bytes had arrived before.
    pub duplicates: u64,
    /// Frames dropped because bytes before theirs were missing.
    pub gaps: u64,
    /// Frames dropped because they were damaged or misdirected, or acknowledged bytes that were
    /// never sent.
    pub corrupt: u64,
    /// Messages announced with a length over the limit.
    pub oversized: u64,
    /// Frames dropped because their sender's stream was closed.
    pub refused: u64,
}

/// What one [`Port::poll`](super::Port::poll) did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Messages delivered.
    pub messages: usize,
    /// Frames received.
    pub frames_received: usize,
    /// Frames handed to the lane.
    pub frames_sent: usize,
    /// Whether more of a stream is to follow the frames that came or went, or arrays are being
    /// copied: by this PE, or probably by a peer.
    pub is_streaming: bool,
}

impl Progress {
    /// Whether anything happened at all.
    pub fn is_any(self) -> bool {
        self != Progress::default()
    }
}

/// A peer that has not acknowledged what the lane took for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// The peer.
    pub pe: Pe,
    /// How long it has been silent, at least.
    pub lasting: Duration,
}
