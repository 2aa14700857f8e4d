//! What a watch has its owner do.

use crate::detector::FailureEvent;
use crate::protocol::Notice;
use std::collections::VecDeque;
use ultramarine_topology::Pe;

/// The number that the owner of a watch gives to a connection. No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionNumber(pub usize);

/// Effects in the order in which to carry them out. The owner takes them from the front.
pub type Effects = VecDeque<Effect>;

/// What a watch has its owner do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Dial this PE, and answer at once, by [`dialling`](super::Watch::dialling) or
    /// [`dial_failed`](super::Watch::dial_failed).
    Dial(Pe),
    /// Send a notice on a connection that is open. If that fails, say so by
    /// [`not_sent`](super::Watch::not_sent).
    Send {
        /// The connection.
        connection: ConnectionNumber,
        /// The notice.
        notice: Notice,
    },
    /// Send nothing more on this connection, once all is sent that was handed to it. The other end
    /// may go on sending.
    EndSending(ConnectionNumber),
    /// Close this connection, since it is not needed any more. First hand over what has arrived on
    /// it; then say that it is [closed](super::Watch::closed).
    Close(ConnectionNumber),
    /// Tell the PE of this event.
    Report(FailureEvent),
}
