//! The copies of ranks that a PE keeps: of its own, and of those of others.

use super::kind::Saving;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use ultramarine_topology::Pe;

/// Tells checkpoints from each other; later ones are greater. The same superstep is computed again
/// after a death, and by a program that does not do the same each time with another outcome: so
/// copies of it are told apart by a number that grows with each recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Key {
    pub generation: u32,
    pub superstep: u64,
}

/// A rank as it was when a superstep began.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Copy<C, O> {
    /// Whether it needs no message to go on.
    Live(C, bool),
    Ended(O),
}

/// What a PE has for a recovery, or several have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Offers {
    /// No checkpoint that they know is of a later generation.
    pub(super) generation: u32,
    /// Of each checkpoint the ranks of which there are copies, as ranges in order.
    pub(super) ranks: BTreeMap<Key, Vec<Range<u32>>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Held<C, O> {
    /// The PE that had the rank.
    owner: Pe,
    copy: Copy<C, O>,
}

/// The copies that a PE keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Checkpoints<C, O>(pub BTreeMap<Key, BTreeMap<u32, Held<C, O>>>);

impl<C, O> Default for Checkpoints<C, O> {
    fn default() -> Self {
        Checkpoints(BTreeMap::new())
    }
}

impl<C: Clone, O: Clone> Checkpoints<C, O> {
    /// Keeps copies of ranks of this PE.
    pub(super) fn keep(
        &mut self,
        key: Key,
        owner: Pe,
        copies: impl IntoIterator<Item = (u32, Copy<C, O>)>,
    ) {
        let held = copies.into_iter().map(|(rank, copy)| (rank, Held { owner, copy }));
        self.0.entry(key).or_default().extend(held);
    }

    /// The copies of some ranks.
    pub(super) fn of(&self, key: Key, ranks: Range<u32>) -> BTreeMap<u32, Copy<C, O>> {
        let held = self.0.get(&key).into_iter().flat_map(|held| held.range(ranks.clone()));
        held.map(|(rank, held)| (*rank, held.copy.clone())).collect()
    }

    /// Drops those before this one, which is whole.
    pub fn forget_before(&mut self, key: Key) -> impl Sized + use<C, O> {
        let kept = self.0.split_off(&key);
        std::mem::replace(&mut self.0, kept)
    }

    /// Drops those after this one.
    pub(super) fn forget_after(&mut self, key: Option<Key>) {
        self.0.retain(|other, _| Some(*other) <= key);
    }

    /// The copies that this PE gives to others if need be: of its own ranks, and of those of the
    /// dead.
    pub(super) fn offered(
        &self,
        key: Key,
        is_given: impl Fn(Pe) -> bool,
    ) -> impl Iterator<Item = (u32, &Copy<C, O>)> {
        let held = self.0.get(&key).into_iter().flatten();
        let given = held.filter(move |(_, held)| is_given(held.owner));
        given.map(|(rank, held)| (*rank, &held.copy))
    }

    /// The ranks of which this PE has such copies.
    pub(super) fn offers(
        &self,
        generation: u32,
        is_given: impl Fn(Pe) -> bool + std::marker::Copy,
    ) -> Offers {
        let ranks = |key| self.offered(key, is_given).map(|(rank, _)| rank..rank + 1);
        let ranges = |key: &Key| (*key, joined(ranks(*key).collect()));
        let ranges = self.0.keys().map(ranges).filter(|(_, ranges)| !ranges.is_empty());
        Offers { generation, ranks: ranges.collect() }
    }

    /// Drops this one.
    pub(super) fn forget(&mut self, key: Key) {
        self.0.remove(&key);
    }
}

/// How far checkpoints are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Progress {
    /// The last of which this PE's partner has copies; that this PE has put on the disk; and the
    /// last with which it has tried to.
    pub(super) kept: Option<Key>,
    pub(super) stored: Option<Key>,
    pub(super) tried: Option<Key>,
    /// The last that is whole in memory, and on the disk; and with which all are done.
    pub all_kept: Option<Key>,
    pub(super) all_stored: Option<Key>,
    pub(super) all_settled: Option<Key>,
}

impl Progress {
    /// The run goes on from a checkpoint, which may be whole on the disk.
    pub(super) fn begin_anew(&mut self, on_disk: Option<Key>) {
        let all_stored = self.all_stored.max(on_disk);
        let (stored, tried) = (on_disk, on_disk);
        *self = Progress { stored, tried, all_stored, ..Progress::default() };
    }

    /// The last checkpoint with which this PE is done.
    pub(super) fn settled(&self, saving: Saving) -> Option<Key> {
        let both = [(saving.in_memory, self.kept), (saving.on_disk, self.tried)];
        both.into_iter().filter(|(is_used, _)| *is_used).map(|(_, key)| key).min().flatten()
    }
}

/// Makes as few ranges as there can be.
fn joined(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut found: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

impl Offers {
    /// Adds what another PE offers.
    pub(super) fn add(&mut self, others: Offers) {
        self.generation = self.generation.max(others.generation);
        for (key, others) in others.ranks {
            let known = self.ranks.entry(key).or_default();
            known.extend(others);
            *known = joined(std::mem::take(known));
        }
    }

    /// The last checkpoint of which there is a copy of each rank.
    pub(super) fn last_whole(&self, ranks: u32) -> Option<Key> {
        let is_whole = |ranges: &[Range<u32>]| ranges.len() == 1 && ranges[0] == (0..ranks);
        self.ranks.iter().rev().find(|(_, ranges)| is_whole(ranges)).map(|(key, _)| *key)
    }
}
