//! Who is dead: the part of one PE in the agreement about it, as a state machine.
//!
//! ```text
//!  any PE            the root                        the tree of the living
//!    | suspects p       |
//!    | ACCUSE p ------->| believes the first accusation
//!    |                  |-- BULLETIN …, p -------------> child -> its children …
//!    |<-- BULLETIN …, p-|                                (each that learns something from it)
//!    |                  |-- BULLETIN …, p -> p           which leaves if it lives after all
//! ```
//!
//! The root is the only judge: a job lives and dies with its root anyway (`SymGridPar2` §5.1), and
//! with one judge there is one list of the dead, in the order in which they were declared, which
//! only ever grows. Everybody has a beginning of it. So the dead are agreed on and stay dead, which
//! supervision needs (`SymGridPar2` §5.3, `HdpH-RS` §4.6: a message is lost only if its sender or its
//! receiver is dead; here that is made true by expelling those that are cut off).
//!
//! # Rules
//!
//! - Whoever **suspects** a PE accuses it at the root, and again from time to time until a bulletin
//!   names it. The root adds the accused to its list and sends the whole list down the tree, to the
//!   accuser and to the accused. One that is dead already changes nothing, but the accuser, who
//!   has missed it, gets the list.
//! - Whoever **learns** something from a bulletin passes its list on down the tree that follows from
//!   that list. A bulletin with nothing new ends there; bulletins can overtake each other, because
//!   each holds the whole list.
//! - What comes **from the dead** is dropped and answered with the list. Whoever finds itself in it
//!   is [`Expelled`](Standing::Expelled) and says nothing more.
//! - Whoever suspects **the root**, or gets no answer to an accusation for `patience`, is its own
//!   witness that the root is lost, and says so as a herald: ORPHANED goes down a tree that begins with
//!   the herald. With several heralds at once, each PE passes on the first that it hears, and after
//!   that only those with smaller numbers: so the tree of the smallest is complete. (If each PE passed
//!   on only the first, a PE could be left out of all the trees.)
//! - [`Notice::Known`], how many dead one knows of, is what a **heartbeat** says. Whoever hears from one
//!   that knows less sends it the list.
//! - A PE that leaves in order says GOODBYE, and whoever hears that knows that the job is over. (The
//!   root knows that by itself, and judges until its own end.)
//!
//! # No two living PEs disagree for ever
//!
//! The trees are there for speed; a PE in them can die with the news in its hands. What makes sure is
//! the ring: PEs watch each other such that those which a PE does not know to be dead form rings (all of
//! a host, and the hosts), and send each other heartbeats. Say that nothing is declared any more,
//! messages between two living PEs arrive when they are sent often enough, the root lives, and
//! X lives and is a member. The next one in X's ring, as X sees it, is Y.
//!
//! 1. If Y is dead, X suspects it sooner or later, and accuses it until the root answers with a list
//!    that names Y. That happens at most once for each PE, so after some time all those are alive.
//! 2. X and Y then tell each other what they know, and the one who knows more sends its list.
//!    So after some time they know the same. (If one knows the other to be dead, it answers so, and
//!    the other leaves: it was not a member that stays.)
//! 3. X and Y have the same list, hence the same rings. So what holds for X holds for Y and on
//!    along the rings, for all that X does not know to be dead, and the root is one of them. They
//!    all have the root's list.
//!
//! If the root is dead, somebody next to it in the ring suspects it and leaves, with or without a tree;
//! its neighbours suspect it in turn, get no answer from the root, and leave as well.
//!
//! # Using it
//!
//! There are no clocks, threads or sockets: the owner passes in the time, since any common beginning,
//! and a function that sends. Messages may be lost, doubled and reordered. Time only serves to ask
//! again and to give up, so a checker can leave it at zero.
//!
//! ```
//! use std::time::Duration;
//! use ultramarine_runtime::protocol::membership::{Membership, Notice};
//! use ultramarine_topology::Pe;
//! let [one, two] = [1, 2].map(Pe::new);
//! let mut root = Membership::new(Pe::ROOT, 3, Duration::from_secs(2));
//! let mut sent = Vec::new();
//! root.handle(one, Notice::Accuse { pe: two }, &mut |to, notice| sent.push((to, notice)));
//! assert_eq!(root.dead(), [two]);
//! let bulletin = Notice::Bulletin { dead: vec![two] };
//! assert_eq!(sent, [(one, bulletin.clone()), (two, bulletin)]);
//! ```

mod living;
#[cfg(test)]
mod tests;

