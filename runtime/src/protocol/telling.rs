//! One PE sends the same message to many PEs; there is no reply.
//!
//! The message goes down a tree that follows the hierarchy: a PE that receives it for a range of
//! PEs sends it to one PE of each [branch](Topology::branches). So all of `n` PEs have it after
//! about log2 `n` steps, and no PE sends it more often than that.
//!
//! Dead PEs are left out: those of whose death the sender has heard, and those of which any PE
//! before it on the way had. So a message that is sent again after a death goes round the dead PE,
//! though others have not heard of that death yet. (The message has room for some 700 of them, and
//! for none if it is long itself; any job's messages may be that long.) If a PE dies before it has
//! passed the message on, the PEs below it do not get it. What all PEs must know in any case
//! belongs into the results of tasks.
//!
//! [`Topology::branches`]: ultramarine_topology::Topology::branches

use super::membership::Living;
use super::message::{Bytes, Message};
use super::node::{Host, Node};
use super::phase::Phase;
use std::borrow::Cow;
use std::ops::Range;
use ultramarine_topology::Pe;

/// A message that lists dead PEs is at most about this long, in bytes: no job limits its messages
/// to less.
const LISTING_BYTES_MAX: usize = 3500;

/// The most bytes of the number of a PE.
const PE_BYTES_MAX: usize = 5;

impl Node {
    /// Sends `body` to these PEs, and runs it here too if this PE is one of them. Does nothing
    /// while the job ends.
    pub fn tell(&self, pes: Range<u32>, body: Bytes, host: &mut impl Host) {
        self.pass_on(pes, &[], body, host);
    }

    /// The same, where those before this PE on the way knew that these PEs are dead.
    pub(super) fn pass_on(&self, pes: Range<u32>, dead: &[Pe], body: Bytes, host: &mut impl Host) {
        if self.phase() != Phase::Running {
            return;
        }
        let mut living = Cow::Borrowed(&self.living);
        if !dead.is_empty() {
            living.to_mut().remove(dead);
        }
        if !pes.contains(&self.me.number()) {
            return tell_through_one(&living, pes, body, host);
        }
        for branch in self.topology.branches(self.me, pes) {
            tell_through_one(&living, branch, body.clone(), host);
        }
        host.deliver(body);
    }
}

/// Sends it to the first of these PEs that lives, which passes it on to the others.
fn tell_through_one(living: &Living, pes: Range<u32>, body: Bytes, host: &mut impl Host) {
    if let Some(first) = living.first_in(pes.clone()) {
        let room = LISTING_BYTES_MAX.saturating_sub(body.few.len()) / PE_BYTES_MAX;
        let dead = living.dead_in(pes.clone()).take(room).collect();
        host.send(first, Message::Tell { pes, dead, body });
    }
}
