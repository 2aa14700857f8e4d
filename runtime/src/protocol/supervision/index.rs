//! Finds records by their location: those that may be lost with a PE, and those that wait for a
//! thief.

use super::record::{Location, Record};
use crate::numbered::Numbered;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use ultramarine_topology::{Distance, Pe};

/// How likely it is that a lost task kills its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::protocol) enum Suspicion {
    /// It was lost at most once.
    Low,
    /// It was lost two or three times. It goes alone to a PE that has nothing else to do.
    Medium,
    /// It was lost twice or more while it was alone. Its supervisor does not run it.
    High,
}

impl Suspicion {
    /// The suspicion after this many losses. (One loss while it was alone is not enough for `High`:
    /// of 200 jobs in which processes were killed at random, two gave up a harmless task.)
    fn after(losses: usize) -> Self {
        match losses {
            0 | 1 => Suspicion::Low,
            2 | 3 => Suspicion::Medium,
            _ => Suspicion::High,
        }
    }
}

/// The records by PE, and those of lost tasks by suspicion and radius. Each operation takes
/// O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Index {
    me: Pe,
    /// Each task under each PE that its location names, except home itself.
    named: BTreeMap<Pe, Numbered<()>>,
    /// Those of them that were lost twice.
    suspects: BTreeSet<(Pe, u64)>,
    /// The tasks whose next copy waits here for a thief.
    lost: BTreeSet<(Suspicion, Distance, u64)>,
}

impl Index {
    pub(super) fn new(me: Pe) -> Self {
        Index { me, named: BTreeMap::new(), suspects: BTreeSet::new(), lost: BTreeSet::new() }
    }

    pub(super) fn insert(&mut self, future: u64, record: &Record) {
        match record.location {
            Location::Lost => _ = self.lost.insert(key(future, record)),
            _ => self.names(record.location).for_each(|pe| {
                self.named.entry(pe).or_default().insert(future, ());
                if suspicion(record) > Suspicion::Low {
                    self.suspects.insert((pe, future));
                }
            }),
        }
    }

    pub(super) fn remove(&mut self, future: u64, record: &Record) {
        match record.location {
            Location::Lost => _ = self.lost.remove(&key(future, record)),
            _ => self.names(record.location).for_each(|pe| {
                self.suspects.remove(&(pe, future));
                if let Entry::Occupied(mut there) = self.named.entry(pe) {
                    there.get_mut().remove(future);
                    if there.get().is_empty() {
                        there.remove();
                    }
                }
            }),
        }
    }

    /// The other PEs with which a task at this location is lost.
    fn names(&self, location: Location) -> impl Iterator<Item = Pe> + use<> {
        let me = self.me;
        let named = match location {
            Location::At(at) => [Some(at), None],
            Location::InTransit { from, to } => [Some(from), Some(to)],
            Location::Lost => [None, None],
        };
        named.into_iter().flatten().filter(move |pe| *pe != me)
    }

    pub(super) fn first_with(&self, pe: Pe) -> Option<u64> {
        self.named.get(&pe)?.first()
    }

    /// Whether a task that was lost twice is on this PE, or may be.
    pub(super) fn has_suspect(&self, pe: Pe) -> bool {
        self.suspects.range((pe, 0)..=(pe, u64::MAX)).next().is_some()
    }

    pub(super) fn first_lost(
        &self,
        suspicion: Suspicion,
        radii: RangeInclusive<Distance>,
    ) -> Option<(Distance, u64)> {
        let least = (suspicion, *radii.start(), 0);
        let most = (suspicion, *radii.end(), u64::MAX);
        self.lost.range(least..=most).next().map(|(_, radius, future)| (*radius, *future))
    }

    pub(super) fn lost(&self) -> usize {
        self.lost.len()
    }
}

fn key(future: u64, record: &Record) -> (Suspicion, Distance, u64) {
    (suspicion(record), record.radius, future)
}

fn suspicion(record: &Record) -> Suspicion {
    Suspicion::after(record.losses())
}
