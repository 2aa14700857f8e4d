//! Where a PE's own tasks are, and which of them must be run again (SymGridPar2 §5.3; HdpH-RS
//! §7.3, "passive").
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
//! - Each step makes the task older by one. Home believes only what is older than what it knows,
//!   of the copy that counts: messages from different PEs overtake each other.
//! - When a PE dies, every task whose record names it is *lost*: at that PE, from it or to it.
//!   A record that comes to name a PE already known to be dead makes the task lost, too.
//! - What is lost and supervised is run again: a new replica, of which home keeps the bytes. What
//!   is lost and not supervised ends with an error.
//! - When home itself hands the task out there is neither NOTIFY nor ACK. Home writes the record
//!   down itself; the way from home to the thief loses nothing while both live; and if home dies,
//!   nobody waits for the task.
//!
//! # Why nothing is lost unnoticed
//!
//! Let `m` be the greatest age recorded for the copy that counts. Either the copy is where the
//! record says, at a PE or between two; or it has made step `m + 1`. The PE that made that step is
//! named by record `m`, and it told home, before anything else. If home never hears of it, that PE
//! is dead; and then record `m` names a dead PE, and home runs the task again. If home does hear of
//! it, there is a greater age recorded, and the argument begins anew.
//!
//! # A death that costs many tasks
//!
//! A PE may die with a million tasks. To lose them all at once would keep the engine from its
//! messages for a second. So home loses at most `losses_per_turn` of them in a turn, and goes on in
//! the next. Meanwhile the record of a task that is still to be lost names a dead PE. That is
//! harmless: such a record does what every record does. If there is a newer step to hear of, it
//! comes from a living PE, which has the task or has handed it on; the record then names those, and
//! is not lost with the dead any more. If a result comes, the record goes. If neither comes, its
//! turn comes. No record comes to name a PE known to be dead without being lost at once. So all
//! that is still to be lost is what the index has under the dead PE, and that only shrinks.
//!
//! Loss, news, result and the choice of a task for a thief each take O(log n) for n records.
//!
//! # Tasks that kill their hosts
//!
//! A copy of a lost task is never run by its supervisor, nor by the root, while anybody else could
//! do it: it may be the task itself that kills. What was lost twice goes alone to a PE where
//! nothing else runs or waits, so that it can do no more harm to others. In a job that has much to
//! do there may be no such PE: then one such task is placed on some PE every two seconds. When more
//! than `max_replicas` PEs have died with it, it is given up; or when nobody but the supervisor and
//! the root is left, if it was lost twice even while it was alone. If somebody is left, but not
//! within its radius, it goes further instead. (So a job needs four PEs beside the root to find
//! such a task out before it gets there.)
//!
//! The price: while only lost tasks are left to do, their supervisor does none of them.

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

/// What becomes of a task that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LossOutcome {
    /// Another copy waits for a thief.
    Recovered,
    /// Nobody supervised it.
    Unsupervised,
    /// It was lost too often, with these PEs.
    TooOften(Vec<Pe>),
}

/// A rule of the protocol that can be left out, with the feature `mutants`, to see that the proofs
/// notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SupervisionMutant {
    /// A record that comes to name a PE known to be dead is left at that.
    ForgetsTheDead,
    /// Outdated news is believed.
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

    /// A task of this PE leaves it, `from` here `to` there.
    pub(super) fn record_departure(&mut self, parcel: &mut Parcel, from: Pe, to: Pe) {
        parcel.version.age += 1;
        let Parcel { task, radius, supervised, version, ref body } = *parcel;
        let location = Location::InTransit { from, to };
        let update = |record: &mut Record| (record.version, record.location) = (version, location);
        if self.change(task.future, update).is_none() {
            let backup = supervised.then(|| Box::new(Backup::of(body.clone())));
            self.insert(task.future, Record { version, location, radius, backup });
        }
    }

    /// A supervised task of this PE was meant for one that is dead: it waits for a thief.
    pub(super) fn record_waiting(&mut self, parcel: Parcel) {
        let Parcel { task, radius, version, body, .. } = parcel;
        let (location, backup) = (Location::Lost, Some(Box::new(Backup::of(body))));
        let record = Record { version, location, radius, backup };
        self.insert(task.future, record);
    }

    /// A task of this PE comes back to it as stolen work. Whether it still counts.
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

    /// Takes note of where a task is said to be, unless that is outdated. Whether it was news.
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

    /// The first task, in the order in which they were spawned, of those that may be lost with
    /// this PE.
    pub(super) fn first_with(&self, pe: Pe) -> Option<u64> {
        self.index.first_with(pe)
    }

    /// This task was lost with that PE.
    pub(super) fn lose(&mut self, future: u64, with: Pe, max_replicas: u32) -> LossOutcome {
        let lost = self.change(future, |record| {
            record.version = Version { replica: record.version.replica + 1, age: 0 };
            record.location = Location::Lost;
            let lost_with = &mut record.backup.as_mut()?.lost_with;
            // Some other PE, which had not heard of the death yet, may have sent it another copy.
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

    /// Lets thieves from anywhere take a lost task.
    pub(super) fn unbind(&mut self, future: u64) {
        self.change(future, |record| record.radius = Distance::ONE);
    }

    /// Gives a task up. The PEs that its copies were lost with.
    pub(super) fn give_up(&mut self, future: u64) -> Vec<Pe> {
        let backup = self.remove(future).and_then(|record| record.backup);
        backup.map(|backup| backup.lost_with).unwrap_or_default()
    }

    /// The task has ended: what else is heard of it does not matter.
    pub(super) fn forget(&mut self, future: u64) {
        self.remove(future);
    }

    /// The task is not wanted any more. Where it is, if it is known to be on another PE.
    pub(super) fn cancel(&mut self, future: u64) -> Option<Pe> {
        match self.remove(future)?.location {
            Location::At(pe) => Some(pe),
            // What this PE sent it gets before what it sends now.
            Location::InTransit { from, to } if from == self.me => Some(to),
            Location::InTransit { .. } | Location::Lost => None,
        }
    }

    /// Whether there is a record of this task.
    pub(super) fn knows(&self, future: u64) -> bool {
        self.away.get(future).is_some()
    }

    /// How many tasks wait for a thief.
    pub(super) fn waiting(&self) -> usize {
        self.index.lost()
    }

    /// The lost task to take next of those that are so suspicious and have such a radius: the
    /// smallest radius, of these the oldest task.
    pub(super) fn first_lost(
        &self,
        suspicion: Suspicion,
        radii: RangeInclusive<Distance>,
    ) -> Option<u64> {
        self.index.first_lost(suspicion, radii)
    }

    /// Takes the next copy of that task.
    pub(super) fn recover(
        &mut self,
        suspicion: Suspicion,
        radii: RangeInclusive<Distance>,
    ) -> Option<Parcel> {
        let (home, future) = (self.me, self.first_lost(suspicion, radii)?);
        self.change(future, |record| {
            record.location = Location::At(home);
            let body = record.backup.as_ref()?.body.clone();
            let task = TaskId { home, future };
            let (radius, version) = (record.radius, record.version);
            Some(Parcel { task, radius, supervised: true, version, body })
        })?
    }
}