pub use living::Living;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What PEs say to each other about who lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Notice {
    /// The sender lives, and knows of so many dead.
    Known {
        /// The length of its list.
        dead: u32,
    },
    /// To the root: the sender suspects this PE.
    Accuse {
        /// Who does not answer.
        pe: Pe,
    },
    /// All that the sender knows to be dead.
    Bulletin {
        /// In the order in which the root declared them.
        dead: Vec<Pe>,
    },
    /// The root is lost.
    Orphaned {
        /// Who found out.
        herald: Pe,
    },
    /// The sender leaves because the job is over.
    Goodbye,
}

/// Where a PE stands, as it sees it. It begins as a member, and each of the others is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// It belongs to the job.
    Member,
    /// The others hold it for dead; it has to leave.
    Expelled,
    /// It cannot go on without the root.
    RootLost(Loss),
    /// The job has ended.
    Over {
        /// Who said so first.
        by: Pe,
    },
}

/// How a PE came to know that the root is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// Its own detector suspects the root.
    Suspected,
    /// The root does not answer an accusation against this PE.
    Unanswered(Pe),
    /// This PE said so.
    Heard(Pe),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Suspected => write!(f, "{} does not answer any more", Pe::ROOT),
            Loss::Unanswered(pe) => {
                write!(f, "{} does not answer to the news that {pe} is gone", Pe::ROOT)
            }
            Loss::Heard(herald) => write!(f, "{herald} says that {} is gone", Pe::ROOT),
        }
    }
}

/// One PE's part in the agreement. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    me: Pe,
    pes: u32,
    patience: Duration,
    standing: Standing,
    /// In the order of declaration: a beginning of the root's list.
    dead: Vec<Pe>,
    /// By the accused: my accusations without an answer. Empty unless I am a member, and on the root.
    accusations: BTreeMap<Pe, Accusation>,
    /// The smallest herald whose news I passed on.
    herald: Option<Pe>,
}

/// What I told the root and have no answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Accusation {
    /// When to say it again.
    again_at: Duration,
    /// When to give the root up.
    until: Duration,
}

/// How often an accusation is repeated within `patience`.
const REPEATS: u32 = 4;

impl Membership {
    /// A member of a job of `pes` PEs, in which nobody is dead yet. The root has `patience` to
    /// answer an accusation.
    ///
    /// # Panics
    /// When the job has no PE `me`.
    pub fn new(me: Pe, pes: u32, patience: Duration) -> Self {
        assert!(me.number() < pes, "a job of {pes} PEs has no {me}");
        Membership {
            me,
            pes,
            patience,
            standing: Standing::Member,
            dead: Vec::new(),
            accusations: BTreeMap::new(),
            herald: None,
        }
    }

    /// All that this PE knows to be dead, in the order in which the root declared them. The list
    /// only grows; the root is never in it.
    pub fn dead(&self) -> &[Pe] {
        &self.dead
    }

