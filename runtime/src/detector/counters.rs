//! What a detector has seen.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a detector has seen since it was started. Kept by its thread, readable from anywhere.
#[derive(Default, Debug)]
pub struct DetectorCounters {
    /// Connections made to others, handshake and all.
    pub dialled: AtomicU64,
    /// Connections taken from others, handshake and all.
    pub accepted: AtomicU64,
    /// Connections dialled again because one broke.
    pub redials: AtomicU64,
    /// Connections with other PEs that broke.
    pub broken: AtomicU64,
    /// Calls that were refused: nobody listens there any more.
    pub refused: AtomicU64,
    /// Connections closed because they did not say the right hello, or not all of the handshake in
    /// time.
    pub strangers: AtomicU64,
    /// Connections closed because of a proof or a seal that was wrong: somebody does not know the
    /// job's key, or says again what was said before.
    pub forged: AtomicU64,
    /// Connections that ended in the middle of a frame.
    pub truncated: AtomicU64,
    /// Connections closed because they announced a frame over the limit.
    pub oversized: AtomicU64,
    /// Connections closed because a frame, though rightly sealed, could not be read.
    pub garbled: AtomicU64,
    /// Times that a connection could not be accepted, for lack of descriptors, say.
    pub not_accepted: AtomicU64,
    /// Times that this host could not dial, for lack of descriptors, say.
    pub not_dialled: AtomicU64,
    /// Heartbeats sent, on all connections together.
    pub heartbeats_sent: AtomicU64,
    /// Heartbeats received.
    pub heartbeats_received: AtomicU64,
    /// Other notices handed to a connection.
    pub notices_sent: AtomicU64,
    /// Other notices received.
    pub notices_received: AtomicU64,
    /// Times that this detector had no contact with a PE for a while.
    pub suspicions: AtomicU64,
    /// Times that it lost a PE for good, as it saw it.
    pub losses: AtomicU64,
    /// PEs that it reported dead.
    pub dead: AtomicU64,
    /// Times that its thread did not run for so long that it forgave the others the time.
    pub stalls: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(super) fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(number as u64, Ordering::Relaxed);
}
