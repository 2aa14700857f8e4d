//! The paths between PEs, some of which are cut in one direction, for a while or for ever.

use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// What is cut: from, to; from when, and until when, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct BrokenPaths(BTreeMap<(Pe, Pe), (u64, u64)>);

impl BrokenPaths {
    pub(crate) fn cut(&mut self, from: Pe, to: Pe, since: u64, until: u64) {
        self.0.insert((from, to), (since, until));
    }

    /// When something sent now gets through; `None`: never.
    pub(crate) fn opens(&self, from: Pe, to: Pe, now: u64) -> Option<u64> {
        match self.0.get(&(from, to)) {
            Some((since, until)) if (*since..*until).contains(&now) => {
                (*until < u64::MAX).then_some(*until)
            }
            _ => Some(now),
        }
    }

    /// Whether two PEs reach each other: that takes both directions.
    pub(crate) fn is_whole(&self, one: Pe, other: Pe, now: u64) -> bool {
        [(one, other), (other, one)].iter().all(|(a, b)| self.opens(*a, *b, now) == Some(now))
    }

    /// Whether the path between these two was ever cut.
    pub(crate) fn is_ever_cut(&self, one: Pe, other: Pe) -> bool {
        [(one, other), (other, one)].iter().any(|path| self.0.contains_key(path))
    }

    /// How many paths were ever cut.
    pub(crate) fn count(&self) -> u32 {
        self.0
            .keys()
            .filter(|(one, other)| one < other || !self.0.contains_key(&(*other, *one)))
            .count() as u32
    }
}
