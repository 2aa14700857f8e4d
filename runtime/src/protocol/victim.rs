//! Which PE to ask for work, and to which PE to pass on a FISH.
//!
//! A thief first asks a PE nearby. A FISH that is passed on never comes nearer to the thief again:
//! it searches one ring around the thief after the other, outwards. Dead PEs are never asked.
//!
//! In a large ball a PE asks only some, its *acquaintances*, always the same. They are drawn by a
//! hash, and make a random graph of degree 16 on the ball: after a few hops a FISH may be anywhere
//! (Hoory, Linial and Wigderson, Expander graphs and their applications, 2006).
//!
//! So there are few that a PE asks, but more with which it has a stream: the answer to a FISH comes
//! straight from the last PE that was asked, which may be any. In simulated jobs of half a second a
//! PE has spoken to about 100 others of 1,024, and to 120 to 180 of 32,768. In longer jobs these
//! are more: after 40 s 190 to 900 of 1,024 (docs/ARCHITECTURE.md, What grows with the number of
//! PEs).

use super::membership::Living;
use std::ops::Range;
use ultramarine_topology::{Distance, Pe, Topology};

/// One in this many FISHes skips a ring that it could still search. So the nearest ring is
/// favoured, but does not keep a FISH for all its hops.
const SKIP_ONE_IN: u64 = 4;

/// The number of acquaintances of a PE in a ball of more than [`SMALL_BALL`] PEs.
const ACQUAINTANCES: u64 = 16;

/// In a ball of this many PEs or fewer a PE may ask any.
const SMALL_BALL: u32 = 64;

/// The number of draws for an acquaintance that lives and is in the ring, before any other PE of
/// the ring may be asked. (With as many draws as acquaintances, a PE whose friends had died was
/// asked by none: in a job that lost 585 of 992 PEs, tasks that only idle thieves may have waited
/// 2 s each.)
const DRAWS: u32 = 4;

