//! Succession: how the others go on when they have lost their judge.
//!
//! ```text
//!  any PE             a candidate                     the tree of its list
//!    | loses the judge    |
//!    | ORPHANED --------->| loses the judge, and all PEs before itself
//!    |                    |-- BULLETIN, not in office --> child -> its children …
//!    |                    |<- FOLLOW 3 ------------------ child <- its children …
//!    |                    | has more than half of the votes: is the judge
//!    |                    |-- BULLETIN, in office ------> child -> its children …
//! ```
//!
//! Each judge has a [term](Term). Of the PEs that live the one with the smallest number should be
//! the judge, so a PE **calls** for votes when it has lost its judge and all PEs before itself. Its
//! list of the dead begins with all that it knows, and goes on with those that it has lost. The
//! list counts for nothing but votes until it is in office.
//!
//! # Rules
//!
//! - A PE **follows** a candidate if it has lost the judge that it followed, or if the candidate
//!   says that a *witness* has seen that this judge's process is gone (one is enough). It never
//!   follows an earlier term again. Until its candidate is in office it looks at it, and it follows
//!   one with a smaller number, should that call in a later term.
//! - A PE follows any judge in a later term that is **in office**, unless that one has it in its
//!   list: then it leaves. The elections are over, and it had no part in them.
//! - A PE that does not follow passes the call on, and looks at its judge. If it reaches that
//!   judge, it tells the candidate. A candidate that hears so **leaves**: the path between it and
//!   the judge is broken. (Not if it has seen itself that the judge's process is gone, nor if that
//!   judge is itself, in an earlier term.)
//! - Those that follow are counted in the tree. All PEs **have a vote** but those whose death is
//!   confirmed. A candidate with more than half of the votes takes office. So does one that all
//!   living PEs follow, if each death in its list is witnessed.
//! - A PE **tells** its judge of deaths that are missing in the list, and votes when they are
//!   there.
//! - A judge that has lost PEs that have a vote asks for votes, too: at least half **confirm** the
//!   list, itself among them, or all that live if each death is witnessed. From then on those that
//!   are in it have no vote.
//! - A judge that has lost more than half of those that have a vote is **outvoted**, and so is a
//!   candidate that has lost half of them; unless all of those deaths are witnessed. All that
//!   follow it leave.
//! - A judge or candidate that hears of a judge in a later term leaves.
//!
//! # One side goes on
//!
//! Say that there are two judges in office that stay, `J` and a later one, `C`. Let `V` be the PEs
//! that had a vote when both last had the same confirmed list.
//!
//! `C` was elected either by all that live, each other PE of `V` being gone. But `J` lives, and
//! does not follow `C`. Or it was elected by a set `A` of more than half of `V`. Once a PE of `A`
//! follows `C`, it confirms no list of `J`. Say that `J` has a list confirmed all the same, by at
//! least half of `V`, or by all that live, `C` among them. Then a PE of `A` did so before it
//! followed `C`, and told `C` of the deaths in that list before its vote counted. So no PE of `A`
//! is in that list, and `A` is more than half of those that it leaves as well. So in the end each
//! PE of `A` still has a vote for `J`, and is sooner or later lost to it: it is gone, or silent, or
//! says that it follows another. `C` itself is not gone, hence silent. So `J` is outvoted.
//!
//! That is why the vote of a PE counts until its death is confirmed, though a witness has seen that
//! its process is gone: it may have followed `C` before.
//!
//! A list that at least half have confirmed is known to a PE of every later majority. That PE does
//! not vote before the candidate's list has those deaths. So a PE that a confirmed list names is
//! never counted again, and what is dead stays dead.
//!
//! # It ends
//!
//! A PE that has lost its judge looks at the PEs before it: at [some](LOOKS_MIN) of them, and when
//! those are lost at more of them. Each either is lost, or calls, or reaches the judge and
//! says so. So after some time the PE calls itself, follows another, or leaves. A candidate that
//! waits for votes has each PE in its tree or has lost it: the PEs that are not in its list [watch
//! each other](Membership::watched), and it is outvoted when it has lost half. PEs that are asked
//! again look at those below them that say nothing: a path may be broken.

