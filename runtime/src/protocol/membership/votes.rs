//! How the PEs that follow a judge are counted, in its tree.

use super::{Membership, MembershipMutant, MembershipStatus, Notice, Term};
use std::time::Duration;
use ultramarine_topology::Pe;

/// What a PE follows: the judge of a term with a list of this length, and whether to the job's end.
pub(super) type Followed = (Term, u32, bool);

impl Membership {
    /// Whether the judge needs to know how many PEs follow it: to take office, because it has lost
    /// some, or to end the job.
    pub(super) fn awaits_votes(&self) -> bool {
        let has_lost = || self.list.unconfirmed().next().is_some();
        let Some(succession) = &self.succession else { return false };
        let asks_end = self.list.heading.ends && !succession.is_end_agreed;
        asks_end || !self.list.heading.in_office || has_lost()
    }

    /// Whether the judge has lost too many PEs to go on, of which some may live: more than half, or
    /// half before it is in office.
    pub(super) fn is_outvoted(&self) -> bool {
        if self.succession.is_none() || self.is_mutant(MembershipMutant::IgnoresSilence) {
            return false;
        }
        let (lost, all) = (self.list.unconfirmed().count() as u32, self.list.electorate());
        let is_half_enough =
            self.list.heading.in_office || self.is_mutant(MembershipMutant::WaitsAtHalf);
        let is_too_many = if is_half_enough { 2 * lost > all } else { 2 * lost >= all };
        is_too_many && self.list.has_silent()
    }

    /// The list is new, or longer: the count begins anew.
    pub(super) fn begin_vote(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        let again_at = now.saturating_add(self.call_every());
        let is_waiting = self.awaits_votes() && (self.is_judge() || !self.list.heading.in_office);
        let Some(succession) = &mut self.succession else { return };
        succession.followers.clear();
        if is_waiting {
            succession.again_at = Some(again_at);
        }
        if !self.is_judge() && self.is_outvoted() {
            return self.end(MembershipStatus::Outvoted);
        }
        self.vote(true, out);
    }

    /// PEs below this one in the tree follow the judge.
    pub(super) fn handle_follower(
        &mut self,
        from: Pe,
        follows: Followed,
        count: u32,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let is_child = self.list.living().parent(from) == Some(self.me);
        let is_current = follows == self.followed();
        let Some(succession) = self.succession.as_mut().filter(|_| is_child && is_current) else {
            return;
        };
        // What is heard twice, as over two connections, is not passed on twice at each level.
        let known = succession.followers.entry(from).or_default();
        if count > *known {
            *known = count;
            self.vote(true, out);
        }
    }

    /// Tells the parent in the tree how many PEs follow the judge, as far as this PE knows; the
    /// judge counts them. If `only_if_complete`, not before all children have said so.
    pub(super) fn vote(&mut self, only_if_complete: bool, out: &mut dyn FnMut(Pe, Notice)) {
        let has_more = self.accusations.values().any(|accusation| accusation.claim.is_declared());
        let Some(succession) = self.succession.as_ref().filter(|_| self.awaits_votes()) else {
            return;
        };
        let count = 1 + succession.followers.values().sum::<u32>();
        if self.is_judge() {
            return self.count_votes(count, out);
        }
        let children = self.list.living().children(self.me).count();
        let is_complete = succession.followers.len() == children;
        // A PE that knows of deaths that are not in the list must not count those as votes.
        if !has_more
            && (is_complete || !only_if_complete)
            && let Some(parent) = self.list.living().parent(self.me)
        {
            let (term, dead, ends) = self.followed();
            out(parent, Notice::Follow { term, dead, count, ends });
        }
    }

    /// Asks the PEs below this one in the tree whether they follow. If not for the first time,
    /// looks at those that have not said so: what they say may not reach this PE, which need not
    /// watch them.
    pub(super) fn ask_children(&self, is_repeated: bool, out: &mut dyn FnMut(Pe, Notice)) {
        self.tell_children(self.list.len(), out);
        let Some(succession) = self.succession.as_ref().filter(|_| is_repeated) else { return };
        let children = self.list.living().children(self.me);
        let silent = children.filter(|child| !succession.followers.contains_key(child));
        silent.for_each(|pe| out(self.me, Notice::Look { pe, anew: false }));
    }

    pub(super) fn followed(&self) -> Followed {
        (self.list.term(), self.list.len() as u32, self.list.heading.ends)
    }

    /// On the judge: this number of PEs follow it, itself among them.
    fn count_votes(&mut self, count: u32, out: &mut dyn FnMut(Pe, Notice)) {
        let electorate = self.list.electorate();
        if self.told() < self.list.len() {
            // They have followed a shorter list.
            return;
        }
        // If no PE is silent, those that live are all that can follow any judge.
        let is_unanimous = !self.list.has_silent() && count == self.list.living().count();
        let is_enough = if self.list.heading.in_office {
            2 * count >= electorate || self.is_mutant(MembershipMutant::ConfirmsAlone)
        } else {
            2 * count > electorate || self.is_mutant(MembershipMutant::NeedsNoVotes)
        };
        if !is_enough && !is_unanimous {
            return;
        }
        let ends = self.list.heading.ends;
        self.succession.iter_mut().for_each(|succession| succession.is_end_agreed |= ends);
        if !self.list.heading.in_office {
            return self.take_office(out);
        }
        self.list.heading.confirmed = self.list.len() as u32;
        self.merge();
        self.tell_children(self.list.len(), out);
    }
}
