//! What only the judge does: it judges the accused, and announces the dead.

use super::{Claim, Death, Evidence, Loss, Membership, MembershipMutant, MembershipStatus, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// A living PE accuses `pe`.
    pub(super) fn handle_accusation(
        &mut self,
        now: Duration,
        accuser: Pe,
        (pe, claim): (Pe, Claim),
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let makes_sense = pe != accuser && pe != self.me && pe.number() < self.pes;
        if !self.is_judge() || !makes_sense {
            return;
        }
        let is_silent = |death: &Death| *death == Death::silent(pe);
        let is_known = self.list.contains(pe);
        let is_better = self.is_candidate() && self.list.deaths().iter().any(is_silent);
        if claim == Claim::Gone && (!is_known || is_better) {
            return self.lose(now, pe, Loss::Witnessed, out);
        }
        if is_known {
            return match self.list.position(pe).filter(|at| *at < self.told()) {
                Some(at) => out(accuser, self.list.bulletin_to(at, self.told())),
                None => self.announcements.wait([accuser]),
            };
        }
        if let (Claim::Declared(evidence), Some(_)) = (claim, &self.succession) {
            return self.declare_dead(now, Death { pe, evidence }, out);
        }
        if self.is_mutant(MembershipMutant::BelievesAccusers) {
            return self.declare_dead(now, Death::silent(pe), out);
        }
        let until = now.saturating_add(self.patience);
        let trusts_old = self.is_mutant(MembershipMutant::TrustsOldSights);
        let outcome = self.heard_accusations.add(accuser, (pe, claim), until, trusts_old);
        if outcome.is_first
            && let Some(observer) = self.observer(accuser, pe)
        {
            for at in [accuser, pe] {
                out(observer, Notice::Look { pe: at, anew: false });
            }
        }
        if outcome.is_path_broken {
            let leaves = self.heard_accusations.who_leaves(accuser, pe);
            let stays = if leaves == pe { accuser } else { pe };
            self.declare_dead(now, Death::silent(leaves), out);
            if self.is_mutant(MembershipMutant::ExpelsBoth) {
                self.declare_dead(now, Death::silent(stays), out);
            }
        } else {
            out(self.me, Notice::Look { pe, anew: outcome.begins_to_insist });
        }
    }

    /// The next PE in the row that is neither the judge nor one of these two.
    fn observer(&self, accuser: Pe, accused: Pe) -> Option<Pe> {
        let living = self.list.living();
        let place = living.index_of(accused)?;
        let next = |step| living.at((place + step) % living.count());
        let is_free = |pe: &Pe| ![self.me, accuser, accused].contains(pe);
        (1..living.count().min(4)).filter_map(next).find(is_free)
    }

    /// On the judge: declares a PE dead.
    pub(super) fn declare_dead(
        &mut self,
        now: Duration,
        death: Death,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        if self.list.contains(death.pe) {
            return;
        }
        let is_due = self.announcements.due(self.list.len() + 1).is_some_and(|due| due <= now);
        let is_witnessed = self.heard_accusations.is_witnessed(death.pe);
        let heard = if is_witnessed { Evidence::Witnessed } else { Evidence::Silent };
        let death = Death { evidence: heard.max(death.evidence), ..death };
        self.list.append(&[self.counted(death)]);
        self.merge();
        self.announcements.wait(self.heard_accusations.close(death.pe));
        let is_outvoted = self.is_outvoted();
        if is_due || is_outvoted {
            self.announce(now, out);
        }
        if is_outvoted {
            self.end(MembershipStatus::Outvoted);
        }
    }

    /// A death as the votes count it.
    pub(super) fn counted(&self, death: Death) -> Death {
        let is_confirmed = death.evidence == Evidence::Witnessed
            && self.is_mutant(MembershipMutant::ForgetsWitnessed);
        let evidence = if is_confirmed { Evidence::Confirmed } else { death.evidence };
        Death { evidence, ..death }
    }

    /// On the judge: announces all deaths that are not announced yet, without waiting any longer.
    /// [`tick`](Self::tick) does so when it is time.
    pub fn announce(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        let former = self.told();
        let is_kept = former > 0 && self.is_mutant(MembershipMutant::NeverAnnouncesLater);
        if former == self.list.len() || is_kept {
            return;
        }
        let mut told = self.announcements.announce(now, self.list.len());
        told.extend(self.list.living().children(self.me));
        for to in told.into_iter().filter(|to| self.list.living().contains(*to)) {
            out(to, self.list.bulletin_to(former, self.list.len()));
        }
        for (at, death) in self.list.deaths().iter().enumerate().skip(former) {
            out(death.pe, self.list.bulletin_to(at, at + 1));
        }
        self.begin_vote(now, out);
    }

    /// Whether the judge has deaths to announce.
    pub fn has_to_announce(&self) -> bool {
        self.told() < self.list.len()
    }

    /// The length of the part of the list that others may be told.
    pub(super) fn told(&self) -> usize {
        if self.is_judge() { self.announcements.announced } else { self.list.len() }
    }
}
