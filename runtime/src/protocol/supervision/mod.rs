//! Supervision: where a PE's own tasks are, and which of them must be run again (SymGridPar2 §5.3;
//! HdpH-RS §7.3, "passive").
//!
//! A task has a *home*, the PE that spawned it and holds its future. While it is away, its home
//! keeps a record: which copy counts, how many steps it has made (its *age*), and where it is.
//!
//! ```text
//!  home              victim             thief
//!    | SCHEDULE ------->|                 |     record: on its way from home to victim
//!    |                  |<---------- FISH |
//!    |<--------- NOTIFY |                 |     record: on its way from victim to thief
//!    |                  | SCHEDULE ------>|
//!    |<------------------------------ ACK |     record: at thief
//!    |<--------------------------- RESULT |     no record
//! ```
//!
//! - Each step makes the task older by one. Messages from different PEs overtake each other, so
//!   home believes a message only if it is about the copy that counts, and its age is greater than
//!   the recorded one.
//! - When a PE dies, every task whose record names it is *lost*: tasks at that PE, from it or to
//!   it. A record that comes to name a PE already known to be dead makes its task lost as well.
//! - A lost task that is supervised is run again, as a new replica made from the bytes that home
//!   keeps. A lost task that is not supervised ends with an error.
//! - When home itself hands the task out, there is neither NOTIFY nor ACK: home writes the record
//!   itself. The way from home to the thief loses nothing while both live; and if home dies, no PE
//!   waits for the task.
//!
//! # Why nothing is lost unnoticed
//!
//! Let `m` be the greatest age recorded for the copy that counts. Either the copy is where the
//! record says, at a PE or between two; or it has made step `m + 1`. Record `m` names the PE that
//! made that step, and that PE told home before anything else. If home never hears of the step,
//! that PE is dead; then record `m` names a dead PE, and home runs the task again. If home hears of
//! it, a greater age is recorded, and the argument begins again.
//!
//! A task that is posted on a [board](super::board) makes its step when a thief takes it. The PE
//! that posted it, the victim, has made it older before, and tells home when it notices. That is
//! later than the thief knows, and after each of the following the argument still holds:
//!
//! - The victim lives: it tells home, because the slot says which thief has the task until the
//!   victim has told. A thief that has died by then makes the task lost, as a record comes to name
//!   a dead PE.
//! - The victim dies first: home's record `m` names it, unless the thief's ACK has come. The
//!   thief's copy, if there is one, is then a copy that does not count any more.
//! - The thief hands the task on, or ends it, before the victim has told: a greater age is recorded
//!   then, or no record is left, and what the victim tells is outdated.
//! - The victim is home: it has a record from before the task is posted, so that a result finds it.
//!   The record names home itself until home notices. No death makes the task lost before that; but
//!   then, if the thief is dead, it is.
//! - The victim takes the task back: it has made no step. Its next step is the one after that which
//!   it did not make, and so it is still news.
//!
//! # A death that costs many tasks
//!
//! A PE may die with a million tasks. To lose them all at once would keep the engine from its
//! messages for a second. So home loses at most `losses_per_turn` of them in a turn, and goes on in
//! the next turn. Meanwhile the record of a task that is still to be lost names a dead PE. That is
//! harmless, since such a record works like any other. If there is a newer step, a living PE that
//! has the task or has handed it on reports it; the record then names that PE, and is not lost with
//! the dead one any more. If a result arrives, the record goes. Otherwise the record is lost in
//! some later turn. No record comes to name a PE known to be dead without being lost at once. So
//! the records still to be lost are those that the index has under the dead PE, and they only
//! become fewer.
//!
//! A loss, a message, a result, and the choice of a task for a thief each take O(log n) for n
//! records.
//!
//! # Tasks that kill their hosts
//!
//! The task itself may be what kills its hosts. So while any other PE can run a copy of a lost
//! task, neither its supervisor nor the root runs it. A task that was lost twice goes alone to a PE
//! where nothing else runs or waits, so that it does no more harm to other tasks. That PE gets no
//! second one before the result of the first is at home: the thief may be idle again, but if it
//! dies now, both count as lost with it. In a busy job there may be no such PE: if none of these
//! tasks found one for two seconds, one is placed on a random PE within its radius. A task is given
//! up when more than `max_replicas` PEs have died with it. It is also given up when only the
//! supervisor and the root are left, if it was lost twice even while it was alone. If other PEs are
//! left, but none within its radius, the radius is lifted instead. (So a job needs four PEs beside
//! the root to find such a task out before it gets there.)
//!
//! The price: while only lost tasks are left to do, their supervisor runs none of them.

