//! What a TCP lane has seen.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a TCP lane has seen since it was made. Kept by the lane, readable from anywhere.
#[derive(Default, Debug)]
pub struct TcpCounters {
    /// Connections made to others, handshake and all.
    pub dialled: AtomicU64,
    /// Connections taken from others, handshake and all.
    pub accepted: AtomicU64,
    /// Connections closed because they did not say the right hello, or not all of the handshake in
    /// time. (Now and then a PE's: if two dial each other at once, one of them drops its call.)
    pub strangers: AtomicU64,
    /// Connections closed, by either end, because the other end did not know the job's key.
    pub forged: AtomicU64,
    /// Connections closed because they announced a frame over the limit.
    pub oversized: AtomicU64,
    /// Connections between PEs that broke, or could not be made.
    pub broken: AtomicU64,
    /// Connections dialled to PEs with which one broke before.
    pub redials: AtomicU64,
    /// Times that a connection could not be accepted, for lack of descriptors, say.
    pub not_accepted: AtomicU64,
    /// Times that this host could not dial for lack of descriptors.
    pub not_dialled: AtomicU64,
    /// Connections closed to make room for others.
    pub made_room: AtomicU64,
}

impl TcpCounters {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
