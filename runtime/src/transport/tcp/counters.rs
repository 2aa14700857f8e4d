//! The counters of a TCP lane.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a TCP lane has counted since it was made. The lane writes them; any thread may read them.
#[derive(Default, Debug)]
pub struct TcpCounters {
    /// Connections that this PE dialled and whose handshake was completed.
    pub dialled: AtomicU64,
    /// Connections that this PE accepted and whose handshake was completed.
    pub accepted: AtomicU64,
    /// Connections closed because they did not begin with the right HELLO, or did not complete the
    /// handshake in time. (Sometimes a PE's: if two dial each other at once, one drops its call.)
    pub strangers: AtomicU64,
    /// Connections closed, by either end, because the other end did not know the job's key.
    pub forged: AtomicU64,
    /// Connections closed because they announced a frame over the limit.
    pub oversized: AtomicU64,
    /// Connections between PEs that broke, or could not be made.
    pub broken: AtomicU64,
    /// Connections dialled to PEs with which one broke before.
    pub redials: AtomicU64,
    /// Failures to accept a connection, for lack of file descriptors, for example.
    pub not_accepted: AtomicU64,
    /// Failures of this host to dial for lack of file descriptors.
    pub not_dialled: AtomicU64,
    /// Connections closed to make room for others.
    pub made_room: AtomicU64,
}

impl TcpCounters {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