mod index;
mod record;

pub use self::record::Location;

pub(super) use self::index::Suspicion;

use self::index::Index;
use self::record::{Backup, Record};
use super::message::{Parcel, TaskId, Version};
use crate::numbered::Numbered;
use std::ops::RangeInclusive;
use ultramarine_topology::{Distance, Pe};

/// What happens to a task that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LossOutcome {
    /// Another copy waits for a thief.
    Recovered,
    /// The task is not supervised, and ends with an error.
    Unsupervised,
    /// The task was lost too often, with these PEs, and is given up.
    TooOften(Vec<Pe>),
}

/// A rule of the protocol that can be left out, with the feature `mutants`, to see that the proofs
/// notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SupervisionMutant {
    /// A record that comes to name a PE known to be dead does not make the task lost.
    ForgetsTheDead,
    /// Home believes outdated messages.
    IgnoresAge,
}

/// The records of a PE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Supervision {
    me: Pe,
    /// By the number of the future.
    away: Numbered<Record>,
    index: Index,
}

impl Supervision {
    /// This PE has no tasks elsewhere yet.
    pub(super) fn new(me: Pe) -> Self {
        Supervision { me, away: Numbered::default(), index: Index::new(me) }
    }

    /// Changes a record, if there is one, and its place in the index.
    fn change<R>(&mut self, future: u64, change: impl FnOnce(&mut Record) -> R) -> Option<R> {
        let record = self.away.get_mut(future)?;
        self.index.remove(future, record);
        let result = change(record);
        self.index.insert(future, record);
        Some(result)
    }

    fn insert(&mut self, future: u64, record: Record) {
        self.index.insert(future, &record);
        self.away.insert(future, record);
    }

    fn remove(&mut self, future: u64) -> Option<Record> {
        let record = self.away.remove(future)?;
        self.index.remove(future, &record);
        Some(record)
    }

    /// Records that a task of this PE leaves it, from `from` to `to`.
    pub(super) fn record_departure(&mut self, parcel: &mut Parcel, from: Pe, to: Pe) {
        parcel.version.age += 1;
        self.record(parcel, Location::InTransit { from, to });
    }

    /// Records that a task of this PE is posted on this PE's board: it may leave at any moment. Its
    /// age is that of the step by which it leaves.
    pub(super) fn record_posted(&mut self, parcel: &Parcel) {
        self.record(parcel, Location::At(self.me));
    }

    fn record(&mut self, parcel: &Parcel, location: Location) {
        let Parcel { task, radius, supervised, version, ref body } = *parcel;
        let update = |record: &mut Record| (record.version, record.location) = (version, location);
        if self.change(task.future, update).is_none() {
            let backup = supervised.then(|| Box::new(Backup::of(body.clone())));
            self.insert(task.future, Record { version, location, radius, backup });
        }
    }

    /// Records that the PE `to` has taken a task of this PE from its board, unless there is later
    /// news of it. Returns whether it was recorded.
    pub(super) fn record_taken(&mut self, future: u64, version: Version, to: Pe) -> bool {
        let from = self.me;
        let is_news = self.change(future, |record| {
            let is_news = (record.version, record.location) == (version, Location::At(from));
            if is_news {
                record.location = Location::InTransit { from, to };
            }
            is_news
        });
        is_news.unwrap_or(false)
    }

    /// Records a supervised task that was placed on a dead PE: it waits for a thief.
    pub(super) fn record_waiting(&mut self, parcel: Parcel) {
        let Parcel { task, radius, version, body, .. } = parcel;
        let (location, backup) = (Location::Lost, Some(Box::new(Backup::of(body))));
        let record = Record { version, location, radius, backup };
        self.insert(task.future, record);
    }

    /// Records that a task of this PE comes back as stolen work. Returns whether this copy counts.
    pub(super) fn record_return(&mut self, parcel: &mut Parcel) -> bool {
        let version = Version { age: parcel.version.age + 1, ..parcel.version };
        let me = self.me;
        let counts = self.change(parcel.task.future, |record| {
            let counts = record.version.replica == version.replica;
            if counts {
                (record.version, record.location) = (version, Location::At(me));
            }
            counts
        });
        let counts = counts.unwrap_or(false);
        if counts {
            parcel.version = version;
        }
        counts
    }

