//! How the members of a view tell each other something, and know that all have come: in round k
//! each speaks to the member 2^k behind it, of all that it has heard so far (a dissemination;
//! Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, 1988). Nobody is asked
//! twice, nobody waits for a master, and after ⌈log₂ n⌉ rounds each has heard of all.

use super::view::View;
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// A PE's place in a meeting. `F` is what it has heard.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Meeting<F> {
    round: u32,
    pub(super) facts: F,
}

/// What others have said in meetings before this PE was so far, by meeting and round.
pub(super) type Early<F> = BTreeMap<(u64, u32), F>;

impl<F: Clone> Meeting<F> {
    pub(super) fn begin(facts: F) -> Self {
        Meeting { round: 0, facts }
    }

    /// What this PE says in its round, if that is not the end.
    pub(super) fn words(&self, view: &View) -> Option<(Pe, u32, F)> {
        let far = 1usize << self.round;
        (far < view.len()).then(|| (view.behind(far), self.round, self.facts.clone()))
    }

    /// Goes on with what was said in this PE's round of a meeting, if that has come.
    pub(super) fn go_on(
        &mut self,
        number: u64,
        early: &mut Early<F>,
        merge: impl FnOnce(&mut F, F),
    ) -> bool {
        let Some(heard) = early.remove(&(number, self.round)) else { return false };
        merge(&mut self.facts, heard);
        self.round += 1;
        true
    }
}
