//! The limit on connections, and who gets the next one: this end, which wants to dial, or a caller.
//!
//! A process may open a limited number of files. A lane and a detector each keep to a share of them
//! ([`ConnectionShares`](super::descriptors::ConnectionShares)), and to fewer connections for a
//! while after the system has refused one. Two rules keep a crowd of PEs going that all want more
//! connections than they may have:
//!
//! - Dials that have not succeeded yet take at most half of the room, and accepted connections in
//!   their handshake the other half. Otherwise all PEs might dial, and none could answer.
//! - If both a dial and a caller wait for room, they get it in turn.
//!
//! Which connection is closed for another is the owner's choice.

use super::descriptors::{self, CONNECTIONS_MIN};
use std::io;
use std::time::{Duration, Instant};

/// How long the owner keeps to the connections that it has after the system has refused another.
const SHORT_FOR: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct ConnectionLimit {
    connections_max: usize,
    /// The most accepted connections that may be in their handshake, beside the half of the room;
    /// at least 1.
    pub(crate) strangers_max: usize,
    /// How long a request to dial counts if it is not repeated.
    dial_wanted_for: Duration,
    /// When the system refused a connection, and how many connections there were.
    short: Option<(Instant, usize)>,
    /// When a dial last found no room.
    dial_wanted_at: Option<Instant>,
    /// If both a dial and a caller want room: whether the dial gets it.
    is_for_dial: bool,
}

/// What there is at present.
#[derive(Clone, Copy)]
pub(crate) struct Occupancy {
    /// The number of connections, of any kind.
    pub(crate) total: usize,
    /// The number of dials that have not succeeded yet.
    pub(crate) dialling: usize,
    /// The number of accepted connections in their handshake.
    pub(crate) strangers: usize,
    /// There may be callers to accept.
    pub(crate) is_called: bool,
}

impl ConnectionLimit {
    /// At most `connections_max` connections, or [`CONNECTIONS_MIN`] if that is more. The owner
    /// repeats a dial that finds no room within `dial_wanted_for`.
    pub(crate) fn new(
        connections_max: usize,
        strangers_max: usize,
        dial_wanted_for: Duration,
    ) -> Self {
        ConnectionLimit {
            connections_max: connections_max.max(CONNECTIONS_MIN),
            strangers_max,
            dial_wanted_for,
            short: None,
            dial_wanted_at: None,
            is_for_dial: false,
        }
    }

    /// Whether there is room for another dial.
    pub(crate) fn may_dial(&self, is: &Occupancy, now: Instant) -> bool {
        let is_for_caller = is.is_called && !self.is_for_dial;
        self.has_dials_left(is, now)
            && is.total + usize::from(is_for_caller) < self.connections_max(now)
    }

    /// Whether there is room to accept another call.
    pub(crate) fn may_accept(&self, is: &Occupancy, now: Instant) -> bool {
        let is_for_dial =
            self.is_for_dial && self.is_dial_wanted(now) && self.has_dials_left(is, now);
        self.has_hellos_left(is, now)
            && is.total + usize::from(is_for_dial) < self.connections_max(now)
    }

    /// Whether a dial waits until another is over.
    pub(crate) fn is_dial_awaited(&self, is: &Occupancy, now: Instant) -> bool {
        self.is_dial_wanted(now) && !self.has_dials_left(is, now)
    }

    /// How many connections must be closed for those that wait: a dial, a caller, both or none.
    pub(crate) fn wanted(&mut self, is: &Occupancy, now: Instant) -> usize {
        if !self.is_dial_wanted(now) {
            self.dial_wanted_at = None;
        }
        let is_called = is.is_called && self.has_hellos_left(is, now);
        let is_dial_wanted = self.is_dial_wanted(now) && self.has_dials_left(is, now);
        usize::from(is_called && !self.may_accept(is, now))
            + usize::from(is_dial_wanted && !self.may_dial(is, now))
    }

    /// Whether a dial found no room, when the owner last looked.
    pub(crate) fn has_wanted_dial(&self) -> bool {
        self.dial_wanted_at.is_some()
    }

