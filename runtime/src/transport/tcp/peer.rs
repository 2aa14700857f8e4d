//! What a lane knows about its connections with one other PE.

use std::time::{Duration, Instant};

/// How long to wait before dialling again after a connection broke; doubles with each connection
/// that does not last.
const REDIAL_AFTER_MIN: Duration = Duration::from_millis(10);

/// The longest such wait. A connection lasts if it exists for longer than this.
const REDIAL_AFTER_MAX: Duration = Duration::from_secs(1);

/// The connections with one PE, by their places.
pub(super) struct PeerConnections {
    /// The one that frames go out on.
    pub(super) open: Option<usize>,
    /// The one that is being dialled.
    pub(super) dialling: Option<usize>,
    /// Those that are being closed, the oldest first.
    pub(super) ending: Vec<usize>,
    /// The earliest time to dial again.
    pub(super) redial_at: Instant,
    /// The number of connections in a row that did not last.
    pub(super) failures: u32,
}

impl PeerConnections {
    pub(super) fn new(now: Instant) -> Self {
        PeerConnections {
            open: None,
            dialling: None,
            ending: Vec::new(),
            redial_at: now,
            failures: 0,
        }
    }

    /// The only connection whose frames are delivered: frames on an older connection were sent
    /// before those on a newer one.
    pub(super) fn first(&self) -> Option<usize> {
        self.ending.first().copied().or(self.open)
    }

    /// The connection at this place has ended.
    pub(super) fn remove(&mut self, place: usize) {
        self.open.take_if(|open| *open == place);
        self.dialling.take_if(|dialling| *dialling == place);
        self.ending.retain(|ending| *ending != place);
    }

    /// A connection that was made at `since` broke, or could not be made.
    pub(super) fn fail(&mut self, since: Instant) {
        let now = Instant::now();
        if now.duration_since(since) > REDIAL_AFTER_MAX {
            self.failures = 0;
        }
        let doubled = REDIAL_AFTER_MIN.saturating_mul(1 << self.failures.min(16));
        self.redial_at = now + doubled.min(REDIAL_AFTER_MAX);
        self.failures += 1;
    }
}
