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
//! # Tasks that kill their hosts
//!
//! A copy of a lost task is never run by its supervisor, nor by the root, while anybody else could
//! do it: it may be the task itself that kills. What was lost twice goes alone to a PE where
//! nothing else runs or waits, so that it can do no more harm to others. When more than `max_replicas`
//! PEs have died with it, it is given up; or when nobody but the supervisor and the root is left, if it was lost twice
//! even while it was alone. If somebody is left, but not within its radius, it goes further instead.
//! (So a job needs four PEs beside the root to find such a task out before it gets there.)
//!
//! The price: while only lost tasks are left to do, their supervisor does none of them.

use super::message::{Bytes, Parcel, TaskId, Version};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use ultramarine_topology::{Distance, Pe};

/// Where a task is, as far as its home knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Location {
    /// It waits or runs there.
    At(Pe),
    /// It was handed on, and may be on either PE or between them.
    InTransit {
        /// Who handed it on.
        from: Pe,
        /// Who is to get it.
        to: Pe,
    },
    /// The last copy is lost, and the next one waits at home for a thief.
    Lost,
}

impl Location {
    /// Whether the task may be lost when this PE is.
    fn names(self, pe: Pe) -> bool {
        match self {
            Location::At(at) => at == pe,
            Location::InTransit { from, to } => from == pe || to == pe,
            Location::Lost => false,
        }
    }
}

/// What home knows about a task that is away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    version: Version,
    location: Location,
    /// The PEs that the former copies were lost with, each once.
    lost_with: Vec<Pe>,
    /// How far from home it may go.
    radius: Distance,
    /// What home runs it again from, if it is supervised.
    backup: Option<Bytes>,
}

/// What becomes of a task that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
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
pub enum Mutant {
    /// A record that comes to name a PE known to be dead is left at that.
    ForgetsTheDead,
    /// Outdated news is believed.
    IgnoresAge,
}

/// The records of a PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Supervision {
    /// By the number of the future.
    away: BTreeMap<u64, Record>,
    /// The tasks among them whose next copy waits here for a thief.
    lost: VecDeque<u64>,
}

impl Supervision {
    /// A task of this PE leaves it, `from` here `to` there.
    pub(super) fn leaves(&mut self, parcel: &mut Parcel, from: Pe, to: Pe) {
        parcel.version.age += 1;
        let Parcel { task, radius, supervised, version, ref body } = *parcel;
        let location = Location::InTransit { from, to };
        self.away
            .entry(task.future)
            .and_modify(|record| (record.version, record.location) = (version, location))
            .or_insert_with(|| Record {
                version,
                location,
                lost_with: Vec::new(),
                radius,
                backup: supervised.then(|| body.clone()),
            });
    }

    /// A supervised task of this PE was meant for one that is dead: it waits for a thief.
    pub(super) fn waits(&mut self, parcel: Parcel) {
        let Parcel { task, radius, version, body, .. } = parcel;
        let (location, lost_with) = (Location::Lost, Vec::new());
        let record = Record { version, location, lost_with, radius, backup: Some(body) };
        self.away.insert(task.future, record);
        self.lost.push_back(task.future);
    }

    /// A task of this PE comes back to it as stolen work. Whether it still counts.
    pub(super) fn comes_home(&mut self, parcel: &mut Parcel) -> bool {
        let Some(record) = self.away.get_mut(&parcel.task.future) else { return false };
        if record.version.replica != parcel.version.replica {
            return false;
        }
        parcel.version.age += 1;
        record.version = parcel.version;
        record.location = Location::At(parcel.task.home);
        true
    }

    /// Takes note of where a task is said to be, unless that is outdated. Whether it was news.
    pub(super) fn hear(
        &mut self,
        future: u64,
        version: Version,
        location: Location,
        believes_all: bool,
    ) -> bool {
        let Some(record) = self.away.get_mut(&future) else { return false };
        let is_news = version.replica == record.version.replica
            && (version.age > record.version.age || believes_all);
        if is_news {
            (record.version, record.location) = (version, location);
        }
        is_news
    }

    /// The tasks that may be lost with this PE, in the order in which they were spawned.
    pub(super) fn with(&self, pe: Pe) -> Vec<u64> {
        let named = self.away.iter().filter(|(_, record)| record.location.names(pe));
        named.map(|(future, _)| *future).collect()
    }

    /// This task was lost with that PE.
    pub(super) fn lose(&mut self, future: u64, with: Pe, max_replicas: u32) -> Fate {
        let Some(record) = self.away.get_mut(&future) else { return Fate::Recovered };
        // Some other PE, which had not heard of the death yet, may have sent it another copy.
        if !record.lost_with.contains(&with) {
            record.lost_with.push(with);
        }
        if record.backup.is_none() {
            self.away.remove(&future);
            return Fate::Unsupervised;
        }
        if record.lost_with.len() > max_replicas as usize {
            let with = std::mem::take(&mut record.lost_with);
            self.away.remove(&future);
            return Fate::TooOften(with);
        }
        record.version = Version { replica: record.version.replica + 1, age: 0 };
        record.location = Location::Lost;
        self.lost.push_back(future);
        Fate::Recovered
    }

    /// Lets thieves from anywhere take the lost tasks that fit: by radius, and by how often they were
    /// lost.
    pub(super) fn unbound(&mut self, fits: impl Fn(Distance, usize) -> bool) {
        for future in &self.lost {
            if let Some(record) = self.away.get_mut(future)
                && fits(record.radius, record.lost_with.len())
            {
                record.radius = Distance::ONE;
            }
        }
    }

    /// Gives a task up. The PEs that its copies were lost with.
    pub(super) fn give_up(&mut self, future: u64) -> Vec<Pe> {
        self.away.remove(&future).map(|record| record.lost_with).unwrap_or_default()
    }

    /// The task has ended: what else is heard of it does not matter.
    pub(super) fn forget(&mut self, future: u64) {
        if self.away.remove(&future).is_some_and(|record| record.location == Location::Lost) {
            self.lost.retain(|lost| *lost != future);
        }
    }

    /// How many tasks wait for a thief.
    pub(super) fn waiting(&self) -> usize {
        self.lost.len()
    }

    /// Takes the next copy of a lost task, of those that fit: by radius, and by how often they
    /// were lost.
    pub(super) fn recover(
        &mut self,
        home: Pe,
        fits: impl Fn(Distance, usize) -> bool,
    ) -> Option<Parcel> {
        let Supervision { away, lost } = self;
        let is_fit = |future: &u64| {
            let record = &away[future];
            fits(record.radius, record.lost_with.len())
        };
        let future = lost.remove(lost.iter().position(is_fit)?)?;
        let record = away.get_mut(&future)?;
        record.location = Location::At(home);
        let body = record.backup.clone()?;
        let task = TaskId { home, future };
        let (radius, version) = (record.radius, record.version);
        Some(Parcel { task, radius, supervised: true, version, body })
    }
}