use super::accusations::{Accusation, AccusationTable};
use super::announcing::Announcements;
use super::heralds::HeraldNews;
use super::votes::Followed;
use super::{
    Claim, Death, Evidence, Heading, Loss, Membership, MembershipMutant, MembershipStatus, Notice,
    REPEATS, Term, TermList,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_topology::Pe;

/// How many PEs one looks at, of those before it that could be the next judge: at least this
/// number, and as many as have been silent for too long, for a whole rack may be.
const LOOKS_MIN: usize = 16;

/// What it takes to go on without the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Succession {
    /// The PEs that this one has lost for good. (Those in the list of the dead do not matter.)
    lost: BTreeMap<Pe, Loss>,
    /// How many PEs follow the judge in the part of its tree below each child.
    pub(super) followers: BTreeMap<Pe, u32>,
    /// They have lost the judge, and are told when this PE reaches it.
    pub(super) callers: BTreeSet<Pe>,
    /// When to ask again for votes, or for a judge.
    pub(super) again_at: Option<Duration>,
    /// The last call of each candidate that this PE passed on, and until when it does not pass it
    /// on again. (What is heard twice, as over two connections, would be sent twice as often at
    /// each level.)
    passed_on: BTreeMap<Pe, (Followed, Duration)>,
    /// The main task has ended on this PE.
    pub(super) has_ended: bool,
    /// On the judge: the job ends, and its result counts.
    pub(super) is_end_agreed: bool,
}

impl Membership {
    /// How often a PE asks for votes, or for a judge.
    pub(super) fn call_every(&self) -> Duration {
        self.patience / REPEATS
    }

    /// Notes what the owner has lost. It may be this PE's turn to be the judge.
    pub(super) fn note_loss(
        &mut self,
        now: Duration,
        pe: Pe,
        loss: Loss,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let Some(succession) = &mut self.succession else { return };
        let known = succession.lost.entry(pe).or_insert(loss);
        *known = loss.max(*known);
        if self.status != MembershipStatus::Member {
            return;
        }
        let is_silent = |death: &Death| *death == Death::silent(pe);
        if self.has_lost_judge() {
            self.stand(now, out);
        } else if self.is_candidate()
            && loss == Loss::Witnessed
            && self.list.deaths().iter().any(is_silent)
        {
            // It follows no other judge.
            self.call(now, self.list.term().round + 1, out);
        }
    }

    /// The owner has contact with a PE.
    pub(super) fn note_contact(&mut self, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        let (term, is_judges) = (self.list.term(), pe == self.judge());
        let Some(succession) = &mut self.succession else { return };
        if succession.lost.get(&pe) == Some(&Loss::Silent) {
            succession.lost.remove(&pe);
        }
        if is_judges {
            for caller in std::mem::take(&mut succession.callers) {
                out(caller, Notice::InContact { term });
            }
        }
    }

    /// Whether this PE asks for votes.
    pub(super) fn is_candidate(&self) -> bool {
        self.is_judge() && !self.list.heading.in_office
    }

    /// Whether this PE has lost the judge that it follows.
    pub(super) fn has_lost_judge(&self) -> bool {
        self.has_lost(self.judge())
    }

    pub(super) fn has_lost(&self, pe: Pe) -> bool {
        let has_lost = |succession: &Succession| succession.lost.contains_key(&pe);
        self.is_dead(pe) || self.succession.as_ref().is_some_and(has_lost)
    }

    /// Whether this PE knows for certain that the process of another is gone.
    pub(super) fn has_seen_end_of(&self, pe: Pe) -> bool {
        self.loss_of(pe) == Some(Loss::Witnessed)
    }

    fn loss_of(&self, pe: Pe) -> Option<Loss> {
        self.succession.as_ref()?.lost.get(&pe).copied()
    }

    /// What this PE knows of the death of a PE that it knows to be dead.
    fn evidence(&self, pe: Pe) -> Evidence {
        self.loss_of(pe).map_or(Evidence::Silent, Evidence::from).max(self.dead.evidence(pe))
    }

