//! The detector's counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a detector has counted since its start. Its thread writes them; any thread may read them.
#[derive(Default, Debug)]
pub struct DetectorCounters {
    /// Connections that this PE dialled and whose handshake was completed.
    pub dialled: AtomicU64,
    /// Connections that this PE accepted and whose handshake was completed.
    pub accepted: AtomicU64,
    /// Dials after a connection that broke.
    pub redials: AtomicU64,
    /// Connections with other PEs that broke.
    pub broken: AtomicU64,
    /// Calls that were refused, or answered by a witness: no process listens there any more, or a
    /// firewall says so.
    pub refused: AtomicU64,
    /// Connections closed because they did not begin with the right HELLO, or did not complete the
    /// handshake in time.
    pub strangers: AtomicU64,
    /// Connections closed because of a wrong proof or seal: the other end does not know the job's
    /// key, or repeats earlier frames.
    pub forged: AtomicU64,
    /// Connections that ended in the middle of a frame.
    pub truncated: AtomicU64,
    /// Connections closed because they announced a frame over the limit.
    pub oversized: AtomicU64,
    /// Connections closed because a frame with a right seal could not be decoded.
    pub garbled: AtomicU64,
    /// Failures to accept a connection, for lack of file descriptors, for example.
    pub not_accepted: AtomicU64,
    /// Failures of this host to dial, for lack of file descriptors, for example.
    pub not_dialled: AtomicU64,
    /// Heartbeats sent, on all connections together.
    pub heartbeats_sent: AtomicU64,
    /// Heartbeats received.
    pub heartbeats_received: AtomicU64,
    /// Other notices handed to a connection.
    pub notices_sent: AtomicU64,
    /// Other notices received.
    pub notices_received: AtomicU64,
    /// Times that this detector suspected a PE.
    pub suspicions: AtomicU64,
    /// Times that this detector lost a PE for good.
    pub losses: AtomicU64,
    /// PEs that this detector reported dead.
    pub dead: AtomicU64,
    /// Stalls: times that the detector's thread did not run for long. Such a time does not count
    /// against other PEs.
    pub stalls: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(super) fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(number as u64, Ordering::Relaxed);
}
