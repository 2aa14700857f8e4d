//! Heralds: how a PE that loses the judge tells the others.

use super::{Claim, Loss, Membership, MembershipMutant, MembershipStatus, Notice, Term};
use std::cmp::Reverse;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What a herald says. Of two, the smaller is passed on: the one that claims more, else that of the
/// smaller number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct HeraldNews {
    /// What it says of the judge.
    pub(super) claim: Reverse<Claim>,
    /// The PE that says so.
    pub(super) herald: Pe,
}

impl HeraldNews {
    pub(super) fn new(herald: Pe, claim: Claim) -> Self {
        HeraldNews { claim: Reverse(claim), herald }
    }
}

impl Membership {
    /// A herald says that the judge of a term does not answer it.
    pub(super) fn handle_herald(
        &mut self,
        now: Duration,
        term: Term,
        news: HeraldNews,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        // The judge knows better, and a herald that is not in the tree cannot begin one.
        let herald = news.herald;
        let is_senseless = herald == self.judge() || !self.list.living().contains(herald);
        if term != self.list.term() {
            return self.handle_orphan(now, (herald, term), out);
        }
        if self.is_judge() || is_senseless {
            return;
        }
        self.pass_on(news, out);
        if self.is_mutant(MembershipMutant::BelievesHeralds) {
            self.lose_judge(Loss::Silent, out);
        } else if news.claim.0 == Claim::Gone {
            self.lose(now, term.judge, Loss::Witnessed, out);
        } else {
            let insists = news.claim.0.insists();
            if insists {
                self.note_caller(herald);
            }
            out(self.me, Notice::Look { pe: term.judge, anew: insists });
        }
    }

    /// The judge that this PE follows is lost.
    pub(super) fn lose_judge(&mut self, loss: Loss, out: &mut dyn FnMut(Pe, Notice)) {
        let goes_on = self.succession.is_some();
        let is_certain = goes_on || loss == Loss::Witnessed;
        let claim = if is_certain { Claim::from(loss) } else { Claim::Suspected };
        if !goes_on {
            self.end(MembershipStatus::RootLost);
        }
        self.pass_on(HeraldNews::new(self.me, claim), out);
    }

    /// Passes a herald's news on, unless this PE has passed on some that was as good.
    pub(super) fn pass_on(&mut self, news: HeraldNews, out: &mut dyn FnMut(Pe, Notice)) {
        let (living, term) = (self.list.living(), self.list.term());
        let HeraldNews { claim, herald } = news;
        if self.herald.is_some_and(|former| former <= news) || !living.contains(herald) {
            return;
        }
        self.herald = Some(news);
        living.herald_children(herald, self.me).into_iter().for_each(|child| {
            out(child, Notice::Orphaned { herald, term, claim: claim.0 });
        });
    }
}
