//! Messages and deaths of which a PE has heard and its program has not.

use crate::executor::schedule::serial::Serial;
use crate::protocol::message::Bytes;
use ultramarine_topology::Pe;

/// Something for the program to hear.
pub(crate) enum InboxItem {
    /// A message from another PE's program.
    Message(Bytes),
    /// This PE has died. The item comes after all messages from that PE.
    Death(Pe),
}

/// Items in the order in which they arrived. They are handled one after the other.
pub(crate) type Inbox = Serial<InboxItem>;
