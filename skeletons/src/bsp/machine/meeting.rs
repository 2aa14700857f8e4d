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
    /// Whether it has said what it has to in this round.
    has_spoken: bool,
    facts: F,
}

/// What others have said in meetings before this PE was so far, by meeting and round.
pub(super) type Early<F> = BTreeMap<(u64, u32), F>;

impl<F: Clone> Meeting<F> {
    pub(super) fn begin(facts: F) -> Self {
        Meeting { round: 0, has_spoken: false, facts }
    }

    /// Says what is to be said, as far as that follows from what others have said in this meeting.
    /// Returns what all have said, at the end.
    pub(super) fn go_on(
        &mut self,
        view: &View,
        number: u64,
        early: &mut Early<F>,
        mut merge: impl FnMut(&mut F, F),
        mut say: impl FnMut(Pe, u32, F),
    ) -> Option<F> {
        loop {
            let far = 1usize << self.round;
            if far >= view.len() {
                return Some(self.facts.clone());
            }
            if !std::mem::replace(&mut self.has_spoken, true) {
                say(view.behind(far), self.round, self.facts.clone());
            }
            merge(&mut self.facts, early.remove(&(number, self.round))?);
            self.round += 1;
            self.has_spoken = false;
        }
    }
}
