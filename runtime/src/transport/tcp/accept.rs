//! Accepts calls, from PEs and from strangers.

use super::connection::{TcpCloseReason, TcpConnection, token};
use super::counters::TcpCounters;
use super::sockets::Sockets;
use crate::handshake::{Handshake, Purpose};
use mio::net::TcpStream;
use std::time::{Duration, Instant};

/// The most connections that one round accepts.
const ROUND_ACCEPTS_MAX: usize = 64;

/// How long a handshake may take while other callers wait for room.
const HELLO_WITHIN_IF_PRESSED: Duration = Duration::from_millis(100);

impl Sockets {
    /// Accepts calls, as far as there is room.
    pub(super) fn accept(&mut self, now: Instant) {
        for _ in 0..ROUND_ACCEPTS_MAX {
            if !self.listener.is_called() {
                return;
            }
            if !self.may_accept(now) {
                return self.listener.look();
            }
            match self.listener.accept() {
                Ok(Some(stream)) => self.take_call(stream),
                Ok(None) => return,
                Err(error) => {
                    TcpCounters::count(&self.counters.not_accepted);
                    return self.refused(&error, now);
                }
            }
        }
    }

    fn take_call(&mut self, stream: TcpStream) {
        let pes = self.peers.len() as u32;
        let handshake = Handshake::accept(self.key, Purpose::Lane, self.me, pes);
        let (place, event) = (self.next_place(), self.event());
        let at = (&*self.registry, token(place));
        match TcpConnection::new(stream, handshake, at, event) {
            Ok(connection) => {
                self.keep(connection);
                self.strangers.insert(event, place);
                self.limit.has_accepted();
            }
            Err(_) => TcpCounters::count(&self.counters.broken),
        }
    }

    /// Closes accepted connections whose handshake takes too long; sooner if other callers wait for
    /// room.
    pub(super) fn close_late_handshakes(&mut self, now: Instant) {
        while let Some((_, &place)) = self.strangers.first_key_value() {
            let is_pressed = self.listener.is_called() && !self.may_accept(now);
            let within = if is_pressed {
                HELLO_WITHIN_IF_PRESSED.min(self.hello_within)
            } else {
                self.hello_within
            };
            let Some(stranger) = self.connection(place) else { return };
            if now.duration_since(stranger.since) <= within {
                return;
            }
            self.close(place, TcpCloseReason::NoHandshake);
        }
    }
}
