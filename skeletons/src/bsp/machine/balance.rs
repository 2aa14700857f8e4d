//! Ranks move from PEs that have much to do to others: between two supersteps, when the members
//! have told each other how long each rank took.
//!
//! That the busiest PE has much more to do than the idlest, all know from a meeting, since the
//! least and the most are two numbers. Only then do they tell each other of all ranks, in a meeting
//! of its own. From that, each finds the same new ranges; and if these are so much better that it
//! is worth it, all save their ranks and go on from that as after a death, in a view with the new
//! ranges. A death ends that view: then ranks are again where the dead alone say.

use super::meeting::Meeting;
use super::message::{Effect, Facts, MessageOf};
use super::{Kind, Machine, Phase, When};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::mem::take;

/// The times of ranks in nanoseconds, by the first rank of each PE.
pub(super) type Loads = BTreeMap<u32, Vec<u64>>;

/// The least and the most that a PE has computed, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Extremes {
    least: u64,
    most: u64,
}

impl Extremes {
    pub(super) fn add(&mut self, others: Extremes) {
        self.least = self.least.min(others.least);
        self.most = self.most.max(others.most);
    }

    /// Whether the busiest PE is busy for a quarter longer than the idlest, or more.
    fn are_far_apart(self) -> bool {
        self.most > self.least.saturating_add(self.least / 4)
    }
}

impl<K: Kind> Machine<K> {
    /// Says whether ranks are to move, if PEs are unevenly busy. The first PE counts. They do not
    /// if no checkpoints are kept in memory: what moves is saved there.
    pub fn set_weighing_due(&mut self, is_due: bool) {
        let has_copies = self.saving.in_memory && self.saving.when != When::Never;
        let can_move = self.ranks as usize > self.view.len() && self.view.len() > 1;
        self.reports.is_weighing_due = is_due && has_copies && can_move;
    }

    pub(super) fn extremes(&self) -> Extremes {
        let load = self.seats.values().map(|seat| seat.load).sum();
        Extremes { least: load, most: load }
    }

    /// Has the members tell each other of all ranks if that is due, and they are unevenly busy.
    /// Returns whether they do.
    pub(super) fn weigh_if_due(&mut self, facts: &Facts<K::Value>) -> bool {
        if !facts.is_weighing_due {
            return false;
        }
        let loads: Vec<u64> = self.seats.values_mut().map(|seat| take(&mut seat.load)).collect();
        self.reports.is_weighing_due = false;
        if !facts.extremes.are_far_apart() {
            self.say_weighed(None);
            return false;
        }
        let own = self.view.own();
        let loads = Loads::from_iter((!loads.is_empty()).then_some((own.start, loads)));
        self.phase = Phase::Weighing(Meeting::begin(loads));
        self.go_on_weighing();
        true
    }

    fn say_weighed(&mut self, shares: Option<[u64; 2]>) {
        if self.view.is_first() {
            self.effects.push(Effect::Weighed(shares));
        }
    }

    pub(super) fn go_on_weighing(&mut self) {
        let Phase::Weighing(meeting) = &mut self.phase else { return };
        let (effects, id, superstep) = (&mut self.effects, self.view.id, self.superstep);
        let say = |to, round, loads| {
            effects.push(Effect::Send(to, (id, MessageOf::Loads { superstep, round, loads })));
        };
        let (early, merge) =
            (&mut self.early_loads, |known: &mut Loads, heard| known.extend(heard));
        if let Some(loads) = meeting.go_on(&self.view, superstep, early, merge, say) {
            self.move_if_worth_it(&loads);
        }
    }

    fn move_if_worth_it(&mut self, loads: &Loads) {
        let found = divide(loads, self.view.len());
        self.say_weighed(Some(found.as_ref().map_or([0, 0], |(_, shares)| *shares)));
        let Some((bounds, _)) = found else { return self.compute(false) };
        self.moving = Some(bounds.into());
        self.compute(true);
    }

    /// Goes on with the new ranges, if this PE's ranks have been saved for that. Returns whether it
    /// does.
    pub(super) fn move_if_saved(&mut self) -> bool {
        let Some(bounds) = self.moving.take() else { return false };
        self.view = self.view.with_bounds(bounds);
        self.agree();
        true
    }
}

/// The first ranks of as many PEs, so that each has about as much to do as the others. Also the
/// times of the busiest PE as it is, and as it would be. `None`: it would not be a fifth less.
fn divide(loads: &Loads, pes: usize) -> Option<(Vec<u32>, [u64; 2])> {
    let was = loads.values().map(|loads| loads.iter().sum()).max().unwrap_or(0);
    let total: u128 = loads.values().flatten().map(|load| u128::from(*load)).sum();
    let (mut bounds, mut before) = (vec![0], 0_u128);
    let (mut busiest, mut share) = (0_u64, 0_u64);
    for (rank, load) in (0..).zip(loads.values().flatten()) {
        // A rank is of the PE in whose part of the whole its middle lies.
        let middle = before + u128::from(load / 2);
        while bounds.len() < pes && middle * pes as u128 >= total * bounds.len() as u128 {
            bounds.push(rank);
            busiest = busiest.max(take(&mut share));
        }
        share += load;
        before += u128::from(*load);
    }
    let end = loads.values().map(Vec::len).sum::<usize>() as u32;
    bounds.resize(pes, end);
    let will_be = busiest.max(share);
    (will_be < was - was / 5).then_some((bounds, [was, will_be]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loads(of_pes: &[&[u64]]) -> Loads {
        let mut first = 0;
        let pe = |loads: &&[u64]| {
            let entry = (first, loads.to_vec());
            first += loads.len() as u32;
            (!loads.is_empty()).then_some(entry)
        };
        of_pes.iter().filter_map(pe).collect()
    }

    #[test]
    fn ranks_are_divided_by_what_they_take() {
        let uneven = loads(&[&[6, 6, 6], &[1, 1, 1]]);
        assert_eq!(divide(&uneven, 2), Some((vec![0, 2], [18, 12])));
        assert_eq!(divide(&loads(&[&[5, 5], &[4, 5]]), 2), None, "it is even");
        assert_eq!(divide(&loads(&[&[9], &[1]]), 2), None, "there is nothing to move");
        assert_eq!(divide(&loads(&[&[0], &[0]]), 2), None);
        let one = loads(&[&[], &[3, 3, 3], &[]]);
        assert_eq!(divide(&one, 3), Some((vec![0, 1, 2], [9, 3])));
        let heavy = loads(&[&[1, 1, 9], &[1]]);
        assert_eq!(divide(&heavy, 4), None, "one rank takes most of it");
    }

    proptest! {
        #[test]
        fn each_rank_has_a_pe(
            of_pes in prop::collection::vec(prop::collection::vec(0..100_u64, 0..5), 1..8),
        ) {
            let of_pes: Vec<_> = of_pes.iter().map(Vec::as_slice).collect();
            if let Some((bounds, [was, will_be])) = divide(&loads(&of_pes), of_pes.len()) {
                let all = of_pes.concat();
                prop_assert_eq!(bounds.len(), of_pes.len());
                prop_assert!(bounds.is_sorted() && bounds[0] == 0);
                let ends = bounds[1..].iter().copied().chain([all.len() as u32]);
                let shares = bounds.iter().zip(ends);
                let share = |(from, to): (&u32, u32)| all[*from as usize..to as usize].iter().sum();
                prop_assert_eq!(shares.map(share).max(), Some(will_be));
                prop_assert!(will_be < was);
            }
        }
    }
}
