//! Makes room for a new connection: which connection is closed for it.
//!
//! A lane has a [limited](crate::transport::connection_limit) number of connections. For one more,
//! it closes the connection that has gone unused for longest, among those on which nothing is under
//! way, [in order](super::duplicates). It is dialled again when it is needed. A connection stays
//! open for at least [`HOLD`], so that it is of some use.

use super::connection::{ConnectionState, TcpCloseReason};
use super::counters::TcpCounters;
use super::duplicates::ENDING_WITHIN;
use super::sockets::Sockets;
use crate::transport::connection_limit::Occupancy;
use std::io;
use std::time::{Duration, Instant};

/// How long a connection that was just opened is not closed.
const HOLD: Duration = Duration::from_millis(5);

/// A PE usually ends a connection within this time after the other end has. If it does not, another
/// connection is closed.
const ENDS_WITHIN: Duration = Duration::from_millis(50);

/// If all connections are in use for this long, or no dial succeeds, one on which nothing moves is
/// closed: the PE at its other end may have stalled.
const FORCE_AFTER: Duration = Duration::from_secs(1);

impl Sockets {
    fn occupancy(&self) -> Occupancy {
        Occupancy {
            total: self.total(),
            dialling: self.dialled.len(),
            strangers: self.strangers.len(),
            is_called: self.listener.is_called(),
        }
    }

    /// Whether there is room for another dial.
    pub(super) fn may_dial(&self, now: Instant) -> bool {
        self.limit.may_dial(&self.occupancy(), now)
    }

    /// Whether there is room to accept another call.
    pub(super) fn may_accept(&self, now: Instant) -> bool {
        self.limit.may_accept(&self.occupancy(), now)
    }

    /// Whether something may fall due without an event.
    pub(super) fn is_restless(&self) -> bool {
        self.listener.is_called()
            || !self.ending.is_empty()
            || !self.strangers.is_empty()
            || !self.dialled.is_empty()
            || self.limit.has_wanted_dial()
    }

    /// A dial found no room.
    pub(super) fn want_to_dial(&mut self, now: Instant) {
        self.limit.want_dial(now);
        self.make_room(now);
    }

    /// The system refused a connection.
    pub(super) fn refused(&mut self, error: &io::Error, now: Instant) {
        if self.limit.refused(error, self.total(), now) {
            self.make_room(now);
        }
    }

    /// Closes connections that have gone unused for longest, if there is no room for a dial or a
    /// call that waits.
    pub(super) fn make_room(&mut self, now: Instant) {
        if self.limit.is_dial_awaited(&self.occupancy(), now) {
            self.give_up_a_dial(now);
        }
        let wanted = self.limit.wanted(&self.occupancy(), now);
        if wanted == 0 {
            self.pressed_since = None;
            return;
        }
        let is_soon_gone = |place: &&usize| {
            self.connections[**place].as_ref().is_some_and(|connection| {
                matches!(connection.state, ConnectionState::Ending { until, .. }
                    if until + ENDS_WITHIN > now + ENDING_WITHIN)
            })
        };
        let soon = self.ending.iter().filter(is_soon_gone).count();
        for _ in soon..wanted {
            let pressed_since = *self.pressed_since.get_or_insert(now);
            let is_forced = now.duration_since(pressed_since) > FORCE_AFTER;
            let Some(place) = self.least_recently_used(now, is_forced) else {
                if is_forced {
                    self.give_up_a_dial(now);
                }
                return;
            };
            self.pressed_since = None;
            TcpCounters::count(&self.counters.made_room);
            self.end(place, now + if is_forced { FORCE_AFTER } else { ENDING_WITHIN });
        }
    }

    /// Closes the oldest dial, if it takes too long while another, or a caller, waits.
    fn give_up_a_dial(&mut self, now: Instant) {
        self.close_a_dial(now, FORCE_AFTER);
    }

    /// Closes dials that take too long. The PE may have left, with what waits for it of no use.
    pub(super) fn close_late_dials(&mut self, now: Instant) {
        while self.close_a_dial(now, self.dial_within) {}
    }

    /// Closes the oldest dial, if it takes longer than this. Returns whether it does.
    fn close_a_dial(&mut self, now: Instant, within: Duration) -> bool {
        let Some((_, &place)) = self.dialled.first_key_value() else { return false };
        let is_late =
            self.connection(place).is_some_and(|dial| now.duration_since(dial.since) > within);
        if is_late {
            self.close(place, TcpCloseReason::Broken);
        }
        is_late
    }

    /// The open connection that has gone unused for longest. One on which something is under way
    /// counts only if `is_forced`.
    fn least_recently_used(&self, now: Instant, is_forced: bool) -> Option<usize> {
        let open = self.connections.iter().enumerate().filter_map(|(place, connection)| {
            let connection = connection.as_deref()?;
            let is_open = matches!(connection.state, ConnectionState::Open);
            let is_held = now.duration_since(connection.since) < HOLD;
            let is_free = is_forced || connection.is_idle();
            (is_open && is_free && !is_held).then_some((connection.used, place))
        });
        Some(open.min()?.1)
    }
}
