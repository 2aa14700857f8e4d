//! The limit on a lane's connections, and what is remembered about requests beyond it. The rules
//! are in `make_room.rs`.

use std::time::{Duration, Instant};

/// The least number of connections that a lane needs: one to dial, and one to accept a call.
pub const CONNECTIONS_MIN: usize = 2;

/// How long a request to dial counts if it is not repeated. (The link repeats it every
/// millisecond.)
const DIAL_WANTED_FOR: Duration = Duration::from_millis(100);

/// How long the lane keeps to the connections that it has after the system has refused another.
const SHORT_FOR: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(super) struct ConnectionLimit {
    connections_max: usize,
    /// When the system refused a connection, and how many connections there were.
    pub(super) short: Option<(Instant, usize)>,
    /// When a dial last found no room.
    pub(super) dial_wanted_at: Option<Instant>,
    /// If both a dial and a caller want room: whether the dial gets it.
    pub(super) is_for_dial: bool,
    /// Since when there is no room, and no connection to close.
    pub(super) pressed_since: Option<Instant>,
}

impl ConnectionLimit {
    pub(super) fn new(connections_max: usize) -> Self {
        ConnectionLimit {
            connections_max: connections_max.max(CONNECTIONS_MIN),
            short: None,
            dial_wanted_at: None,
            is_for_dial: false,
            pressed_since: None,
        }
    }

    /// A dial found no room.
    pub(super) fn want_dial(&mut self, now: Instant) {
        self.dial_wanted_at = Some(now);
    }

    pub(super) fn has_dialled(&mut self) {
        (self.dial_wanted_at, self.is_for_dial) = (None, false);
    }

    pub(super) fn has_accepted(&mut self) {
        self.is_for_dial = true;
    }

    pub(super) fn connections_max(&self, now: Instant) -> usize {
        let short = self.short.filter(|(at, _)| now.duration_since(*at) < SHORT_FOR);
        short.map_or(self.connections_max, |(_, total)| total.clamp(1, self.connections_max))
    }

    pub(super) fn is_dial_wanted(&self, now: Instant) -> bool {
        self.dial_wanted_at.is_some_and(|at| now.duration_since(at) < DIAL_WANTED_FOR)
    }
}
