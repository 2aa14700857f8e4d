//! What machines tell each other, and what a machine wants to have done.

use super::balance::{Extremes, Loads};
use super::checkpoints::{Copy, Key, Offers};
use super::span::Spans;
use super::view::ViewId;
use super::{Doing, Kind, Seat, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What one rank sends to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Letter<M> {
    pub from: u32,
    pub to: u32,
    pub content: M,
}

/// What the members tell each other after a superstep.
#[expect(clippy::struct_excessive_bools, reason = "they are added up apart")]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Facts<V> {
    /// Whether any rank goes on without being woken.
    pub(super) is_any_awake: bool,
    /// Whether anything was sent.
    pub(super) is_any_sent: bool,
    pub(super) have_all_ended: bool,
    /// Whether a checkpoint is due.
    pub(super) is_save_due: bool,
    /// Whether ranks are to move, if PEs are unevenly busy; and how busy they are.
    pub(super) is_weighing_due: bool,
    pub(super) extremes: Extremes,
    /// The last checkpoint of which all have copies elsewhere; that all have put on the disk; and
    /// with which all are done, if need be without the disk.
    pub(super) kept: Option<Key>,
    pub(super) stored: Option<Key>,
    pub(super) settled: Option<Key>,
    /// Whether copies cannot travel.
    pub(super) is_too_long: bool,
    /// For how long the last checkpoint has kept a PE, at most.
    pub(super) cost: Option<Duration>,
    /// The values of collective operations, in the order in which each rank took part, behind the
    /// digests of these.
    pub(super) collected: Vec<(u64, Spans<V>)>,
    /// Whether ranks take part in different ones at once.
    pub(super) are_mixed: bool,
}

/// What the machine of one PE tells that of another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "M: Serialize, C: Serialize, O: Serialize, V: Serialize",
    deserialize = "M: Deserialize<'de>, C: Deserialize<'de>, \
                   O: Deserialize<'de>, V: Deserialize<'de>"
))]
pub enum MessageOf<M, C, O, V> {
    /// All that the sender's ranks have sent to those of the receiver in a superstep. The receiver
    /// says that it has come, if that is not clear from what follows.
    Batch { superstep: u64, letters: Vec<Letter<M>>, is_to_be_acknowledged: bool },
    /// It has come.
    Received { superstep: u64 },
    /// A round of the meeting after a superstep.
    Round { superstep: u64, round: u32, facts: Facts<V> },
    /// A round of a meeting on how much ranks have to do.
    Loads { superstep: u64, round: u32, loads: Loads },
    /// A round of a meeting after a death: the ranks of which there are copies, in memory or on
    /// the disk.
    Offer { is_of_disk: bool, round: u32, offers: Offers },
    /// Copies of ranks that are the receiver's in this view, or some of them.
    Moved { key: Key, copies: BTreeMap<u32, Copy<C, O>> },
    /// Copies of the sender's ranks; some of them, if more come.
    Kept { key: Key, copies: BTreeMap<u32, Copy<C, O>>, are_last: bool },
    /// The sender keeps them.
    Keeps { key: Key },
    /// What ranks that have ended leave.
    Outputs(BTreeMap<u32, O>),
}

/// See [`MessageOf`].
pub type Message<K> =
    MessageOf<<K as Kind>::Content, <K as Kind>::Saved, <K as Kind>::Output, <K as Kind>::Value>;

/// A message, and the view of its sender.
pub type Told<K> = (ViewId, Message<K>);

/// A rank that is to be saved, to take a step, or both.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Job<S, M, V> {
    pub rank: u32,
    pub state: S,
    /// By their senders, and from each in the order in which they were sent.
    pub letters: Vec<Letter<M>>,
    /// Of the collective operations in which it took part in the superstep before.
    pub results: Vec<Option<V>>,
    pub is_stepping: bool,
}

/// See [`Job`].
pub type JobOf<K> = Job<<K as Kind>::State, <K as Kind>::Content, <K as Kind>::Value>;

/// What a machine wants to have done.
pub enum Effect<K: Kind> {
    Send(Pe, Told<K>),
    /// Each job is saved first, if this is a checkpoint; then it [has taken a
    /// step](super::Machine::stepped), or [is back](super::Machine::saved).
    Run(Work, Vec<JobOf<K>>),
    /// These ranks are made, or read from what was saved, and are [back](super::Machine::restored)
    /// then.
    Restore(Work, Vec<(u32, Option<K::Saved>)>),
    /// The directory is read: it is [found](super::Machine::found) of which checkpoints there are
    /// whole and intact copies of these ranks.
    Look(Work, Range<u32>),
    /// These ranks' copies are read: they are [loaded](super::Machine::loaded).
    Load(Work, Key, Range<u32>),
    /// These copies are put into the directory, and are [stored](super::Machine::stored) then.
    Store(Work, Key, BTreeMap<u32, Copy<K::Saved, K::Output>>),
    /// This checkpoint is whole in the directory. What is before it is removed, but for the last
    /// one that is whole; and what is after it, but of an earlier generation than this: that has
    /// been found to be of no use.
    Prune(Key, u32),
    /// This checkpoint could not be put into the directory by all: what is there of it is removed.
    Discard(Key),
    /// The run cannot go on.
    Fail(K::Error),
    /// There is no whole checkpoint: what was computed up to this superstep is lost. (The first PE
    /// says so.)
    Lost(u64),
    /// The PEs have been compared, as was due. If they are unevenly busy: for how many nanoseconds
    /// the busiest PE has computed, and would have with the new ranges; 0 if there are none that
    /// are better. (The first PE says so.)
    Weighed(Option<[u64; 2]>),
    /// All ranks have ended, and this PE's program is told.
    End(BTreeMap<u32, K::Output>),
}

/// Tells jobs from those before a death.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Work {
    pub ticket: u64,
    pub superstep: u64,
    /// Whether a checkpoint is taken.
    pub is_saved: bool,
    /// Whether all slept, and none had sent anything.
    pub is_quiet: bool,
}

/// What a machine needs no more. It is dropped where user code may run.
pub struct Waste<K: Kind> {
    pub(super) seats: Vec<Seat<K>>,
    pub(super) doing: Vec<Doing<K>>,
    pub(super) letters: Vec<Letter<K::Content>>,
    pub(super) states: Vec<K::State>,
    pub(super) steps: Vec<Step<K>>,
}

impl<K: Kind> Default for Waste<K> {
    fn default() -> Self {
        Waste {
            seats: Vec::new(),
            doing: Vec::new(),
            letters: Vec::new(),
            states: Vec::new(),
            steps: Vec::new(),
        }
    }
}
