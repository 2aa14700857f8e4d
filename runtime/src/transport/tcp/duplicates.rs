//! One connection for each pair: what happens to duplicates.
//!
//! A connection is given up in one of three cases, and none loses more frames than it must.
//!
//! - **A dial is overtaken.** If the other end's call has succeeded first, this end drops its own
//!   dial. It has sent no proof on it, so the other end cannot take it for a connection.
//! - **Both dials succeed.** Each end may have proved itself on the connection that it dialled
//!   before it could know of the other. Both ends keep the connection that the PE with the smaller
//!   number has dialled.
//! - **A later connection succeeds.** A PE dials only when it has no connection. So if a frame came
//!   on the former connection before this one was begun, or the same end dialled both, the other
//!   end has lost the former: it is read to the end, and closed.
//!
//! To close a connection in order, an end sends what waits, ends its own direction, and reads until
//! the other end has done the same, which it does at once. Frames that arrive on a newer connection
//! meanwhile are delivered after those on the older one: the link takes a gap for a loss, and waits
//! before it sends again.

use super::connection::{ConnectionState, TcpCloseReason};
use super::counters::TcpCounters;
use super::sockets::Sockets;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How long the other end may take to end a connection that this end has ended. Its process may be
/// stopped.
pub(super) const ENDING_WITHIN: Duration = Duration::from_secs(5);

impl Sockets {
    /// The handshake on the connection at `place`, with `pe`, is done.
    pub(super) fn connection_opened(&mut self, place: usize, pe: Pe) {
        let (now, event) = (Instant::now(), self.event());
        let Some(connection) = self.connection(place) else { return };
        let (is_dialled, begun) = (connection.is_dialled, connection.begun);
        (connection.peer, connection.since, connection.used) = (Some(pe), now, event);
        if is_dialled {
            self.dialled.remove(&begun);
            TcpCounters::count(&self.counters.dialled);
        } else {
            self.strangers.remove(&begun);
            TcpCounters::count(&self.counters.accepted);
        }
        let me = self.me;
        let peer = self.peer_or_new(pe, now);
        peer.dialling.take_if(|dialling| *dialling == place);
        let former = peer.open.replace(place);
        let overtaken = peer.dialling.take();
        if let Some(overtaken) = overtaken {
            self.overtake(overtaken, place);
        }
        let Some(former) = former else { return self.flush(place) };
        let is_lost = self.connection(former).is_none_or(|former| {
            former.is_dialled == is_dialled || former.first_heard.is_some_and(|heard| heard < begun)
        });
        if is_lost {
            TcpCounters::count(&self.counters.broken);
            self.abandon(former);
        } else if is_dialled == (me < pe) {
            self.end(former, now + ENDING_WITHIN);
        } else {
            self.peer_or_new(pe, now).open = Some(former);
            self.end(place, now + ENDING_WITHIN);
        }
    }

    /// Gives up a dial. What waits for it is sent on the connection at `place`.
    fn overtake(&mut self, overtaken: usize, place: usize) {
        let dialled = self.connections.get_mut(overtaken).and_then(Option::take);
        let Some(dialled) = dialled else { return };
        self.release(overtaken);
        self.dialled.remove(&dialled.begun);
        if let Some(connection) = self.connection(place) {
            connection.inherit(*dialled);
        }
    }

    /// Hands the system what waits on a connection that has just been opened.
    fn flush(&mut self, place: usize) {
        if self.connection(place).is_some_and(|connection| connection.flush().is_err()) {
            self.connection_broke(place);
        }
    }

    /// Closes an open connection in order.
    pub(super) fn end(&mut self, place: usize, until: Instant) {
        let Some(connection) = self.connection(place) else { return };
        let pe = connection.peer;
        connection.end(until);
        self.ending.push_back(place);
        if let Some(peer) = pe.and_then(|pe| self.peer(pe)) {
            peer.remove(place);
            peer.ending.push(place);
        }
        self.read_soon(place);
    }

    /// Closes a connection that the other end has lost, once what has arrived on it is read.
    fn abandon(&mut self, place: usize) {
        if let Some(connection) = self.connection(place) {
            connection.drop_waiting();
        }
        self.end(place, Instant::now());
    }

    /// Nothing can be sent on this connection any more. What has arrived on it is still read.
    pub(super) fn connection_broke(&mut self, place: usize) {
        let Some(connection) = self.connection(place) else { return };
        let (pe, since) = (connection.peer, connection.since);
        match connection.state {
            ConnectionState::Greeting(_) => self.close(place, TcpCloseReason::Broken),
            ConnectionState::Ending { .. } => {
                connection.drop_waiting();
                self.on_readable(place);
            }
            ConnectionState::Open => {
                TcpCounters::count(&self.counters.broken);
                pe.and_then(|pe| self.peer(pe)).into_iter().for_each(|peer| peer.fail(since));
                self.abandon(place);
            }
        }
    }

    /// The other end has ended its direction, after a whole frame.
    pub(super) fn read_to_end(&mut self, place: usize) {
        let until = Instant::now() + ENDING_WITHIN;
        if self
            .connection(place)
            .is_some_and(|connection| matches!(connection.state, ConnectionState::Open))
        {
            self.end(place, until);
        }
        let Some(connection) = self.connection(place) else { return };
        connection.is_unread = false;
        connection.state = ConnectionState::Ending { until, is_read: true };
        if connection.is_over() {
            self.close(place, TcpCloseReason::Orderly);
        }
    }

    /// Closes the ending connections whose time is over.
    pub(super) fn close_overdue(&mut self, now: Instant) {
        for _ in 0..self.ending.len() {
            let Some(place) = self.ending.pop_front() else { break };
            let is_due = self.connection(place).is_some_and(|connection| {
                // A connection with something still to be read gets as much time again.
                matches!(connection.state, ConnectionState::Ending { until, .. }
                    if until <= now && !connection.is_unread || until + ENDING_WITHIN <= now)
            });
            self.ending.push_back(place);
            if is_due {
                self.close(place, TcpCloseReason::Orderly);
            }
        }
    }
}
