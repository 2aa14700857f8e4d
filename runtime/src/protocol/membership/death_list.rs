//! All PEs that are known to be dead, whichever judge declared them.

use super::living::Living;
use super::notice::{Death, Evidence};
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// The dead, in the order in which this PE learnt of them, and the living. It only grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeathList {
    order: Vec<Pe>,
    living: Living,
    /// How certain each death is. Kept only for a succession.
    evidence: BTreeMap<Pe, Evidence>,
}

impl DeathList {
    /// The list of a job of this many PEs, all of which live.
    pub(super) fn new(pes: u32) -> Self {
        DeathList { order: Vec::new(), living: Living::new(pes, &[]), evidence: BTreeMap::new() }
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

    /// There is this evidence for a death.
    pub(super) fn note(&mut self, Death { pe, evidence }: Death) {
        let known = self.evidence.entry(pe).or_insert(evidence);
        *known = evidence.max(*known);
    }

    /// How certain the death of a PE is that is in the list.
    pub(super) fn evidence(&self, pe: Pe) -> Evidence {
        self.evidence.get(&pe).copied().unwrap_or(Evidence::Silent)
    }
}
