//! Which PE to ask for work, and to which PE to pass on a FISH.
//!
//! A thief first asks a PE nearby. A FISH that is passed on never comes nearer to the thief again:
//! it searches one ring around the thief after the other, outwards. Dead PEs are never asked.

use super::membership::Living;
use std::ops::Range;
use ultramarine_topology::{Distance, Pe, Topology};

/// One in this many FISHes skips a ring that it could still search. So the nearest ring is
/// favoured, but does not keep a FISH for all its hops.
const SKIP_ONE_IN: u64 = 4;

/// A random living PE other than `me` in the ball around `me`; `None` if there is none.
pub fn first_victim(
    topology: &Topology,
    living: &Living,
    me: Pe,
    radius: Distance,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    let ball = topology.ball(me, radius).numbers();
    pick(ball, me.number()..me.number() + 1, 0..0, living, random)
}

/// A random living PE `v`, neither `me` nor `thief`, with `d(v, thief) ≥ d(me, thief)`, mostly in
/// the nearest ring around the thief that has one; `None` if there is none.
pub fn next_victim(
    topology: &Topology,
    living: &Living,
    me: Pe,
    thief: Pe,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    let radii = topology.radii();
    let nearest = radii.partition_point(|r| *r < topology.distance(me, thief));
    let ring = |level: usize, random: &mut dyn FnMut() -> u64| {
        let inner = topology.ball(thief, radii[level - 1]).numbers();
        // In the outer rings `me` is inside the hole already.
        let myself = if inner.contains(&me.number()) { 0..0 } else { me.number()..me.number() + 1 };
        pick(topology.ball(thief, radii[level]).numbers(), inner, myself, living, random)
    };
    let mut found = None;
    for level in nearest.max(1)..radii.len() {
        found = ring(level, random).or(found);
        if found.is_some() && !random().is_multiple_of(SKIP_ONE_IN) {
            break;
        }
    }
    found
}

