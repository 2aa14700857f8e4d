//! Makes room for a new connection: which connection is closed for it.
//!
//! A process may open a limited number of files. So a lane keeps at most `connections_max`
//! connections, and fewer for a while after the system has refused one. For one more, the lane
//! closes the connection that has gone unused for longest, among those on which nothing is under
//! way, [in order](super::duplicates). It is dialled again when it is needed. Three rules keep a
//! crowd of PEs going that all want more connections than they may have:
//!
//! - Dials that have not succeeded yet take at most half of the room, and accepted connections in
//!   their handshake the other half. Otherwise all PEs might dial, and none could answer.
//! - If both a dial and a caller wait for room, they get it in turn.
//! - A connection stays open for at least [`HOLD`], so that it is of some use.

use super::connection::{ConnectionState, TcpCloseReason};
use super::counters::TcpCounters;
use super::duplicates::ENDING_WITHIN;
use super::sockets::Sockets;
use crate::transport::descriptors;
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
    /// Whether there is room for another dial.
    pub(super) fn may_dial(&self, now: Instant) -> bool {
        let is_for_caller = self.listener.is_called() && !self.limit.is_for_dial;
        self.has_dials_left(now)
            && self.total() + usize::from(is_for_caller) < self.limit.connections_max(now)
    }

    /// Whether there is room to accept another call.
    pub(super) fn may_accept(&self, now: Instant) -> bool {
        let is_for_dial =
            self.limit.is_for_dial && self.limit.is_dial_wanted(now) && self.has_dials_left(now);
        self.has_hellos_left(now)
            && self.total() + usize::from(is_for_dial) < self.limit.connections_max(now)
    }

    fn has_dials_left(&self, now: Instant) -> bool {
        self.dialling < (self.limit.connections_max(now) / 2).max(1)
    }

    fn has_hellos_left(&self, now: Instant) -> bool {
        self.strangers.len() < (self.limit.connections_max(now) / 2).clamp(1, self.strangers_max)
    }

    /// Whether something may fall due without an event.
    pub(super) fn is_restless(&self) -> bool {
        self.listener.is_called()
            || !self.ending.is_empty()
            || !self.strangers.is_empty()
            || self.limit.dial_wanted_at.is_some()
    }

    /// A dial found no room.
    pub(super) fn want_to_dial(&mut self, now: Instant) {
        self.limit.want_dial(now);
        self.make_room(now);
    }

    /// The system refused a connection.
    pub(super) fn refused(&mut self, error: &io::Error, now: Instant) {
        if descriptors::is_shortage(error) {
            self.limit.short = Some((now, self.total()));
            self.make_room(now);
        }
    }

    /// Closes connections that have gone unused for longest, if there is no room for a dial or a
    /// call that waits.
    pub(super) fn make_room(&mut self, now: Instant) {
        if !self.limit.is_dial_wanted(now) {
            self.limit.dial_wanted_at = None;
        }
        if self.limit.dial_wanted_at.is_some() && !self.has_dials_left(now) {
            self.give_up_a_dial(now);
        }
        let is_called = self.listener.is_called() && self.has_hellos_left(now);
        let is_dial_wanted = self.limit.dial_wanted_at.is_some() && self.has_dials_left(now);
        let wanted = usize::from(is_called && !self.may_accept(now))
            + usize::from(is_dial_wanted && !self.may_dial(now));
        if wanted == 0 {
            self.limit.pressed_since = None;
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
            let pressed_since = *self.limit.pressed_since.get_or_insert(now);
            let is_forced = now.duration_since(pressed_since) > FORCE_AFTER;
            let Some(place) = self.least_recently_used(now, is_forced) else { return };
            self.limit.pressed_since = None;
            TcpCounters::count(&self.counters.made_room);
            self.end(place, now + if is_forced { FORCE_AFTER } else { ENDING_WITHIN });
        }
    }

    /// Closes the oldest dial, if it takes too long while another waits.
    fn give_up_a_dial(&mut self, now: Instant) {
        let dials = self.connections.iter().enumerate().filter_map(|(place, connection)| {
            let dial = connection.as_deref().filter(|connection| connection.is_dialled)?;
            matches!(dial.state, ConnectionState::Greeting(_)).then_some((dial.since, place))
        });
        if let Some((since, place)) = dials.min()
            && now.duration_since(since) > FORCE_AFTER
        {
            self.close(place, TcpCloseReason::Broken);
        }
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
