//! What one PE tells many, without a reply.
//!
//! It goes down a tree that follows the hierarchy: each PE that hears it for several gives the
//! [branches](Topology::branches) below it to one PE each. So all of `n` PEs have heard it after
//! about log2 `n` steps, and no PE sends more messages than that.
//!
//! Those that are dead are left out. If a PE dies while it has others to tell, these do not hear
//! it: what all must know in any case is for the results of tasks to carry.
//!
//! [`Topology::branches`]: ultramarine_topology::Topology::branches

use super::message::{Bytes, Message};
use super::node::{Host, Node};
use super::phase::Phase;
use std::ops::Range;
use ultramarine_topology::Pe;

impl Node {
    /// Tells these PEs something, this one too if it is one of them. While the job ends, nothing is
    /// told any more.
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
        host.hear(body);
    }

    /// Tells the first of these PEs that lives, which tells the others.
    fn tell_through_one(&self, pes: Range<u32>, body: Bytes, host: &mut impl Host) {
        let first = pes.clone().map(Pe::new).find(|pe| !self.dead.contains(pe));
        if let Some(first) = first {
            host.send(first, Message::Tell { pes, body });
        }
    }
}
