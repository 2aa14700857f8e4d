//! Membership: how the PEs agree on which of them are dead. One PE's part, as a state machine.
//!
//! ```text
//!  any PE              the root                        the tree of the living
//!    | loses sight of p   |
//!    | ACCUSE p --------->| looks at p itself
//!    |                    |   LOOK p -> an observer, which does the same
//!    |                    | loses sight of p, too: p is dead
//!    |                    |-- BULLETIN p ---------------> child -> its children …
//!    |<---- BULLETIN p ---|                               (each that learns something from it)
//!    |                    |-- BULLETIN p -> p             which leaves if it lives after all
//! ```
//!
//! The root is the only judge (`SymGridPar2` §5.1: a job lives and dies with its root). With one
//! judge there is one list of the dead, in the order in which they were declared, which only ever
//! grows. All others have a beginning of it. So the dead are agreed on and stay dead, which
//! supervision needs (`SymGridPar2` §5.3, `HdpH-RS` §4.6: a message is lost only if its
//! sender or its receiver is dead; here that is made true by expelling those that are cut off).
//!
//! No PE is declared dead on hearsay: an accusation makes the root look for itself, and the news
//! that the root is lost makes each PE look. (SWIM, Das et al. 2002, has others ping a suspect
//! first; Lifeguard, Dadgar et al. 2018, distrusts an accuser that may itself be slow.) The one
//! exception is a [witness](Loss::Witnessed): what its own host says of a process, or its guard, is
//! believed by all. A call that another host refuses [proves nothing](Loss::Refused): a firewall
//! that parts the two answers in the same way.
//!
//! # Rules
//!
//! The owner (the detector) says what this PE sees for itself: [`suspect`](Membership::suspect)
//! when contact with a PE fails, [`lose`](Membership::lose) when it has failed for good,
//! [`reach`](Membership::reach) when it is there. A [`Notice::Look`] that this PE sends to itself
//! tells the owner to look at a PE.
//!
//! - A PE that **suspects** another accuses it at the root, and again from time to time until a
//!   bulletin names it or contact is back. It **insists** once it has lost the other for good.
//! - The root **looks** at the accused, and asks an observer to look at both. It adds a PE to its
//!   list if it has lost it itself, or if an accuser says that a witness has seen it gone.
//! - The root **announces** what is new in its list, down the tree, to the accusers and to the
//!   accused: the first death at once, those that follow it closely together (`announcing.rs`). A
//!   bulletin says how many deaths come before the first that it names. So each death travels over
//!   each edge of the tree once, however many there are.
//! - If the root reaches the accused, and the accuser still insists, the path between the two is
//!   broken. The job needs all paths, so **one of the two leaves**: the one that has lost contact
//!   with more PEs, else the one with the greater number. The root must reach the accused *after*
//!   it has heard the accuser insist: what it saw before may be outdated. So its owner calls the
//!   accused anew, and only the answer to that call counts.
//! - A PE that **learns** something from a bulletin passes on what it has learnt, down the tree
//!   that follows from its new list. A bulletin with nothing new ends there. One that has overtaken
//!   another leaves a gap: its receiver takes nothing from it, and answers with its heartbeat, to
//!   which the sender answers with all that the receiver lacks.
//! - A notice **from a dead PE** is dropped and answered with a bulletin that names it. A PE that
//!   finds itself in a bulletin, with or without a gap, is
//!   [`Expelled`](MembershipStatus::Expelled) and sends nothing more.
//! - A PE that suspects **the root** is a *herald*: it sends ORPHANED down a tree that begins with
//!   itself. Each PE that hears it looks at the root, and leaves only when it has lost the root
//!   itself, or hears of a witness. With several heralds at once, each PE passes on the first that
//!   it hears, and after that only those with smaller numbers: so the tree of the smallest is
//!   complete. (If each PE passed on only the first, a PE could be left out of all the trees.)
//! - A **heartbeat** is [`Notice::Known`]: how many dead PEs the sender knows of. A PE that hears
//!   from a PE that knows less sends it what it lacks (the root: as far as it is announced).
//! - A PE that leaves in order says GOODBYE, and a PE that hears it knows that the job is over.
//!   (The root knows that by itself, and judges until its own end.)
//!
//! # How many living PEs leave, at most
//!
//! A living PE is in the list only if the root lost contact with it (a witness is not wrong), or if
//! it is one end of a path that is broken: the root reaches it, and the other end has lost it for
//! good. So each broken path costs at most one PE, and a PE that no other has lost for good never
//! leaves. A PE leaves because of the root only if it has lost the root itself.
//!
//! # Each list is a beginning of the root's
//!
//! The root only appends to its list, and sends parts of it with their true positions. All others
//! send parts of their own lists with their positions. A PE appends to its list only what a part
//! says that begins within the list or at its end, so behind the last death that it knows it puts
//! the one that follows in the root's list. So each list is a beginning of the root's at all times,
//! whatever is lost, doubled or overtaken.
//!
//! # No two living PEs disagree for ever
//!
//! The trees are there for speed; a PE in a tree can die before it passes the news on. The rings
//! make sure: the PEs that a PE does not know to be dead form rings (the PEs of a host, and the
//! hosts), in which PEs watch each other and exchange heartbeats. Say that no more PEs are declared
//! dead, no more paths break, messages between two living PEs whose path is whole arrive when they
//! are sent often enough, the root lives and has announced its whole list (it waits for
//! `ANNOUNCE_EVERY` at most), and X lives and is a member. Let Y be the next PE in X's ring, as X
//! sees it.
//!
//! 1. If Y is dead, X loses it sooner or later, and accuses it until it has a list that names Y:
//!    the root looks, loses Y as well, and answers with the part of its list that begins with Y,
//!    or with what comes before, too, if X says that it lacks it. That happens at most once for
//!    each PE, so after some time each such Y is alive. If Y lives and the path is broken, the root
//!    reaches Y and X insists, so one of the two leaves. After some time all paths between
//!    neighbours are whole.
//! 2. X and Y then tell each other how much they know, and the one that knows more sends what the
//!    other lacks. So after some time they know the same. (If one knows the other to be dead, it
//!    answers so, and the other leaves: it was not a member that stays.)
//! 3. X and Y have the same list, hence the same rings. So what holds for X holds for Y and on
//!    along the rings, for all PEs that X does not know to be dead, and the root is one of them.
//!    They all have the root's list.
//!
//! If the root is dead, its neighbours in the ring lose it and leave, with or without a tree. Their
//! neighbours suspect them in turn. A PE that accuses another looks at the root as well, so it
//! loses the root and leaves too.
//!
//! # Without the root
//!
//! All this is said of the root, with which a job lives and dies unless it has a
//! [succession](Membership::with_succession). Then it holds for the *judge*, who is the root at
//! first. `succession.rs` says how another PE becomes the judge, and why there is only one.
//!
//! # Using it
//!
//! There are no clocks, threads or sockets: the owner passes in the time (since any fixed moment)
//! and a function that sends. Messages may be lost, doubled and reordered. Time only serves to
//! repeat and to forget, so a model checker can leave it at zero.
//!
//! ```
//! use std::time::Duration;
//! use ultramarine_runtime::protocol::{Claim, Death, Evidence, Heading, Loss, Membership, Notice};
//! use ultramarine_topology::Pe;
//! let [one, two] = [1, 2].map(Pe::new);
//! let now = Duration::ZERO;
//! let mut root = Membership::new(Pe::ROOT, 3, Duration::from_secs(2));
//! let mut sent = Vec::new();
//! let accusation = Notice::Accuse { pe: two, claim: Claim::Suspected };
//! root.handle(now, one, accusation, &mut |to, notice| sent.push((to, notice)));
//! assert_eq!(sent, [(Pe::ROOT, Notice::Look { pe: two, anew: false })]);
//! // It looks, and PE 2 is gone indeed.
//! sent.clear();
//! root.lose(now, two, Loss::Witnessed, &mut |to, notice| sent.push((to, notice)));
//! assert_eq!(root.dead(), [two]);
//! let dead = vec![Death { pe: two, evidence: Evidence::Witnessed }];
//! let bulletin = Notice::Bulletin { of: Heading::FIRST, after: 0, dead };
//! assert_eq!(sent, [(one, bulletin.clone()), (two, bulletin)]);
//! ```