    /// Whether this PE knows that one to be dead.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.dead.contains(&pe)
    }

    /// Where this PE stands.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Those that this PE does not know to be dead.
    pub fn living(&self) -> Living {
        Living::new(self.pes, &self.dead)
    }

    /// What this PE's heartbeats say.
    pub fn heartbeat(&self) -> Notice {
        Notice::Known { dead: self.dead.len() as u32 }
    }

    /// The whole list.
    pub fn bulletin(&self) -> Notice {
        Notice::Bulletin { dead: self.dead.clone() }
    }

    /// The detector has given `pe` up.
    pub fn suspect(&mut self, now: Duration, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        let lives = pe != self.me && pe.number() < self.pes && !self.is_dead(pe);
        if self.standing != Standing::Member || !lives {
            return;
        }
        if self.me == Pe::ROOT {
            self.convict(pe, None, out);
        } else if pe == Pe::ROOT {
            self.lose_root(Loss::Suspected, self.me, out);
        } else if !self.accusations.contains_key(&pe) {
            let until = now.saturating_add(self.patience);
            let again_at = now.saturating_add(self.patience / REPEATS);
            self.accusations.insert(pe, Accusation { again_at, until });
            out(Pe::ROOT, Notice::Accuse { pe });
        }
    }

    /// Something arrived. What cannot be (who speaks of PEs that the job does not have, or of a list
    /// that is not the root's) has no effect.
    pub fn handle(&mut self, from: Pe, notice: Notice, out: &mut dyn FnMut(Pe, Notice)) {
        if from == self.me || from.number() >= self.pes {
            return;
        }
        match self.standing {
            Standing::Member => {}
            // A smaller herald's news must be passed on, see above.
            Standing::RootLost(_) => {
                if let Notice::Orphaned { herald } = notice
                    && !self.is_dead(from)
                {
                    self.pass_on(herald, out);
                }
                return;
            }
            Standing::Expelled | Standing::Over { .. } => return,
        }
        if self.is_dead(from) {
            return out(from, self.bulletin());
        }
        match notice {
            Notice::Known { dead } => {
                if (dead as usize) < self.dead.len() {
                    out(from, self.bulletin());
                }
            }
            Notice::Accuse { pe } => self.handle_accusation(from, pe, out),
            Notice::Bulletin { dead } => self.learn(dead, out),
            Notice::Orphaned { herald } => {
                // The root knows better, and a herald that is not in the tree cannot begin it.
                if self.me != Pe::ROOT && herald != Pe::ROOT && self.living().contains(herald) {
                    self.lose_root(Loss::Heard(herald), herald, out);
                }
            }
            // The root knows itself whether the job is over, and judges until its own end.
            Notice::Goodbye if self.me == Pe::ROOT => {}
            Notice::Goodbye => {
                self.standing = Standing::Over { by: from };
                self.accusations.clear();
            }
        }
    }

    /// Repeats what has no answer, and gives up what had none for too long. Returns when this is
    /// [`due`](Self::due) again.
    pub fn tick(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) -> Option<Duration> {
        let late = self.accusations.iter().find(|(_, accusation)| now >= accusation.until);
        if let Some((pe, _)) = late {
            let loss = Loss::Unanswered(*pe);
            self.lose_root(loss, self.me, out);
        }
        for (pe, accusation) in &mut self.accusations {
            if now >= accusation.again_at {
                accusation.again_at = now.saturating_add(self.patience / REPEATS);
                out(Pe::ROOT, Notice::Accuse { pe: *pe });
            }
        }
        self.due()
    }

    /// When to call [`tick`](Self::tick) at the latest; `None` if there is nothing to wait for.
    pub fn due(&self) -> Option<Duration> {
        self.accusations.values().map(|a| a.again_at.min(a.until)).min()
    }

    /// Somebody living accuses `pe`.
    fn handle_accusation(&mut self, accuser: Pe, pe: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        let makes_sense = pe != accuser && pe != Pe::ROOT && pe.number() < self.pes;
        if self.me != Pe::ROOT || !makes_sense {
            return;
        }
        if self.is_dead(pe) {
            out(accuser, self.bulletin());
        } else {
            self.convict(pe, Some(accuser), out);
        }
    }

    /// On the root: this PE is dead from now on.
    fn convict(&mut self, pe: Pe, accuser: Option<Pe>, out: &mut dyn FnMut(Pe, Notice)) {
        self.dead.push(pe);
        let living = self.living();
        let mut told: BTreeSet<Pe> = living.children(self.me).collect();
        told.extend(accuser);
        told.insert(pe);
        told.into_iter().for_each(|to| out(to, self.bulletin()));
    }

    /// Takes in a list, if it goes on where mine ends, and passes it on.
    fn learn(&mut self, dead: Vec<Pe>, out: &mut dyn FnMut(Pe, Notice)) {
        let goes_on = dead.len() > self.dead.len() && dead.starts_with(&self.dead);
        let exists = |pe: &Pe| *pe != Pe::ROOT && pe.number() < self.pes;
        let is_list = dead.iter().all(exists) && {
            let each: BTreeSet<_> = dead.iter().collect();
            each.len() == dead.len()
        };
        if self.me == Pe::ROOT || !goes_on || !is_list {
            return;
        }
        self.dead = dead;
        if self.is_dead(self.me) {
            self.standing = Standing::Expelled;
            self.accusations.clear();
            return;
        }
        self.accusations.retain(|pe, _| !self.dead.contains(pe));
        self.living().children(self.me).for_each(|child| out(child, self.bulletin()));
    }

    fn lose_root(&mut self, loss: Loss, herald: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        self.standing = Standing::RootLost(loss);
        self.accusations.clear();
        self.pass_on(herald, out);
    }

    /// Passes a herald's news on, unless I have done so for one as small.
    fn pass_on(&mut self, herald: Pe, out: &mut dyn FnMut(Pe, Notice)) {
        let living = self.living();
        if self.herald.is_some_and(|former| former <= herald) || !living.contains(herald) {
            return;
        }
        self.herald = Some(herald);
        living.heirs(herald, self.me).into_iter().for_each(|heir| {
            out(heir, Notice::Orphaned { herald });
        });
    }
}