/// A random living PE other than `me` in the ball around `me`; `None` if there is none.
pub fn first_victim(
    topology: &Topology,
    living: &Living,
    me: Pe,
    radius: Distance,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    let ball = topology.ball(me, radius).numbers();
    pick(me, ball, me.number()..me.number() + 1, 0..0, living, random)
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
        pick(me, topology.ball(thief, radii[level]).numbers(), inner, myself, living, random)
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

/// A random living PE in `all` that is neither in `hole` nor in `other`, which do not overlap. If
/// `all` is a large ball, mostly an acquaintance of `me`.
fn pick(
    me: Pe,
    all: Range<u32>,
    hole: Range<u32>,
    other: Range<u32>,
    living: &Living,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    if all.end - all.start > SMALL_BALL {
        for _ in 0..DRAWS {
            let drawn = acquaintance(me, &all, random() % ACQUAINTANCES);
            let number = drawn.number();
            if !hole.contains(&number) && !other.contains(&number) && living.contains(drawn) {
                return Some(drawn);
            }
        }
    }
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

/// The acquaintance of `me` with this number in a ball: each PE is as likely as any other. (Mixed
/// as by `splitmix64`, Steele, Lea and Flood 2014.)
fn acquaintance(me: Pe, ball: &Range<u32>, which: u64) -> Pe {
    let size = u64::from(ball.end - ball.start);
    let seed = u64::from(me.number()) << 32 ^ size << 8 ^ which;
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ mixed >> 31;
    Pe::new(ball.start + (((mixed >> 32) * size) >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::world::eight;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

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
                pick(Pe::ROOT, all.clone(), hole, other, &living, &mut || number).map(Pe::number)
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

    /// How often a thief asks each PE first.
    fn first(
        topology: &Topology,
        living: &Living,
        me: u32,
        radius: Distance,
    ) -> BTreeMap<u32, u32> {
        chosen(|random| first_victim(topology, living, Pe::new(me), radius, random))
    }

    /// How often a PE passes a thief's FISH on to each.
    fn next(topology: &Topology, living: &Living, me: u32, thief: u32) -> BTreeMap<u32, u32> {
        chosen(|random| next_victim(topology, living, Pe::new(me), Pe::new(thief), random))
    }

    fn pes(counts: &BTreeMap<u32, u32>) -> Vec<u32> {
        counts.keys().copied().collect()
    }

    #[test]
    fn the_first_victim_is_anyone_else_in_the_ball() {
        let (topology, half) = (eight(), Distance::ONE.half());
        let first = |radius| first(&topology, &all_of(&topology), 3, radius);
        assert_eq!(pes(&first(half.half())), [2]);
        let rack = first(half);
        assert_eq!(pes(&rack), [0, 1, 2]);
        assert!(rack.values().all(|n| *n > 1000), "uniform: {rack:?}");
        assert!(first(Distance::ZERO).is_empty());
    }

    #[test]
    fn a_fish_moves_outwards_and_favours_the_nearest_ring() {
        let topology = eight();
        let next = |me| next(&topology, &all_of(&topology), me, 0);
        // Me on the same host as the thief: all others qualify, the rest of the rack most often.
        let counts = next(1);
        assert_eq!(pes(&counts), [2, 3, 4, 5, 6, 7]);
        let rack: u32 = counts.range(2..4).map(|(_, n)| n).sum();
        assert!((2800..3200).contains(&rack), "3 of 4: {counts:?}");
        // Me in the other rack: only that rack, never nearer again.
        assert_eq!(pes(&next(6)), [4, 5, 7]);
    }

    #[test]
    fn of_two_pes_neither_passes_a_fish_on() {
        let topology = Topology::flat(2);
        assert!(next(&topology, &all_of(&topology), 1, 0).is_empty());
    }

    #[test]
    fn the_dead_are_never_chosen_and_the_living_evenly() {
        let topology = eight();
        let living = Living::new(8, &[1, 2, 5, 7].map(Pe::new));
        let counts = first(&topology, &living, 3, Distance::ONE);
        assert_eq!(pes(&counts), [0, 4, 6]);
        assert!(counts.values().all(|n| *n > 1000), "uniform: {counts:?}");
        assert_eq!(pes(&next(&topology, &living, 3, 0)), [4, 6]);
        let others: Vec<Pe> = (0..8).filter(|n| *n != 3).map(Pe::new).collect();
        assert!(first(&topology, &Living::new(8, &others), 3, Distance::ONE).is_empty());
    }

    #[test]
    fn in_a_large_ball_a_pe_asks_its_acquaintances_only_and_they_connect_all() {
        const PES: u32 = 2000;
        let topology = Topology::flat(PES);
        let asked_by =
            |me: Pe, living: &Living| pes(&first(&topology, living, me.number(), Distance::ONE));
        let all = all_of(&topology);
        let (mut reached, mut last) = (vec![false; PES as usize], vec![0]);
        while let Some(me) = last.pop() {
            if !std::mem::replace(&mut reached[me as usize], true) {
                let asked = asked_by(Pe::new(me), &all);
                assert!((12..=ACQUAINTANCES as usize).contains(&asked.len()), "{asked:?}");
                last.extend(asked);
            }
        }
        assert!(reached.iter().all(|is_reached| *is_reached), "the graph is connected");
        let me = Pe::new(7);
        let friends: Vec<Pe> = asked_by(me, &all).into_iter().map(Pe::new).collect();
        let some_dead = asked_by(me, &Living::new(PES, &friends[1..]));
        assert!(some_dead.contains(&friends[0].number()));
        assert!(friends[1..].iter().all(|dead| !some_dead.contains(&dead.number())));
        // One that is no friend of any living PE is asked, too, and not only by those that have no
        // friends left.
        let many_dead: Vec<Pe> = (0..PES).filter(|n| n % 4 != 0).map(Pe::new).collect();
        let few = Living::new(PES, &many_dead);
        let has_friends = |me: &Pe| asked_by(*me, &all).iter().any(|n| few.contains(Pe::new(*n)));
        let askers = (0..PES).step_by(4).map(Pe::new).filter(has_friends);
        let asked: BTreeSet<u32> = askers.flat_map(|me| asked_by(me, &few)).collect();
        assert_eq!(asked.len(), PES as usize / 4);
        let all_dead = asked_by(me, &Living::new(PES, &friends));
        assert!(all_dead.len() > 100, "if they are all dead, any other is asked");
    }
}
