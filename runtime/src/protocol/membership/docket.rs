//! The accusations that the root looks into.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_topology::Pe;

/// The open cases, by the accused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Docket(BTreeMap<Pe, Case>);

/// What is said about one PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Case {
    /// By the accuser.
    accusers: BTreeMap<Pe, Claim>,
    /// The root has reached the accused since an accuser began to insist.
    is_reached: bool,
}

/// What one PE says about another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Claim {
    insists: bool,
    /// When to forget it, unless it is repeated.
    until: Duration,
}

/// What an accusation comes to.
pub(super) struct Hearing {
    /// This PE was not accused before.
    pub(super) is_first: bool,
    /// The root reaches the accused, and the accuser does not.
    pub(super) is_path_broken: bool,
}

impl Docket {
    /// Somebody accuses a PE. Without a mutant's `trusts_old`, what the root saw before counts only
    /// for an accuser that has insisted before.
    pub(super) fn hear(
        &mut self,
        accuser: Pe,
        (accused, insists): (Pe, bool),
        until: Duration,
        trusts_old: bool,
    ) -> Hearing {
        let is_first = !self.0.contains_key(&accused);
        let case = self.0.entry(accused).or_default();
        let former = case.accusers.insert(accuser, Claim { insists, until });
        let has_insisted = former.is_some_and(|former| former.insists);
        if insists && !has_insisted && !trusts_old {
            case.is_reached = false;
        }
        Hearing { is_first, is_path_broken: insists && case.is_reached }
    }

    /// The root has contact with this PE.
    pub(super) fn reached(&mut self, pe: Pe) {
        if let Some(case) = self.0.get_mut(&pe) {
            case.is_reached = true;
        }
    }

    /// Which of two that do not reach each other has lost contact with more PEs; of equals the one
    /// with the greater number.
    pub(super) fn who_leaves(&self, one: Pe, other: Pe) -> Pe {
        let key = |pe: Pe| (self.out_of_contact(pe), pe);
        key(one).max(key(other)).1
    }

    /// How many PEs this one accuses, or is accused by.
    fn out_of_contact(&self, pe: Pe) -> usize {
        let accusers = self.0.get(&pe).into_iter().flat_map(|case| case.accusers.keys().copied());
        let accused = self.0.iter().filter(|(_, case)| case.accusers.contains_key(&pe));
        accusers.chain(accused.map(|(accused, _)| *accused)).collect::<BTreeSet<_>>().len()
    }

    /// This PE is dead: returns who accused it, and forgets whom it accused.
    pub(super) fn close(&mut self, pe: Pe) -> Vec<Pe> {
        let case = self.0.remove(&pe).unwrap_or_default();
        self.0.values_mut().for_each(|case| {
            case.accusers.remove(&pe);
        });
        self.0.retain(|_, case| !case.accusers.is_empty());
        case.accusers.into_keys().collect()
    }

    /// Drops what has not been repeated.
    pub(super) fn forget(&mut self, now: Duration) {
        self.0.retain(|_, case| {
            case.accusers.retain(|_, claim| now < claim.until);
            !case.accusers.is_empty()
        });
    }

    /// When there is something to forget.
    pub(super) fn due(&self) -> Option<Duration> {
        let claims = self.0.values().flat_map(|case| case.accusers.values());
        claims.map(|claim| claim.until).min()
    }
}
