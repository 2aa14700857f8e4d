//! What a PE has heard and the program has not.

use crate::executor::schedule::serial::Serial;
use crate::protocol::message::Bytes;
use ultramarine_topology::Pe;

/// InboxItem for the program.
pub(crate) enum InboxItem {
    /// A message from another PE's program.
    Message(Bytes),
    /// This PE has died. It stands behind all that has come from that PE.
    Death(Pe),
}

/// InboxItem in the order in which they came. One is begun after the other.
pub(crate) type Inbox = Serial<InboxItem>;