mod accusations;
mod announcing;
mod bulletins;
mod callers;
mod contact;
mod death_list;
mod ending;
mod heralds;
mod judging;
mod living;
mod mutant;
mod notice;
mod succession;
mod term_list;
#[cfg(test)]
mod tests;
mod votes;

pub use living::Living;
pub use mutant::MembershipMutant;
pub use notice::{Claim, Death, Evidence, Heading, Loss, MembershipStatus, Notice, Term};

use accusations::{Accusation, AccusationTable};
use announcing::Announcements;
use death_list::DeathList;
use heralds::HeraldNews;
use std::collections::BTreeMap;
use std::time::Duration;
use succession::Succession;
use term_list::TermList;
use ultramarine_topology::Pe;

/// One PE's view of the membership. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    me: Pe,
    pes: u32,
    patience: Duration,
    status: MembershipStatus,
    /// All the dead of all terms.
    dead: DeathList,
    /// The list of the judge that this PE follows.
    list: TermList,
    /// On the judge: what it has announced.
    announcements: Announcements,
    /// This PE's accusations without an answer, by the accused. Empty on the judge, and unless this
    /// PE is a member.
    accusations: BTreeMap<Pe, Accusation>,
    /// On the judge: the accusations of other PEs.
    heard_accusations: AccusationTable,
    /// The best news of a herald that this PE passed on.
    herald: Option<HeraldNews>,
    /// What it takes to go on without the judge; `None`: the job ends with it.
    succession: Option<Succession>,
    /// A rule to leave out, to see that the proofs notice.
    #[cfg(feature = "mutants")]
    pub mutant: Option<MembershipMutant>,
}

