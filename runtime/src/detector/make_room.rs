//! Makes room for a new connection of the detector.
//!
//! A detector keeps to a [limit](crate::transport::connection_limit) on its connections, so that a
//! process with few file descriptors has some left for its lane: when the lane can do nothing, its
//! PE looks silent to all others, and their detectors dial it. A detector needs few connections,
//! mostly four, so that the limit matters only where there are few descriptors, or for a PE on
//! which very many others call.
//!
//! What is closed for another has not been used for [`KEPT_FOR`], so that all get their turn: a
//! dial, if a dial waits for the end of another, else what the
//! [watch](super::watch::Watch::make_room) needs least. While other parts of the process take all
//! descriptors, connections that are needed are kept: a descriptor that is freed would be theirs.

use super::event_loop::{EventLoop, KEPT_FOR};
use crate::transport::connection_limit::Occupancy;
use std::io;
use std::time::{Duration, Instant};

/// How long the handshake of an accepted connection may take while other callers wait for room.
const HELLO_WITHIN_IF_PRESSED: Duration = Duration::from_millis(100);

impl EventLoop {
    fn occupancy(&self) -> Occupancy {
        Occupancy {
            total: self.connections.len(),
            dialling: self.dials.len(),
            strangers: self.strangers.len(),
            is_called: self.listener.is_called(),
        }
    }

    /// Whether there is room for another dial.
    pub(super) fn may_dial(&self) -> bool {
        self.limit.may_dial(&self.occupancy(), Instant::now())
    }

    /// A dial found no room.
    pub(super) fn want_to_dial(&mut self) {
        self.limit.want_dial(Instant::now());
    }

    /// Whether there is room to accept another call.
    pub(super) fn may_accept(&self) -> bool {
        self.limit.may_accept(&self.occupancy(), Instant::now())
    }

    /// The system refused to let this PE dial or accept.
    pub(super) fn refused(&mut self, error: &io::Error) {
        self.limit.refused(error, self.connections.len(), Instant::now());
    }

    /// How long the handshake of an accepted connection may take now.
    pub(super) fn hello_within(&self, usually: Duration) -> Duration {
        let is_pressed = self.listener.is_called() && !self.may_accept();
        if is_pressed { HELLO_WITHIN_IF_PRESSED.min(usually) } else { usually }
    }

    /// Whether a dial or a caller waits.
    pub(super) fn is_pressed(&self) -> bool {
        self.listener.is_called() || self.limit.has_wanted_dial()
    }

    /// Closes connections if there is no room for a dial or a call that waits.
    pub(super) fn make_room(&mut self) {
        if !self.is_pressed() {
            return;
        }
        let (at, now) = (Instant::now(), self.clock.now());
        let occupancy = self.occupancy();
        if self.limit.is_dial_awaited(&occupancy, at) {
            self.watch.give_up_a_dial(now, KEPT_FOR, &mut self.effects);
        }
        let keeps_needed = self.limit.is_short(at);
        for _ in 0..self.limit.wanted(&occupancy, at) {
            self.watch.make_room(now, KEPT_FOR, keeps_needed, &mut self.effects);
        }
        self.perform();
    }
}
