//! A directory that all PEs see, in memory.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

type CopyOf = Copy<JobOf<Toy>, u64>;

/// What is in the directory. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Disk(Rc<RefCell<BTreeMap<Key, BTreeMap<u32, CopyOf>>>>);

impl Disk {
    /// The checkpoints of which there is something.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.0.borrow().keys().copied().collect()
    }

    /// Those that have all of these ranks.
    pub(super) fn whole(&self, ranks: std::ops::Range<u32>) -> Vec<Key> {
        let has = |held: &BTreeMap<u32, CopyOf>| ranks.clone().all(|rank| held.contains_key(&rank));
        let all = self.0.borrow();
        all.iter().filter(|(_, held)| has(held)).map(|(key, _)| *key).collect()
    }

    pub(super) fn store(&self, key: Key, copies: BTreeMap<u32, CopyOf>) {
        self.0.borrow_mut().entry(key).or_default().extend(copies);
    }

    pub(super) fn load(&self, key: Key, ranks: std::ops::Range<u32>) -> BTreeMap<u32, CopyOf> {
        self.0.borrow()[&key].range(ranks).map(|(rank, copy)| (*rank, copy.clone())).collect()
    }

    /// Removes what there is of a checkpoint, unless it is whole.
    pub(super) fn discard(&self, key: Key, ranks: u32) {
        if !self.whole(0..ranks).contains(&key) {
            self.0.borrow_mut().remove(&key);
        }
    }

    /// Removes what is before this checkpoint, which is whole, but for the last one that is.
    pub(super) fn prune(&self, key: Key, generation: u32, ranks: u32) {
        let whole = self.whole(0..ranks);
        assert!(whole.contains(&key), "{key:?} of {whole:?}");
        let former = whole.into_iter().rfind(|other| *other < key);
        self.0.borrow_mut().retain(|other, _| {
            *other == key
                || Some(*other) == former
                || *other > key && other.generation >= generation
        });
    }
}
