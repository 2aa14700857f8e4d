//! Reading the inbox: messages from other PEs' programs, and deaths.

use super::processor::{Processor, Task};
use super::worker::leave_out_turn;
use crate::executor::keep::inbox::InboxItem;
use crate::executor::task::arrival::start_in_bytes;
use crate::executor::task::start::{Effort, Packed, Start};
use std::sync::Arc;

/// A task that reads the next item in the inbox.
struct Reader;

impl Start<Processor> for Reader {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.counts.leave_out_start();
        match pe.kept.inbox.next() {
            None => return,
            Some(InboxItem::Message(mut body)) => {
                // (The argument of a message has no handles to wait for.)
                let _ = start_in_bytes(pe, None, false, &mut body);
            }
            Some(InboxItem::Death(dead)) => pe.kept.death_listeners.announce(dead),
        }
        if pe.kept.inbox.goes_on() {
            pe.queues.place_first(self);
        } else if pe.turns.outbox().is_empty() && pe.queues.is_worker() {
            // There was a turn just now, which brought the message.
            leave_out_turn();
        }
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed<Task>> {
        unreachable!("it was placed here, and stands on no shelf")
    }
}

impl Processor {
    /// Puts an item into the inbox, and has a worker read it.
    pub(crate) fn read(self: &Arc<Self>, item: InboxItem) {
        if self.kept.inbox.push(item) {
            self.queues.place_first(Arc::new(Reader));
            self.wake_worker();
        }
    }
}
