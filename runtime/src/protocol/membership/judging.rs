//! What only the root does: it judges the accused, and announces the dead.

use super::{Membership, MembershipMutant, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// A living PE accuses `pe`.
    pub(super) fn handle_accusation(
        &mut self,
        now: Duration,
        accuser: Pe,
        (pe, insists): (Pe, bool),
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let makes_sense = pe != accuser && pe != Pe::ROOT && pe.number() < self.pes;
        if self.me != Pe::ROOT || !makes_sense {
            return;
        }
        if self.is_dead(pe) {
            return match self.dead.position(pe).filter(|at| *at < self.told()) {
                Some(at) => out(accuser, self.dead.bulletin_to(at, self.told())),
                None => self.announcements.wait([accuser]),
            };
        }
        if self.is_mutant(MembershipMutant::BelievesAccusers) {
            return self.declare_dead(now, pe, out);
        }
        let until = now.saturating_add(self.patience);
        let trusts_old = self.is_mutant(MembershipMutant::TrustsOldSights);
        let outcome = self.heard_accusations.add(accuser, (pe, insists), until, trusts_old);
        if outcome.is_first
            && let Some(witness) = self.witness(accuser, pe)
        {
            for at in [accuser, pe] {
                out(witness, Notice::Look { pe: at, anew: false });
            }
        }
        if outcome.is_path_broken {
            let leaves = self.heard_accusations.who_leaves(accuser, pe);
            let stays = if leaves == pe { accuser } else { pe };
            self.declare_dead(now, leaves, out);
            if self.is_mutant(MembershipMutant::ExpelsBoth) {
                self.declare_dead(now, stays, out);
            }
        } else {
            out(self.me, Notice::Look { pe, anew: outcome.begins_to_insist });
        }
    }

    /// The next PE in the row that is neither the root nor one of these two.
    fn witness(&self, accuser: Pe, accused: Pe) -> Option<Pe> {
        let living = self.living();
        let place = living.index_of(accused)?;
        let next = |step| living.at((place + step) % living.count());
        let is_free = |pe: &Pe| ![Pe::ROOT, accuser, accused].contains(pe);
        (1..living.count().min(4)).filter_map(next).find(is_free)
    }

    /// On the root: declares a PE dead.
    pub(super) fn declare_dead(&mut self, now: Duration, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        let is_due = self.announcements.due(self.dead.len() + 1).is_some_and(|due| due <= now);
        self.dead.append(&[pe]);
        self.announcements.wait(self.heard_accusations.close(pe));
        if is_due {
            self.announce(now, out);
        }
    }

    /// On the root: announces all deaths that are not announced yet, without waiting any longer.
    /// [`tick`](Self::tick) does so when it is time.
    pub fn announce(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        let former = self.told();
        let is_kept = former > 0 && self.is_mutant(MembershipMutant::NeverAnnouncesLater);
        if former == self.dead.len() || is_kept {
            return;
        }
        let mut told = self.announcements.announce(now, self.dead.len());
        told.extend(self.living().children(self.me));
        for to in told.into_iter().filter(|to| self.living().contains(*to)) {
            out(to, self.dead.bulletin(former));
        }
        for (at, dead) in self.dead().iter().enumerate().skip(former) {
            out(*dead, self.dead.bulletin_to(at, at + 1));
        }
    }

    /// Whether the root has deaths to announce.
    pub fn has_to_announce(&self) -> bool {
        self.told() < self.dead.len()
    }

    /// The length of the part of the list that others may be told.
    pub(super) fn told(&self) -> usize {
        if self.me == Pe::ROOT { self.announcements.announced } else { self.dead.len() }
    }
}