/// How often an accusation is repeated within `patience`.
const REPEATS: u32 = 8;

impl Membership {
    /// A member of a job of `pes` PEs, in which no PE is dead yet. The job ends when its root dies.
    /// Accusations are repeated eight times within `patience`; the root forgets one that has not
    /// been repeated for that long.
    ///
    /// # Panics
    /// The job has no PE `me`.
    pub fn new(me: Pe, pes: u32, patience: Duration) -> Self {
        assert!(me.number() < pes, "a job of {pes} PEs has no {me}");
        Membership {
            me,
            pes,
            patience,
            status: MembershipStatus::Member,
            dead: DeathList::new(pes),
            list: TermList::new(Heading::FIRST, pes),
            announcements: Announcements::default(),
            accusations: BTreeMap::new(),
            heard_accusations: AccusationTable::default(),
            herald: None,
            succession: None,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same for a job that goes on when its root dies. All PEs of a job must agree on that.
    #[must_use]
    pub fn with_succession(mut self) -> Self {
        self.succession = Some(Succession::default());
        self
    }

    /// All PEs that this one knows to be dead, in the order in which it learnt of them. The list
    /// only grows.
    pub fn dead(&self) -> &[Pe] {
        self.dead.order()
    }

    /// Whether this PE knows that `pe` is dead.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.dead.contains(pe)
    }

    /// Whether this PE is a member, or why it is not any more.
    pub fn status(&self) -> MembershipStatus {
        self.status
    }

    /// The PEs that this one does not know to be dead, in a row.
    pub fn living(&self) -> &Living {
        self.dead.living()
    }

    /// The PEs that should watch each other: the living, but for those that a PE which asks for
    /// votes has lost.
    pub fn watched(&self) -> &Living {
        if self.list.heading.in_office { self.dead.living() } else { self.list.living() }
    }

    /// Which list of the dead this PE has a beginning of, and whose.
    pub fn heading(&self) -> Heading {
        self.list.heading
    }

    /// The judge that this PE follows: at first, and in a job without succession always, the root.
    /// It may not have taken office yet.
    pub fn judge(&self) -> Pe {
        self.list.term().judge
    }

    /// Whether this PE is the judge, or would be.
    pub fn is_judge(&self) -> bool {
        self.judge() == self.me
    }

    /// This PE's heartbeat.
    pub fn heartbeat(&self) -> Notice {
        Notice::Known { of: self.list.heading, dead: self.list.len() as u32 }
    }

    /// The whole list of the dead, as a notice.
    pub fn bulletin(&self) -> Notice {
        self.list.bulletin_to(0, self.list.len())
    }

    /// Tells a PE that is in the list that it is. `None`: it is not, or not yet in that of a new
    /// judge.
    pub fn bulletin_about(&self, pe: Pe) -> Option<Notice> {
        self.list.position(pe).map(|at| self.list.bulletin_to(at, at + 1))
    }

    /// Handles a notice. One that names PEs that the job does not have, or a list that is not the
    /// judge's, has no effect.
    pub fn handle(
        &mut self,
        now: Duration,
        from: Pe,
        notice: Notice,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        if from == self.me || from.number() >= self.pes {
            return;
        }
        match self.status {
            MembershipStatus::Member => {}
            // The news of a smaller herald must be passed on, see above.
            MembershipStatus::RootLost => {
                if let Notice::Orphaned { herald, term, claim } = notice
                    && (term == self.list.term() && !self.is_dead(from))
                {
                    self.pass_on(HeraldNews::new(herald, claim), out);
                }
                return;
            }
            MembershipStatus::Expelled
            | MembershipStatus::Outvoted
            | MembershipStatus::Over { .. } => return,
        }
        if self.is_dead(from) {
            return self.handle_from_dead(from, &notice, out);
        }
        match notice {
            Notice::Known { of, dead } => self.compare(from, of, dead, out),
            Notice::Accuse { pe, claim } => self.handle_accusation(now, from, (pe, claim), out),
            Notice::Look { pe, .. } => {
                if from == self.judge() && self.concerns(pe) {
                    out(self.me, Notice::Look { pe, anew: false });
                }
            }
            Notice::Bulletin { of, after, dead } => {
                self.handle_bulletin(now, from, of, (after, &dead), out);
            }
            Notice::Orphaned { herald, term, claim } => {
                self.handle_herald(now, term, HeraldNews::new(herald, claim), out);
            }
            Notice::Follow { term, dead, count, ends } => {
                self.handle_follower(from, (term, dead, ends), count, out);
            }
            Notice::InContact { term } => self.handle_contact(from, term),
            // The judge itself knows whether the job is over, and judges until its own end.
            Notice::Goodbye if self.is_judge() => {}
            Notice::Goodbye => {
                self.end(MembershipStatus::Over { by: from });
            }
        }
    }

    /// Handles a notice of a PE that is dead for this one: tells it so.
    fn handle_from_dead(&mut self, from: Pe, notice: &Notice, out: &mut dyn FnMut(Pe, Notice)) {
        if let Notice::Bulletin { of, dead, .. } = notice
            && dead.iter().any(|death| death.pe == self.me)
            && !self.list.heading.outranks(*of)
        {
            // Each of the two is dead for the other, and need not be told so again.
            if of.in_office {
                self.end(MembershipStatus::Expelled);
            }
            return;
        }
        self.bulletin_about(from).into_iter().for_each(|notice| out(from, notice));
    }

    /// Repeats and forgets accusations, announces deaths, and asks again for votes. Returns when
    /// this is [`due`](Self::due) again.
    pub fn tick(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) -> Option<Duration> {
        let judge = self.judge();
        let mut is_unanswered = false;
        for (pe, accusation) in &mut self.accusations {
            if now >= accusation.again_at {
                accusation.again_at = now.saturating_add(self.patience / REPEATS);
                out(judge, Notice::Accuse { pe: *pe, claim: accusation.claim });
                is_unanswered = true;
            }
        }
        if is_unanswered {
            out(self.me, Notice::Look { pe: judge, anew: false });
        }
        self.heard_accusations.forget(now);
        if self.announcements.due(self.list.len()).is_some_and(|due| due <= now) {
            self.announce(now, out);
        }
        self.call_again(now, out);
        self.due()
    }

    /// When to call [`tick`](Self::tick) at the latest, if there is a reason to.
    pub fn due(&self) -> Option<Duration> {
        let again_at = self.accusations.values().map(|accusation| accusation.again_at);
        let announce_at = self.announcements.due(self.list.len()).filter(|_| self.is_judge());
        again_at.chain(self.heard_accusations.due()).chain(announce_at).chain(self.call_due()).min()
    }

    /// This PE is no member any more.
    fn end(&mut self, status: MembershipStatus) {
        self.status = status;
        self.accusations.clear();
        self.succession.iter_mut().for_each(|succession| succession.again_at = None);
    }

    /// Whether this rule is left out.
    #[cfg(feature = "mutants")]
    fn is_mutant(&self, mutant: MembershipMutant) -> bool {
        self.mutant == Some(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    fn is_mutant(&self, _: MembershipMutant) -> bool {
        false
    }
}
