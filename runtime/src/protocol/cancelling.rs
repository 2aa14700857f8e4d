//! Cancelling tasks that are away: one message to each PE that has some.
//!
//! Home forgets the task at once, so that nothing depends on the message. A task that is just being
//! handed on by another PE is cancelled when the one that gets it says so.

use super::message::Message;
use super::node::{Host, Node};
use super::phase::Phase;
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// How many are cancelled with one call at most, and so with one message.
pub const CANCELLED_AT_ONCE: usize = 8192;

impl Node {
    /// The results of these tasks of this PE are not wanted any more: at most
    /// [`CANCELLED_AT_ONCE`].
    pub fn cancel(&mut self, futures: Vec<u64>, host: &mut impl Host) {
        self.has_cancelled = true;
        let mut by_pe: BTreeMap<Pe, Vec<u64>> = BTreeMap::new();
        for future in futures {
            let there = self.supervision.cancel(future);
            let is_told = |pe: &Pe| self.phase() == Phase::Running && !self.dead.contains(pe);
            if let Some(there) = there.filter(is_told) {
                by_pe.entry(there).or_default().push(future);
            }
        }
        for (pe, futures) in by_pe {
            host.send(pe, Message::Cancel { futures });
        }
    }

    /// A PE says that it has a task. If it was cancelled on its way there, it is now.
    pub(super) fn cancel_unknown(&self, future: u64, there: Pe, host: &mut impl Host) {
        let may_tell = self.has_cancelled && self.phase() == Phase::Running;
        if may_tell && !self.supervision.knows(future) {
            host.send(there, Message::Cancel { futures: vec![future] });
        }
    }
}
