//! One PE sends the same message to many PEs; there is no reply.
//!
//! The message goes down a tree that follows the hierarchy: a PE that receives it for a range of
//! PEs sends it to one PE of each [branch](Topology::branches). So all of `n` PEs have it after
//! about log2 `n` steps, and no PE sends it more often than that.
//!
//! Dead PEs are left out. If a PE dies before it has passed the message on, the PEs below it do not
//! get it. What all PEs must know in any case belongs into the results of tasks.
//!
//! [`Topology::branches`]: ultramarine_topology::Topology::branches

use super::message::{Bytes, Message};
use super::node::{Host, Node};
use super::phase::Phase;
use std::ops::Range;

impl Node {
    /// Sends `body` to these PEs, and runs it here too if this PE is one of them. Does nothing
    /// while the job ends.
    pub fn tell(&self, pes: Range<u32>, body: Bytes, host: &mut impl Host) {
        if self.phase() != Phase::Running {
            return;
        }
        if !pes.contains(&self.me.number()) {
            return self.tell_through_one(pes, body, host);
        }
        for branch in self.topology.branches(self.me, pes) {
            self.tell_through_one(branch, body.clone(), host);
        }
        host.deliver(body);
    }

    /// Sends it to the first of these PEs that lives, which passes it on to the others.
    fn tell_through_one(&self, pes: Range<u32>, body: Bytes, host: &mut impl Host) {
        let first = self.living.first_in(pes.clone());
        if let Some(first) = first {
            host.send(first, Message::Tell { pes, body });
        }
    }
}
