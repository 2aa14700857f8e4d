//! Accusations: the accuser's record of one, and the judge's table of all that it has heard.

use super::notice::Claim;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_topology::Pe;

/// An accusation that the judge has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Accusation {
    pub(super) claim: Claim,
    /// When to repeat it.
    pub(super) again_at: Duration,
}

/// The accusations that the judge looks into, by the accused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct AccusationTable(BTreeMap<Pe, AccusedPe>);

/// The accusations of one PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct AccusedPe {
    /// What each accuser says.
    accusers: BTreeMap<Pe, AccuserClaim>,
    /// The judge has reached the accused since an accuser began to insist.
    is_reached: bool,
}

/// What one accuser says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AccuserClaim {
    claim: Claim,
    /// When to forget the accusation unless it is repeated.
    until: Duration,
}

/// What follows from an accusation.
pub(super) struct AccusationOutcome {
    /// This PE was not accused before.
    pub(super) is_first: bool,
    /// The accuser did not insist before. What the judge sees has to be newer than that.
    pub(super) begins_to_insist: bool,
    /// The judge reaches the accused, and the accuser does not.
    pub(super) is_path_broken: bool,
}

impl AccusationTable {
    /// Adds an accusation. What the judge saw before counts only for an accuser that has insisted
    /// before (unless `trusts_old`, which is a mutant).
    pub(super) fn add(
        &mut self,
        accuser: Pe,
        (accused, claim): (Pe, Claim),
        until: Duration,
        trusts_old: bool,
    ) -> AccusationOutcome {
        let is_first = !self.0.contains_key(&accused);
        let accused_pe = self.0.entry(accused).or_default();
        let former = accused_pe.accusers.insert(accuser, AccuserClaim { claim, until });
        let has_insisted = former.is_some_and(|former| former.claim.insists());
        let begins_to_insist = claim.insists() && !has_insisted;
        if begins_to_insist && !trusts_old {
            accused_pe.is_reached = false;
        }
        let is_path_broken = claim.insists() && accused_pe.is_reached;
        AccusationOutcome { is_first, begins_to_insist, is_path_broken }
    }

    /// The judge has contact with this PE.
    pub(super) fn reached(&mut self, pe: Pe) {
        if let Some(accused_pe) = self.0.get_mut(&pe) {
            accused_pe.is_reached = true;
        }
    }

    /// Whether an accuser has seen that the process of this PE is gone.
    pub(super) fn is_witnessed(&self, pe: Pe) -> bool {
        let claims =
            self.0.get(&pe).into_iter().flat_map(|accused_pe| accused_pe.accusers.values());
        claims.into_iter().any(|claim| claim.claim == Claim::Gone)
    }

    /// Of two PEs that do not reach each other, the one that has lost contact with more PEs; of
    /// equals the one with the greater number.
    pub(super) fn who_leaves(&self, one: Pe, other: Pe) -> Pe {
        let key = |pe: Pe| (self.out_of_contact(pe), pe);
        key(one).max(key(other)).1
    }

    /// The number of PEs that this one accuses, or that accuse it.
    fn out_of_contact(&self, pe: Pe) -> usize {
        let accusers =
            self.0.get(&pe).into_iter().flat_map(|accused_pe| accused_pe.accusers.keys().copied());
        let accused = self.0.iter().filter(|(_, accused_pe)| accused_pe.accusers.contains_key(&pe));
        accusers.chain(accused.map(|(accused, _)| *accused)).collect::<BTreeSet<_>>().len()
    }

    /// Removes a PE that is dead. Returns the PEs that accused it, and forgets its own accusations.
    pub(super) fn close(&mut self, pe: Pe) -> Vec<Pe> {
        let accused_pe = self.0.remove(&pe).unwrap_or_default();
        self.0.values_mut().for_each(|accused_pe| {
            accused_pe.accusers.remove(&pe);
        });
        self.0.retain(|_, accused_pe| !accused_pe.accusers.is_empty());
        accused_pe.accusers.into_keys().collect()
    }

    /// Forgets accusations that have not been repeated.
    pub(super) fn forget(&mut self, now: Duration) {
        self.0.retain(|_, accused_pe| {
            accused_pe.accusers.retain(|_, claim| now < claim.until);
            !accused_pe.accusers.is_empty()
        });
    }

    /// When an accusation is to be forgotten.
    pub(super) fn due(&self) -> Option<Duration> {
        let claims = self.0.values().flat_map(|accused_pe| accused_pe.accusers.values());
        claims.map(|claim| claim.until).min()
    }
}