/// A random living PE in `all` that is neither in `hole` nor in `other`, which do not overlap.
fn pick(
    all: Range<u32>,
    hole: Range<u32>,
    other: Range<u32>,
    living: &Living,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    // In the row of the living PEs, all three are ranges as well.
    let row = |numbers: &Range<u32>| {
        let within = |number: u32| living.count_below(number.clamp(all.start, all.end));
        within(numbers.start)..within(numbers.end)
    };
    let (row, mut holes) = (row(&all), [row(&hole), row(&other)]);
    holes.sort_by_key(|hole| hole.start);
    let removed = holes.iter().map(|hole| hole.end - hole.start).sum::<u32>();
    let candidates = (row.end - row.start).checked_sub(removed).filter(|count| *count > 0)?;
    // Each hole at or below the index moves it up.
    let drawn = row.start + (random() % u64::from(candidates)) as u32;
    let index = holes.iter().fold(drawn, |index, hole| {
        if index >= hole.start { index + (hole.end - hole.start) } else { index }
    });
    living.at(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use ultramarine_topology::{Label, LevelKind, Place};

    /// Two racks of two hosts of two PEs.
    fn eight_pes() -> Topology {
        let place = |n: u32| {
            Place::new(vec![
                Label::new(LevelKind::Switch, format!("r{}", n / 4)),
                Label::new(LevelKind::Host, format!("h{}", n / 2)),
            ])
        };
        Topology::new(&(0..8).map(place).collect::<Vec<_>>(), &[1; 8]).expect("consistent")
    }

    fn all_of(topology: &Topology) -> Living {
        Living::new(topology.pes(), &[])
    }

    proptest! {
        #[test]
        fn each_that_may_be_picked_is_picked_by_one_number(
            dead in prop::collection::btree_set(0..40_u32, 0..40),
            mut ends in prop::collection::vec(0..45_u32, 4),
            all in (0..40_u32, 0..40_u32),
            is_first: bool,
        ) {
            ends.sort_unstable();
            let [mut hole, mut other] = [ends[0]..ends[1], ends[2]..ends[3]];
            if is_first {
                std::mem::swap(&mut hole, &mut other);
            }
            let all = all.0.min(all.1)..all.0.max(all.1);
            let list: Vec<Pe> = dead.iter().copied().map(Pe::new).collect();
            let living = Living::new(40, &list);
            let may = |n: &u32| !hole.contains(n) && !other.contains(n) && !dead.contains(n);
            let candidates: Vec<u32> = all.clone().filter(may).collect();
            let picked = |number| {
                let (hole, other) = (hole.clone(), other.clone());
                pick(all.clone(), hole, other, &living, &mut || number).map(Pe::number)
            };
            let each: Vec<u32> = (0..candidates.len() as u64).filter_map(picked).collect();
            prop_assert_eq!(each, candidates.clone());
            prop_assert_eq!(picked(7).is_some(), !candidates.is_empty());
        }
    }

    fn chosen(mut choose: impl FnMut(&mut dyn FnMut() -> u64) -> Option<Pe>) -> BTreeMap<u32, u32> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let mut counts = BTreeMap::new();
        for _ in 0..4000 {
            if let Some(pe) = choose(&mut random) {
                *counts.entry(pe.number()).or_insert(0) += 1;
            }
        }
        counts
    }

    #[test]
    fn the_first_victim_is_anyone_else_in_the_ball() {
        let topology = eight_pes();
        let quarter = Distance::ONE.half().half();
        let near = chosen(|random| {
            first_victim(&topology, &all_of(&topology), Pe::new(3), quarter, random)
        });
        assert_eq!(near.keys().copied().collect::<Vec<_>>(), [2]);
        let rack = chosen(|random| {
            first_victim(&topology, &all_of(&topology), Pe::new(3), Distance::ONE.half(), random)
        });
        assert_eq!(rack.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(rack.values().all(|n| *n > 1000), "uniform: {rack:?}");
        assert!(
            chosen(|random| first_victim(
                &topology,
                &all_of(&topology),
                Pe::new(3),
                Distance::ZERO,
                random
            ))
            .is_empty()
        );
    }

    #[test]
    fn a_fish_moves_outwards_and_favours_the_nearest_ring() {
        let topology = eight_pes();
        // Me on the same host as the thief: all others qualify, the rest of the rack most often.
        let counts = chosen(|random| {
            next_victim(&topology, &all_of(&topology), Pe::new(1), Pe::new(0), random)
        });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
        let rack: u32 = counts.range(2..4).map(|(_, n)| n).sum();
        assert!((2800..3200).contains(&rack), "3 of 4: {counts:?}");
        // Me in the other rack: only that rack, never nearer again.
        let counts = chosen(|random| {
            next_victim(&topology, &all_of(&topology), Pe::new(6), Pe::new(0), random)
        });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4, 5, 7]);
    }

    #[test]
    fn of_two_pes_neither_passes_a_fish_on() {
        let topology = Topology::flat(2);
        assert!(
            chosen(|random| next_victim(
                &topology,
                &all_of(&topology),
                Pe::new(1),
                Pe::new(0),
                random
            ))
            .is_empty()
        );
    }

    #[test]
    fn the_dead_are_never_chosen_and_the_living_evenly() {
        let topology = eight_pes();
        let living = Living::new(8, &[1, 2, 5, 7].map(Pe::new));
        let first =
            chosen(|random| first_victim(&topology, &living, Pe::new(3), Distance::ONE, random));
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [0, 4, 6]);
        assert!(first.values().all(|n| *n > 1000), "uniform: {first:?}");
        let next = chosen(|random| next_victim(&topology, &living, Pe::new(3), Pe::new(0), random));
        assert_eq!(next.keys().copied().collect::<Vec<_>>(), [4, 6]);
        let others: Vec<Pe> = (0..8).filter(|n| *n != 3).map(Pe::new).collect();
        let alone = Living::new(8, &others);
        assert!(
            chosen(|random| first_victim(&topology, &alone, Pe::new(3), Distance::ONE, random))
                .is_empty()
        );
    }
}
