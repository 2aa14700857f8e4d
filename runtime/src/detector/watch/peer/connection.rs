//! What a watch must know of one connection.

use crate::detector::watch::ConnectionNumber;
use std::time::Duration;

/// A connection with a PE.
#[derive(Clone, Debug)]
pub(in crate::detector::watch) struct PeerConnection {
    pub(in crate::detector::watch) number: ConnectionNumber,
    pub(in crate::detector::watch) state: ConnectionState,
    /// When it was begun, or last carried anything but a heartbeat.
    pub(in crate::detector::watch) used: Duration,
    /// It holds something that the system has not taken yet.
    pub(in crate::detector::watch) has_backlog: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::detector::watch) enum ConnectionState {
    /// This PE dials, or the handshake is not done.
    Dialling,
    /// It carries notices both ways.
    Open,
    /// This PE sends nothing more on it.
    Ending,
    /// It is to be closed, or broken: all that is to come is the report of its end.
    Closing,
}

impl PeerConnection {
    pub(in crate::detector::watch) fn dialling(number: ConnectionNumber, now: Duration) -> Self {
        let state = ConnectionState::Dialling;
        PeerConnection { number, state, used: now, has_backlog: false }
    }

    pub(in crate::detector::watch) fn open(number: ConnectionNumber, now: Duration) -> Self {
        PeerConnection { state: ConnectionState::Open, ..Self::dialling(number, now) }
    }

    pub(in crate::detector::watch) fn is_open(&self) -> bool {
        self.state == ConnectionState::Open
    }

    /// Whether this PE dials, or the handshake is not done.
    pub(in crate::detector::watch) fn is_dialled(&self) -> bool {
        self.state == ConnectionState::Dialling
    }

    /// Whether it is open and has taken all that was sent.
    pub(in crate::detector::watch) fn is_free(&self) -> bool {
        self.is_open() && !self.has_backlog
    }
}