    /// Whether a dial has found no room lately.
    fn is_dial_wanted(&self, now: Instant) -> bool {
        self.dial_wanted_at.is_some_and(|at| now.duration_since(at) < self.dial_wanted_for)
    }

    /// A dial found no room.
    pub(crate) fn want_dial(&mut self, now: Instant) {
        self.dial_wanted_at = Some(now);
    }

    /// A dial has found room.
    pub(crate) fn has_dialled(&mut self) {
        (self.dial_wanted_at, self.is_for_dial) = (None, false);
    }

    /// A call was accepted.
    pub(crate) fn has_accepted(&mut self) {
        self.is_for_dial = true;
    }

    /// The system refused another connection. Returns whether that was for lack of descriptors.
    pub(crate) fn refused(&mut self, error: &io::Error, total: usize, now: Instant) -> bool {
        let is_short = descriptors::is_shortage(error);
        if is_short {
            self.short = Some((now, total));
        }
        is_short
    }

    /// Whether the system has refused a connection lately.
    pub(crate) fn is_short(&self, now: Instant) -> bool {
        self.short.is_some_and(|(at, _)| now.duration_since(at) < SHORT_FOR)
    }

    fn has_dials_left(&self, is: &Occupancy, now: Instant) -> bool {
        is.dialling < (self.connections_max(now) / 2).max(1)
    }

    fn has_hellos_left(&self, is: &Occupancy, now: Instant) -> bool {
        is.strangers < (self.connections_max(now) / 2).clamp(1, self.strangers_max)
    }

    fn connections_max(&self, now: Instant) -> usize {
        let short = self.short.filter(|_| self.is_short(now));
        short.map_or(self.connections_max, |(_, total)| total.clamp(1, self.connections_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(connections_max: usize) -> ConnectionLimit {
        ConnectionLimit::new(connections_max, usize::MAX, Duration::from_millis(100))
    }

    #[test]
    fn dials_and_callers_get_half_each_and_take_turns() {
        let (mut limit, now) = (limit(4), Instant::now());
        let is =
            |total, dialling, strangers| Occupancy { total, dialling, strangers, is_called: true };
        assert!(limit.may_dial(&is(1, 1, 0), now) && limit.may_accept(&is(1, 0, 1), now));
        assert!(!limit.may_dial(&is(2, 2, 0), now) && limit.may_accept(&is(2, 2, 0), now));
        assert!(limit.may_dial(&is(2, 0, 2), now) && !limit.may_accept(&is(2, 0, 2), now));
        // One place is left, and both want it.
        limit.want_dial(now);
        assert!(!limit.may_dial(&is(3, 0, 0), now) && limit.may_accept(&is(3, 0, 0), now));
        assert_eq!(limit.wanted(&is(3, 0, 0), now), 1);
        limit.has_accepted();
        assert!(limit.may_dial(&is(3, 0, 0), now) && !limit.may_accept(&is(3, 0, 0), now));
        assert_eq!(limit.wanted(&is(4, 0, 0), now), 2);
        limit.has_dialled();
        assert!(limit.may_accept(&is(3, 0, 0), now));
        // A dial that is not repeated is forgotten.
        limit.want_dial(now);
        let later = now + Duration::from_millis(100);
        assert_eq!((limit.wanted(&is(4, 2, 0), later), limit.has_wanted_dial()), (1, false));
    }

    #[test]
    fn after_a_refusal_it_keeps_to_what_there_is_for_a_while() {
        let now = Instant::now();
        let is = |total| Occupancy { total, dialling: 0, strangers: 0, is_called: false };
        for (total, kept) in [(5, 5), (0, 1)] {
            let mut limit = limit(8);
            assert!(!limit.refused(&io::ErrorKind::ConnectionReset.into(), total, now));
            assert!(limit.may_dial(&is(7), now) && !limit.may_dial(&is(8), now));
            assert!(limit.refused(&rustix::io::Errno::MFILE.into(), total, now));
            assert!(limit.may_dial(&is(kept - 1), now) && !limit.may_dial(&is(kept), now));
            assert!(limit.may_dial(&is(7), now + SHORT_FOR));
        }
    }
}
