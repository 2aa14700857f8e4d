//! The paths between PEs, some of which are cut in one direction, for a while or for ever; and
//! parts of the machine that are cut off from the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use ultramarine_topology::Pe;

/// What is cut, and what was.
#[derive(Debug, Default)]
pub(crate) struct BrokenPaths {
    /// From, to; from when, and until when, in nanoseconds.
    cuts: BTreeMap<(Pe, Pe), (u64, u64)>,
    partitions: Vec<Partition>,
}

/// Nothing passes between these PEs and all others, in neither direction.
#[derive(Debug)]
struct Partition {
    pes: RangeInclusive<Pe>,
    since: u64,
    until: u64,
}

impl Partition {
    fn separates(&self, one: Pe, other: Pe) -> bool {
        self.pes.contains(&one) != self.pes.contains(&other)
    }
}

impl BrokenPaths {
    pub(crate) fn cut(&mut self, from: Pe, to: Pe, since: u64, until: u64) {
        self.cuts.insert((from, to), (since, until));
    }

    pub(crate) fn part(&mut self, pes: RangeInclusive<Pe>, since: u64, until: u64) {
        self.partitions.push(Partition { pes, since, until });
    }

    /// When something sent now gets through; `None`: never.
    pub(crate) fn opens(&self, from: Pe, to: Pe, now: u64) -> Option<u64> {
        let parted = self.partitions.iter().filter(|parted| parted.separates(from, to));
        let parted = parted.map(|parted| (parted.since, parted.until));
        let closed = self.cuts.get(&(from, to)).copied().into_iter().chain(parted);
        let closed = closed.filter(|(since, until)| (*since..*until).contains(&now));
        let opens = closed.map(|(_, until)| until).max().unwrap_or(now);
        (opens < u64::MAX).then_some(opens)
    }

    /// Whether the path between these two was ever cut.
    pub(crate) fn is_ever_cut(&self, one: Pe, other: Pe) -> bool {
        [(one, other), (other, one)].iter().any(|path| self.cuts.contains_key(path))
            || self.is_ever_parted(one, other)
    }

    /// Whether these two were ever on different sides of a partition.
    pub(crate) fn is_ever_parted(&self, one: Pe, other: Pe) -> bool {
        self.partitions.iter().any(|parted| parted.separates(one, other))
    }

    /// How many of these PEs were parted from the root for a while.
    pub(crate) fn rejoined(&self, pes: u32) -> u32 {
        let healed = self.partitions.iter().filter(|parted| parted.until < u64::MAX);
        let healed: Vec<_> = healed.collect();
        let is_rejoined =
            |pe: &u32| healed.iter().any(|parted| parted.separates(Pe::ROOT, Pe::new(*pe)));
        (0..pes).filter(is_rejoined).count() as u32
    }

    /// Whether there was a partition.
    pub(crate) fn has_parted(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// The PEs that stay together whatever is parted: all, or those on the larger side of a
    /// partition for ever. `None`: that cannot be said, as a partition ends.
    pub(crate) fn larger_side(&self, pes: u32) -> Option<BTreeSet<Pe>> {
        let all: BTreeSet<Pe> = (0..pes).map(Pe::new).collect();
        match &*self.partitions {
            [] => Some(all),
            [parted] if parted.until == u64::MAX => {
                let (inside, outside): (BTreeSet<Pe>, BTreeSet<Pe>) =
                    all.into_iter().partition(|pe| parted.pes.contains(pe));
                Some(if inside.len() > outside.len() { inside } else { outside })
            }
            _ => None,
        }
    }

    /// How many paths were ever cut, apart from partitions.
    pub(crate) fn count(&self) -> u32 {
        let is_first =
            |(one, other): &&(Pe, Pe)| one < other || !self.cuts.contains_key(&(*other, *one));
        self.cuts.keys().filter(is_first).count() as u32
    }
}