    /// The living PEs that this one has not lost, by number.
    fn not_lost(&self) -> impl Iterator<Item = Pe> + '_ {
        self.dead.living().iter().filter(|pe| !self.has_lost(*pe))
    }

    /// This PE has lost its judge. If it has lost all PEs before it, too, it asks for votes. If
    /// not, it looks at those.
    fn stand(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        if self.stays_with_judge() {
            return self.end(MembershipStatus::RootLost);
        }
        let again_at = now.saturating_add(self.patience / 2);
        let before = self.not_lost().take_while(|pe| *pe < self.me);
        let lost = self.succession.iter().flat_map(|succession| succession.lost.range(..self.me));
        let is_silent = |pe: Pe, loss: Loss| loss == Loss::Silent && !self.is_dead(pe);
        let silent = lost.filter(|(pe, loss)| is_silent(**pe, **loss)).count();
        let before: Vec<Pe> = before.take(silent.max(LOOKS_MIN)).collect();
        let Some(succession) = &mut self.succession else { return };
        if before.is_empty() {
            return self.call(now, self.list.term().round + 1, out);
        }
        succession.again_at.get_or_insert(again_at);
        before.into_iter().for_each(|pe| out(self.me, Notice::Look { pe, anew: false }));
    }

    /// Begins a term of this PE's own: asks for votes.
    fn call(&mut self, now: Duration, round: u32, out: &mut dyn FnMut(Pe, Notice)) {
        let stands_again = self.is_judge();
        let Some(succession) = &mut self.succession else { return };
        let ends = succession.has_ended;
        if stands_again {
            // It has lost them all, though it may have seen one of them since.
            for death in self.list.deaths() {
                succession.lost.entry(death.pe).or_insert(Loss::Silent);
            }
        }
        let known = self.dead.order().iter();
        let known = known.map(|pe| Death { pe: *pe, evidence: self.evidence(*pe) });
        let lost = self.succession.iter().flat_map(|succession| &succession.lost);
        let lost = lost.filter(|(pe, _)| !self.dead.contains(**pe));
        let lost = lost.map(|(pe, loss)| Death { pe: *pe, evidence: Evidence::from(*loss) });
        let dead: Vec<Death> = known.chain(lost).map(|death| self.counted(death)).collect();
        let heading = Heading { ends, ..Heading::of(Term { round, judge: self.me }, false) };
        let mut list = TermList::new(heading, self.pes);
        list.append(&dead);
        self.begin_term(list);
        self.announcements.announce(now, self.list.len());
        // If it is outvoted, those that would follow leave as well: else each would call in turn.
        self.tell_children(0, out);
        if self.is_outvoted() || self.is_mutant(MembershipMutant::GivesUp) {
            return self.end(MembershipStatus::Outvoted);
        }
        self.begin_vote(now, out);
    }

    /// This PE follows the judge of another term from now on, or is that judge.
    fn begin_term(&mut self, list: TermList) {
        self.list = list;
        self.announcements = Announcements::default();
        self.heard_accusations = AccusationTable::default();
        self.herald = None;
        if let Some(succession) = &mut self.succession {
            succession.followers.clear();
            succession.callers.clear();
            succession.again_at = None;
        }
    }

    /// This PE has been elected.
    pub(super) fn take_office(&mut self, out: &mut dyn FnMut(Pe, Notice)) {
        let known = self.dead.order().len();
        let heading = &mut self.list.heading;
        (heading.in_office, heading.confirmed) = (true, self.announcements.announced as u32);
        self.merge();
        self.accusations.clear();
        self.tell_children(self.list.len(), out);
        for pe in &self.dead.order()[known..] {
            self.bulletin_about(*pe).into_iter().for_each(|notice| out(*pe, notice));
        }
    }

    /// A part of the list of a later term has arrived.
    pub(super) fn handle_later_term(
        &mut self,
        now: Duration,
        from: Pe,
        of: Heading,
        (after, dead): (u32, &[Death]),
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let mut list = TermList::new(of, self.pes);
        let is_valid = of.term.judge.number() < self.pes && list.could_declare(dead);
        if self.succession.is_none() || !is_valid {
            return;
        }
        let is_in_office = self.list.heading.in_office;
        let is_named = dead.iter().any(|death| death.pe == self.me);
        if is_named && of.in_office {
            return self.end(MembershipStatus::Expelled);
        }
        if self.is_candidate() && !of.in_office && self.me < of.term.judge {
            // Both ask for votes, and the smaller number should have them.
            return self.outbid(now, of.term, out);
        }
        if is_named {
            // Both have lost the judge, and the path between them is broken.
            if self.has_lost_judge() && of.term.judge < self.me {
                self.end(MembershipStatus::Expelled);
            }
            return;
        }
        if after > 0 {
            return out(from, self.heartbeat());
        }
        list.append(dead);
        if self.is_judge() && is_in_office {
            if of.in_office {
                self.end(MembershipStatus::Expelled);
            } else {
                out(of.term.judge, Notice::InContact { term: self.list.term() });
            }
            return;
        }
        if self.may_follow(of, dead) || self.is_mutant(MembershipMutant::VotesAtOnce) {
            return self.follow(now, list, out);
        }
        // This PE is in contact with its judge, as far as it knows. It passes the call on.
        self.note_caller(of.term.judge);
        out(self.me, Notice::Look { pe: self.judge(), anew: true });
        if !self.may_pass_on(now, (of.term, list.len() as u32, of.ends)) {
            return;
        }
        let news = list.bulletin_to(0, list.len());
        list.living().children(self.me).for_each(|child| out(child, news.clone()));
    }

    /// Whether this PE may leave its judge for that of a later term, whose list has these deaths.
    fn may_follow(&self, of: Heading, dead: &[Death]) -> bool {
        let judge = self.judge();
        let is_before = of.term.judge < judge && !self.list.heading.in_office;
        // A death that is confirmed is as good: that PE has no followers any more.
        let is_seen = |death: &Death| death.pe == judge && death.evidence > Evidence::Silent;
        let is_gone = dead.iter().any(is_seen);
        // The judge itself may ask again in a later term.
        let is_same = of.term.judge == judge;
        let may_leave = is_before || is_same || self.has_lost_judge();
        let may_follow = is_gone || may_leave && (is_same || !self.stays_with_judge());
        of.in_office || may_follow && !self.has_lost(of.term.judge)
    }

    /// Whether this is another call than the last that this PE passed on, or comes again when its
    /// candidate asks again.
    fn may_pass_on(&mut self, now: Duration, call: Followed) -> bool {
        let until = now.saturating_add(self.call_every() / 2);
        let Some(succession) = &mut self.succession else { return false };
        succession.passed_on.retain(|_, (_, until)| now < *until);
        let candidate = call.0.judge;
        let is_double = succession.passed_on.get(&candidate).is_some_and(|(last, _)| *last == call);
        if !is_double && now < until {
            succession.passed_on.insert(candidate, (call, until));
        }
        !is_double
    }

    /// Follows the judge of a later term from now on, and tells it of the deaths that it lacks.
    fn follow(&mut self, now: Duration, list: TermList, out: &mut dyn FnMut(Pe, Notice)) {
        self.begin_term(list);
        let judge = self.judge();
        let is_missing = |pe: &Pe| !self.list.contains(*pe);
        let missing: Vec<Pe> = self.dead.order().iter().copied().filter(is_missing).collect();
        self.accusations.values_mut().for_each(|accusation| accusation.again_at = now);
        // Also what was in the list of a judge that has never taken office.
        for (pe, loss) in self.succession.iter().flat_map(|succession| &succession.lost) {
            let accusation = Accusation { claim: Claim::from(*loss), again_at: now };
            self.accusations.entry(*pe).or_insert(accusation);
        }
        for pe in missing {
            let claim = Claim::Declared(self.evidence(pe));
            self.accusations.insert(pe, Accusation { claim, again_at: now + self.call_every() });
            out(judge, Notice::Accuse { pe, claim });
        }
        self.accusations.remove(&judge);
        self.merge();
        self.learn(now, 0, out);
        if self.status == MembershipStatus::Member && self.has_lost_judge() {
            self.pass_on(HeraldNews::new(self.me, Claim::Lost), out);
            self.stand(now, out);
        }
    }

    /// A bulletin says nothing new of the dead. It may say something of the judge, or ask again for
    /// votes.
    pub(super) fn note_heading(
        &mut self,
        now: Duration,
        from: Pe,
        of: Heading,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let is_news = of > self.list.heading;
        if is_news {
            self.take_over_heading(of);
        }
        let is_call = self.awaits_votes() && self.list.living().parent(self.me) == Some(from);
        if self.status == MembershipStatus::Member
            && (is_news || is_call && self.may_pass_on(now, self.followed()))
        {
            self.ask_children(!is_news, out);
            self.vote(false, out);
        }
    }

    /// Asks again for votes, or the next in the row to be the judge, when that is due.
    pub(super) fn call_again(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        let every = self.call_every();
        let is_waiting = self.is_judge() && self.awaits_votes();
        let has_lost = !self.is_judge() && self.has_lost_judge();
        let is_following = !self.is_judge() && !self.list.heading.in_office;
        let Some(succession) = &mut self.succession else { return };
        if succession.again_at.is_none_or(|at| now < at) {
            return;
        }
        let goes_on = is_waiting || has_lost || is_following;
        succession.again_at = goes_on.then_some(now.saturating_add(every));
        if is_waiting {
            self.ask_children(true, out);
        } else if has_lost && self.stays_with_judge() {
            self.end(MembershipStatus::RootLost);
        } else if has_lost {
            let term = self.list.term();
            let next = self.not_lost().next().filter(|next| *next != self.me);
            match next {
                // The others before this one may have come into the list since.
                None => self.call(now, term.round + 1, out),
                Some(next) => {
                    out(next, Notice::Orphaned { herald: self.me, term, claim: Claim::Lost });
                    out(self.me, Notice::Look { pe: next, anew: false });
                }
            }
        } else if is_following {
            out(self.me, Notice::Look { pe: self.judge(), anew: false });
        }
    }

    /// This PE asks for votes, and another term is later: it has to ask in a later term still.
    pub(super) fn outbid(&mut self, now: Duration, term: Term, out: &mut dyn FnMut(Pe, Notice)) {
        let round = if self.me < term.judge { term.round } else { term.round + 1 };
        self.call(now, round, out);
    }

    /// When [`call_again`](Self::call_again) is due.
    pub(super) fn call_due(&self) -> Option<Duration> {
        self.succession.as_ref()?.again_at
    }
}
