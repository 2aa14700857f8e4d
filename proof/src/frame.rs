//! What several models have in common.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

/// A part of a state, with a digest of it: a step changes one part, and a state is that of all.
#[derive(Clone, Debug)]
pub(crate) struct Digested<T> {
    part: T,
    digest: u64,
}

impl<T: Hash> Digested<T> {
    pub(crate) fn new(part: T) -> Self {
        Digested { part, digest: 0 }
    }

    /// Changes the part.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.part);
        let mut hasher = DefaultHasher::new();
        self.part.hash(&mut hasher);
        self.digest = hasher.finish();
    }
}

impl<T> Deref for Digested<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T> PartialEq for Digested<T> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Digested<T> {}

impl<T> Hash for Digested<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

/// The set of this PE alone.
pub(crate) fn set(pe: u32) -> u32 {
    1 << pe
}

/// Whether this PE is in the set.
pub(crate) fn has(pes: u32, pe: u32) -> bool {
    pes & set(pe) != 0
}
