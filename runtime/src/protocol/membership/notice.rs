//! The messages of the membership protocol, the terms that they are of, and the status of a PE.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use ultramarine_topology::Pe;

/// A message of the membership protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Notice {
    /// A heartbeat: the sender lives, and knows of this many deaths.
    Known {
        /// The list that it has a beginning of.
        of: Heading,
        /// The length of that beginning.
        dead: u32,
    },
    /// To the judge: the sender has no contact with this PE.
    Accuse {
        /// The PE that does not answer.
        pe: Pe,
        /// What the sender says of it.
        claim: Claim,
    },
    /// From the judge to an observer, or from a PE to itself: find out whether this PE can be
    /// reached.
    Look {
        /// The PE to look at.
        pe: Pe,
        /// Whether what has been seen already, or is on its way, does not count.
        anew: bool,
    },
    /// A part of a judge's list of the dead. Before the judge has taken office, it asks for votes.
    Bulletin {
        /// The list.
        of: Heading,
        /// The number of deaths before these.
        after: u32,
        /// The dead, in the order in which the judge declared them.
        dead: Vec<Death>,
    },
    /// The judge of this term does not answer the herald: look at the judge yourself.
    Orphaned {
        /// The PE that found out.
        herald: Pe,
        /// The term.
        term: Term,
        /// What the herald says of the judge.
        claim: Claim,
    },
    /// To the parent in the tree of a term: these PEs follow its judge, and have a part of its
    /// list.
    Follow {
        /// The term.
        term: Term,
        /// The length of that part.
        dead: u32,
        /// The number of PEs: the sender, and those below it in the tree.
        count: u32,
        /// They agree that the job ends.
        ends: bool,
    },
    /// To a PE that has lost the judge of this term: the sender has reached that judge since.
    InContact {
        /// The term.
        term: Term,
    },
    /// The sender leaves because the job is over.
    Goodbye,
}

/// A judge's term of office. Terms are ordered by round; of one round, the term of the PE with the
/// smaller number is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Term {
    /// The number of the vote that it begins with.
    pub round: u32,
    /// The judge, or the PE that would be.
    pub judge: Pe,
}

impl Term {
    /// The root's, with which each job begins.
    pub const FIRST: Term = Term { round: 0, judge: Pe::ROOT };
}

impl Ord for Term {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |term: &Term| (term.round, Reverse(term.judge));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Term {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What a list of the dead is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Heading {
    /// The term of the judge that keeps it.
    pub term: Term,
    /// Whether the judge is in office. Until then the list holds for nothing but votes.
    pub in_office: bool,
    /// The length of the part that the PEs have confirmed.
    pub confirmed: u32,
    /// The judge's main task has ended, and it asks whether the result counts.
    pub ends: bool,
}

impl Heading {
    /// The root's list, as it is at the beginning of a job.
    pub const FIRST: Heading = Heading::of(Term::FIRST, true);

    /// The list of a term, of which no part is confirmed.
    pub const fn of(term: Term, in_office: bool) -> Heading {
        Heading { term, in_office, confirmed: 0, ends: false }
    }

    /// Whether this list counts if each of the two names the followers of the other: the one whose
    /// judge is in office, of such two the later. No list outranks itself.
    pub(super) fn outranks(self, other: Heading) -> bool {
        (self.in_office, self.term) > (other.in_office, other.term)
    }
}

/// An entry in a list of the dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Death {
    /// The PE that is dead.
    pub pe: Pe,
    /// How certain that is.
    pub evidence: Evidence,
}

impl Death {
    /// The PE is silent.
    pub fn silent(pe: Pe) -> Death {
        Death { pe, evidence: Evidence::Silent }
    }
}

/// How certain the death of a PE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Evidence {
    /// It is silent, or was expelled, and may live where it cannot be reached.
    Silent,
    /// A [witness](Loss::Witnessed) has seen that its process is gone. It may have followed another
    /// judge before.
    Witnessed,
    /// It has no vote any more: enough of the others have confirmed a list that names it.
    Confirmed,
}

impl From<Loss> for Evidence {
    fn from(loss: Loss) -> Evidence {
        match loss {
            Loss::Silent | Loss::Refused => Evidence::Silent,
            Loss::Witnessed => Evidence::Witnessed,
        }
    }
}

/// How a PE has lost another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// It cannot be reached.
    Silent,
    /// Something on the way answers that its process is gone: its host, or a firewall that parts
    /// the two. That proves no more than silence.
    Refused,
    /// A witness has seen that its process is gone: the system of its own host, or its guard.
    Witnessed,
}

/// What an accuser says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Claim {
    /// There is no contact at the moment.
    Suspected,
    /// The accuser has lost it for good.
    Lost,
    /// … and a [witness](Loss::Witnessed) has seen that its process is gone.
    Gone,
    /// A judge declared it dead in an earlier term.
    Declared(Evidence),
}

impl From<Loss> for Claim {
    fn from(loss: Loss) -> Claim {
        match loss {
            Loss::Silent | Loss::Refused => Claim::Lost,
            Loss::Witnessed => Claim::Gone,
        }
    }
}

impl Claim {
    /// Whether the accuser will not take it back.
    pub(super) fn insists(self) -> bool {
        self >= Claim::Lost
    }

    pub(super) fn is_declared(self) -> bool {
        matches!(self, Claim::Declared(_))
    }
}

/// Whether a PE is a member of the job, as it sees it. It begins as a member; each other status is
/// final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MembershipStatus {
    /// It belongs to the job.
    Member,
    /// The judge has declared it dead; it must leave.
    Expelled,
    /// It has lost the judge, and must leave.
    RootLost,
    /// It has lost half of the PEs or more, and must leave: the others go on.
    Outvoted,
    /// The job has ended.
    Over {
        /// The PE that said so first.
        by: Pe,
    },
}
