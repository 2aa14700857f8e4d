//! What a PE counts for its statistics, beside its queues, its engine and its failure detector.

use crate::protocol::{Statistics, Upkeep};
use crate::transport::Connections;
use std::sync::atomic::{AtomicU64, Ordering};
use ultramarine_topology::Pe;

/// Bytes that a PE exchanged with the others at start-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootstrapTraffic {
    /// Bytes it sent.
    pub sent_bytes: u64,
    /// Bytes it received, including its own contribution.
    pub received_bytes: u64,
}

/// The counters of a PE that belong to none of its other parts.
pub(crate) struct Counts {
    bootstrap: BootstrapTraffic,
    /// Tasks that were started but are not the user's, such as readers of messages.
    not_users: AtomicU64,
    /// Tasks of this PE whose results have come from other PEs, or were known before, while they
    /// are counted.
    ended_elsewhere: AtomicU64,
    /// The number of tasks dropped or stopped because their home had died.
    orphans: AtomicU64,
}

impl Counts {
    pub(super) fn new(bootstrap: BootstrapTraffic) -> Self {
        let zero = || AtomicU64::new(0);
        Counts { bootstrap, not_users: zero(), ended_elsewhere: zero(), orphans: zero() }
    }

    /// A task is started that is not the user's, or is started once more later.
    pub(super) fn leave_out_start(&self) {
        self.not_users.fetch_add(1, Ordering::SeqCst);
    }

    /// The results of this many tasks of this PE have come from other PEs, or were known before.
    pub(super) fn add_ended_elsewhere(&self, tasks: u64) {
        self.ended_elsewhere.fetch_add(tasks, Ordering::Relaxed);
    }

    /// This many tasks were dropped or stopped because their home had died.
    pub(super) fn add_orphans(&self, tasks: u64) {
        self.orphans.fetch_add(tasks, Ordering::Relaxed);
    }

    /// Completes what the engine of PE `me` has counted. Its queues have started and ended this
    /// many tasks, and these are all its connections.
    pub(super) fn complete(
        &self,
        statistics: &mut Statistics,
        me: Pe,
        (started, ended): (u64, u64),
        connections: Connections,
    ) {
        statistics.tasks = started.saturating_sub(self.not_users.load(Ordering::SeqCst));
        let ended = ended + self.ended_elsewhere.load(Ordering::Relaxed);
        statistics.ended = (ended > 0).then_some((me.number(), ended)).into_iter().collect();
        statistics.orphans += self.orphans.load(Ordering::Relaxed);
        statistics.upkeep = Upkeep {
            bootstrap_sent_bytes: self.bootstrap.sent_bytes,
            bootstrap_received_bytes: self.bootstrap.received_bytes,
            connections_opened: connections.opened,
            connections_accepted: connections.accepted,
        };
        statistics.upkeep_most = statistics.upkeep;
    }
}
