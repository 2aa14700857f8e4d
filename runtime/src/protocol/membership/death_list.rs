//! All PEs that are known to be dead, whichever judge declared them.

use super::living::Living;
use super::notice::Death;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// The dead, in the order in which this PE learnt of them, and the living. It only grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeathList {
    order: Vec<Pe>,
    living: Living,
    /// Those that have no vote any more. Kept only for a succession.
    certain: BTreeSet<Pe>,
}

impl DeathList {
    /// The list of a job of this many PEs, all of which live.
    pub(super) fn new(pes: u32) -> Self {
        DeathList { order: Vec::new(), living: Living::new(pes, &[]), certain: BTreeSet::new() }
    }

    pub(super) fn order(&self) -> &[Pe] {
        &self.order
    }

    pub(super) fn living(&self) -> &Living {
        &self.living
    }

    pub(super) fn contains(&self, pe: Pe) -> bool {
        self.living.is_dead(pe)
    }

    /// Adds those that are not known yet.
    pub(super) fn add<'a>(&mut self, deaths: impl IntoIterator<Item = &'a Death>) {
        let pes = deaths.into_iter().map(|death| death.pe);
        let new: Vec<Pe> = pes.filter(|pe| !self.contains(*pe)).collect();
        self.order.extend(&new);
        self.living.remove(&new);
    }

    /// The deaths of these PEs are certain.
    pub(super) fn make_certain(&mut self, pes: impl IntoIterator<Item = Pe>) {
        self.certain.extend(pes);
    }

    pub(super) fn is_certain(&self, pe: Pe) -> bool {
        self.certain.contains(&pe)
    }
}
