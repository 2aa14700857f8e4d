//! Why a connection of the detector is closed.

use super::counters::{DetectorCounters, count};
use crate::handshake::HandshakeError;
use std::io::{self, ErrorKind};

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// It is not needed any more.
    NotNeeded,
    /// The other end closed it, between two frames.
    Closed,
    /// The system reports that it broke.
    Broken,
    /// A witness says that the process is gone: this host, if it is the PE's own, or the PE's
    /// guard.
    Gone,
    /// Another host, or a firewall on the way to it, answers that no process listens there.
    Refused,
    /// This host could not go on.
    LocalFailure,
    /// There was no room for another connection.
    NoRoom,
    /// It did not begin with a HELLO for this PE.
    Stranger,
    /// A proof or a seal is wrong.
    Forged,
    /// It ended within a frame.
    Truncated,
    /// It announced a frame over the limit.
    Oversized,
    /// A frame with a right seal could not be decoded.
    Garbled,
}

impl From<io::Error> for CloseReason {
    fn from(error: io::Error) -> CloseReason {
        match error.kind() {
            ErrorKind::ConnectionRefused => CloseReason::Refused,
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::WriteZero => CloseReason::Broken,
            _ => CloseReason::LocalFailure,
        }
    }
}

impl From<HandshakeError> for CloseReason {
    fn from(refusal: HandshakeError) -> CloseReason {
        match refusal {
            HandshakeError::Stranger => CloseReason::Stranger,
            HandshakeError::Forged => CloseReason::Forged,
            HandshakeError::Gone => CloseReason::Gone,
            HandshakeError::Io(_) => CloseReason::LocalFailure,
        }
    }
}

impl CloseReason {
    pub(super) fn count(self, counters: &DetectorCounters) {
        count(match self {
            CloseReason::NotNeeded | CloseReason::NoRoom => return,
            CloseReason::Closed | CloseReason::Broken => &counters.broken,
            CloseReason::Gone | CloseReason::Refused => &counters.refused,
            CloseReason::LocalFailure => &counters.not_dialled,
            CloseReason::Stranger => &counters.strangers,
            CloseReason::Forged => &counters.forged,
            CloseReason::Truncated => &counters.truncated,
            CloseReason::Oversized => &counters.oversized,
            CloseReason::Garbled => &counters.garbled,
        });
    }
}
