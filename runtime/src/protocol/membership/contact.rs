//! What the owner sees of the other PEs.

use super::{
    Accusation, Claim, Death, Evidence, HeraldNews, Loss, Membership, MembershipMutant,
    MembershipStatus, Notice, REPEATS,
};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// The owner has no contact with `pe` at the moment. It may come back.
    pub fn suspect(&mut self, now: Duration, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        if !self.concerns(pe) {
            return;
        }
        if pe == self.judge() {
            self.pass_on(HeraldNews::new(self.me, Claim::Suspected), out);
        } else if !self.is_judge()
            && self.accusations.get(&pe).is_none_or(|former| former.claim.insists())
        {
            self.accuse(now, pe, Claim::Suspected, out);
        }
    }

    /// The owner has lost `pe` for good.
    pub fn lose(&mut self, now: Duration, pe: Pe, loss: Loss, out: &mut dyn FnMut(Pe, Notice)) {
        if !self.concerns(pe) {
            return;
        }
        let loss = match loss {
            Loss::Refused if self.is_mutant(MembershipMutant::BelievesRefusals) => Loss::Witnessed,
            Loss::Refused => Loss::Silent,
            loss => loss,
        };
        let claim = Claim::from(loss);
        let has_claimed = self.accusations.get(&pe).is_some_and(|former| former.claim >= claim);
        if self.is_judge() {
            self.declare_dead(now, Death { pe, evidence: Evidence::from(loss) }, out);
        } else if pe == self.judge() {
            self.lose_judge(loss, out);
        } else if !has_claimed {
            self.accuse(now, pe, claim, out);
        }
        self.note_loss(now, pe, loss, out);
    }

    /// The owner has contact with `pe`. If that PE is in the list of the dead, this one still has
    /// to tell a judge that does not know so.
    pub fn reach(&mut self, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        self.accusations.retain(|accused, known| *accused != pe || known.claim.is_declared());
        self.heard_accusations.reached(pe);
        if pe == self.judge() {
            self.herald = None;
        }
        self.note_contact(pe, out);
    }

    /// Whether it matters if `pe` is gone.
    pub(super) fn concerns(&self, pe: Pe) -> bool {
        let lives = pe != self.me && pe.number() < self.pes && !self.is_dead(pe);
        lives && self.status == MembershipStatus::Member
    }

    fn accuse(&mut self, now: Duration, pe: Pe, claim: Claim, out: &mut dyn FnMut(Pe, Notice)) {
        let again_at = now.saturating_add(self.patience / REPEATS);
        self.accusations.insert(pe, Accusation { claim, again_at });
        out(self.judge(), Notice::Accuse { pe, claim });
        out(self.me, Notice::Look { pe: self.judge(), anew: false });
    }
}
