//! Callers: PEs that have lost their judge say so to others, and are told by those that have not.

use super::{Membership, MembershipStatus, Notice, Term};
use std::cmp::Ordering;
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// This PE has lost the judge. It is told if another has not.
    pub(super) fn note_caller(&mut self, caller: Pe) {
        if let Some(succession) = &mut self.succession {
            succession.callers.insert(caller);
        }
    }

    /// A PE asks for a judge that follows another term, whose judge it has lost.
    pub(super) fn handle_orphan(
        &mut self,
        now: Duration,
        (herald, term): (Pe, Term),
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        if self.succession.is_none() {
            return;
        }
        if term < self.list.term() {
            // It asks for the list of the later term, and may follow.
            out(herald, self.heartbeat());
        }
        if !self.is_judge() {
            // It is told if this PE reaches its own judge.
            self.note_caller(herald);
            out(self.me, Notice::Look { pe: self.judge(), anew: true });
        } else if term > self.list.term() {
            if self.list.heading.in_office && !self.is_dead(term.judge) {
                out(herald, Notice::InContact { term: self.list.term() });
            } else {
                self.outbid(now, term, out);
            }
        }
    }

    /// Another PE is in contact with the judge of this term. If this one has lost that judge and
    /// has no other in office, it leaves: the path between the two is broken. (Unless this one has
    /// seen that the judge's process is gone: then the contact was before that. Or unless that
    /// judge is this PE itself, which asks again in a later term.)
    pub(super) fn handle_contact(&mut self, from: Pe, term: Term) {
        let Term { judge, .. } = term;
        let has_none = self.is_candidate() || self.has_lost_judge();
        let is_over = self.has_seen_end_of(judge) || judge == self.me;
        if self.succession.is_none() || is_over || !has_none {
            return;
        }
        let leaves = match term.cmp(&self.list.term()) {
            Ordering::Greater => self.has_lost(judge),
            Ordering::Equal => true,
            Ordering::Less => !self.list.heading.in_office && !self.may_call_again(judge, from),
        };
        if leaves {
            self.end(MembershipStatus::RootLost);
        }
    }

    /// Whether this PE, which has lost its candidate, may yet follow another that called in an
    /// earlier term: not if it has lost that one, too, or if that one is in office. It is in
    /// office if it says itself that it is there, or if the lost candidate has it in its list.
    fn may_call_again(&self, other: Pe, says: Pe) -> bool {
        let is_lost = self.has_lost(other) || self.list.contains(other);
        !self.is_candidate() && !is_lost && other != says
    }
}