    /// Records where a task is said to be, unless that is outdated. Returns whether it was
    /// recorded.
    pub(super) fn record_news(
        &mut self,
        future: u64,
        version: Version,
        location: Location,
        believes_all: bool,
    ) -> bool {
        let is_news = self.change(future, |record| {
            let is_news = version.replica == record.version.replica
                && (version.age > record.version.age || believes_all);
            if is_news {
                (record.version, record.location) = (version, location);
            }
            is_news
        });
        is_news.unwrap_or(false)
    }

    /// Of the tasks that may be lost with this PE, the one that was spawned first.
    pub(super) fn first_with(&self, pe: Pe) -> Option<u64> {
        self.index.first_with(pe)
    }

    /// Whether this PE may have a task that was lost twice, as far as home knows.
    pub(super) fn has_suspect(&self, pe: Pe) -> bool {
        self.index.has_suspect(pe)
    }

    /// Records that this task was lost with the PE `with`.
    pub(super) fn lose(&mut self, future: u64, with: Pe, max_replicas: u32) -> LossOutcome {
        let lost = self.change(future, |record| {
            record.version = Version { replica: record.version.replica + 1, age: 0 };
            record.location = Location::Lost;
            let lost_with = &mut record.backup.as_mut()?.lost_with;
            // A PE that had not heard of the death yet may have sent the dead PE another copy.
            if !lost_with.contains(&with) {
                lost_with.push(with);
            }
            Some(lost_with.len())
        });
        match lost {
            Some(None) => {
                self.remove(future);
                LossOutcome::Unsupervised
            }
            Some(Some(losses)) if losses > max_replicas as usize => {
                LossOutcome::TooOften(self.give_up(future))
            }
            _ => LossOutcome::Recovered,
        }
    }

    /// Lifts the radius of a lost task: any thief may take it.
    pub(super) fn unbind(&mut self, future: u64) {
        self.change(future, |record| record.radius = Distance::ONE);
    }

    /// Gives a task up. Returns the PEs with which its copies were lost.
    pub(super) fn give_up(&mut self, future: u64) -> Vec<Pe> {
        let backup = self.remove(future).and_then(|record| record.backup);
        backup.map(|backup| backup.lost_with).unwrap_or_default()
    }

    /// Forgets a task that has ended: further messages about it do not matter.
    pub(super) fn forget(&mut self, future: u64) {
        self.remove(future);
    }

    /// Forgets a task that is not wanted any more. Returns the other PE that has it, if that is
    /// known.
    pub(super) fn cancel(&mut self, future: u64) -> Option<Pe> {
        match self.remove(future)?.location {
            Location::At(pe) => Some(pe),
            // That PE gets the task before the message that this PE sends now.
            Location::InTransit { from, to } if from == self.me => Some(to),
            Location::InTransit { .. } | Location::Lost => None,
        }
    }

    /// Whether there is a record of this task.
    pub(super) fn knows(&self, future: u64) -> bool {
        self.away.get(future).is_some()
    }

    /// The number of lost tasks that wait for a thief.
    pub(super) fn waiting(&self) -> usize {
        self.index.lost()
    }

    /// The radius and the future of the lost task to take next, among those of this suspicion and
    /// these radii: one of the smallest radius, and of these the oldest.
    pub(super) fn first_lost(
        &self,
        suspicion: Suspicion,
        radii: RangeInclusive<Distance>,
    ) -> Option<(Distance, u64)> {
        self.index.first_lost(suspicion, radii)
    }

    /// Takes the next copy of that task, to be run or given away.
    pub(super) fn recover(
        &mut self,
        suspicion: Suspicion,
        radii: RangeInclusive<Distance>,
    ) -> Option<Parcel> {
        let (home, (_, future)) = (self.me, self.first_lost(suspicion, radii)?);
        self.change(future, |record| {
            record.location = Location::At(home);
            let body = record.backup.as_ref()?.body.clone();
            let task = TaskId { home, future };
            let (radius, version) = (record.radius, record.version);
            Some(Parcel { task, radius, supervised: true, version, body })
        })?
    }
}
