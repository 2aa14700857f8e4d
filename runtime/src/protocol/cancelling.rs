//! Cancels tasks that are away, with one message to each PE that has some of them.
//!
//! Home forgets the tasks at once, so that nothing depends on the message. If another PE is just
//! handing a task on, the task is cancelled when its receiver sends ACK. A task that has come back
//! as stolen work is cancelled before the next FISH is answered: a thief would have it as a new
//! one.

use super::message::Message;
use super::node::{Host, Node};
use super::phase::Phase;
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// The most tasks that one call, and so one message, can cancel.
pub const CANCELLED_AT_ONCE: usize = 8192;

impl Node {
    /// Cancels these tasks of this PE, at most [`CANCELLED_AT_ONCE`].
    pub fn cancel(&mut self, futures: Vec<u64>, host: &mut impl Host) {
        self.has_cancelled = true;
        self.take_back_all_of(self.me, &futures, host);
        let mut by_pe: BTreeMap<Pe, Vec<u64>> = BTreeMap::new();
        for future in futures {
            let there = self.supervision.cancel(future);
            let is_told = |pe: &Pe| self.phase() == Phase::Running && !self.living.is_dead(*pe);
            if let Some(there) = there.filter(is_told) {
                by_pe.entry(there).or_default().push(future);
            }
        }
        for (pe, futures) in by_pe {
            if pe == self.me {
                host.cancel(pe, futures);
            } else {
                host.send(pe, Message::Cancel { futures });
            }
        }
    }

    /// The PE `there` has sent ACK for a task. If home has cancelled it meanwhile, that PE must
    /// drop it.
    pub(super) fn cancel_unknown(&self, future: u64, there: Pe, host: &mut impl Host) {
        let may_tell = self.has_cancelled && self.phase() == Phase::Running;
        if may_tell && !self.supervision.knows(future) {
            host.send(there, Message::Cancel { futures: vec![future] });
        }
    }
}
