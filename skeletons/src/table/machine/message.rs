//! What machines tell each other, and what a machine wants to have done.

use super::kind::Kind;
use super::share::AppliedRequests;
use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// How a PE tells its requests to a share from each other. They stay the same when they are sent
/// again, to another owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The PE that asks.
    pub by: Pe,
    /// They count from 0.
    pub number: u64,
    /// It has the answers of all before this one.
    pub answered_before: u64,
}

/// What the machine of one PE tells that of another, of a share.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum MessageOf<B, C, A, E> {
    /// The owner is to do this.
    Ask(Request, B),
    /// It has done so, and all copies know.
    Answer { number: u64, answer: A },
    /// Something has changed, by this request: the copy is to follow. Changes are counted.
    Change { index: u64, request: Request, change: C, answer: A },
    /// The receiver is to have a copy: some of the entries. The last say how many changes there
    /// have been, and by which requests.
    Fill { entries: E, is_first: bool, last: Option<(u64, AppliedRequests<A>)> },
    /// The copy has followed so far.
    Follows { index: u64 },
}

/// What is told of which share.
pub type Told<K> = (
    Pe,
    MessageOf<<K as Kind>::Batch, <K as Kind>::Change, <K as Kind>::Answer, <K as Kind>::Entries>,
);

/// What is to be done with the entries of a share. All that a PE is to do it does in order, one
/// thing after the other, whatever shares they are of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Work<B, C, E> {
    /// A batch is [applied](super::Machine::applied).
    Apply(Request, B),
    /// A change of the owner's is made here, too.
    Follow(C),
    /// These are put aside, the first anew. With the last they take the place of what there was:
    /// until then that counts, if the owner dies.
    Fill { entries: E, is_first: bool, is_last: bool },
    /// All entries are [copied](super::Machine::copied) for this PE.
    Copy(Pe),
}

/// See [`Work`].
pub type WorkOf<K> = Work<<K as Kind>::Batch, <K as Kind>::Change, <K as Kind>::Entries>;

/// What a machine wants to have done.
pub enum Effect<K: Kind> {
    /// A message to another PE.
    Send(Pe, Told<K>),
    /// Something with the entries of a share.
    Do(Pe, WorkOf<K>),
    /// The answer to what this PE has asked of a share, by its number.
    Answered(Pe, u64, K::Answer),
    /// All that had a share have died.
    Lost(Pe),
}
