//! Which PE to ask for work, and to which PE to pass on a FISH.
//!
//! A thief first asks a PE nearby. A FISH that is passed on never comes nearer to the thief again:
//! it searches one ring around the thief after the other, outwards. Dead PEs are never asked.

use std::collections::BTreeSet;
use std::ops::Range;
use ultramarine_topology::{Distance, Pe, Topology};

/// One in this many FISHes skips a ring that it could still search. So the nearest ring is
/// favoured, but does not keep a FISH for all its hops.
const SKIP_ONE_IN: u64 = 4;

/// A random living PE other than `me` in the ball around `me`; `None` if there is none.
pub fn first_victim(
    topology: &Topology,
    dead: &BTreeSet<Pe>,
    me: Pe,
    radius: Distance,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    let ball = topology.ball(me, radius).numbers();
    pick(ball, me.number()..me.number() + 1, 0..0, dead, random)
}

/// A random living PE `v`, neither `me` nor `thief`, with `d(v, thief) ≥ d(me, thief)`, mostly in
/// the nearest ring around the thief that has one; `None` if there is none.
pub fn next_victim(
    topology: &Topology,
    dead: &BTreeSet<Pe>,
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
        pick(topology.ball(thief, radii[level]).numbers(), inner, myself, dead, random)
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

/// A random living PE in `all` that is neither in `hole` nor in `other`.
fn pick(
    all: Range<u32>,
    hole: Range<u32>,
    other: Range<u32>,
    dead: &BTreeSet<Pe>,
    random: &mut dyn FnMut() -> u64,
) -> Option<Pe> {
    let clip = |h: &Range<u32>| h.start.clamp(all.start, all.end)..h.end.clamp(all.start, all.end);
    let mut holes = [clip(&hole), clip(&other)];
    holes.sort_by_key(|h| h.start);
    let is_in_hole = |number: u32| holes.iter().any(|h| h.contains(&number));
    let dead = || {
        let within = dead.range(Pe::new(all.start)..Pe::new(all.end));
        within.map(|pe| pe.number()).filter(|number| !is_in_hole(*number))
    };
    let removed = holes.iter().map(|h| h.end - h.start).sum::<u32>() + dead().count() as u32;
    let candidates = (all.end - all.start).checked_sub(removed).filter(|n| *n > 0)?;
    // Counts the living from below: each hole at or below the number moves it up.
    let mut number = all.start + (random() % u64::from(candidates)) as u32;
    let mut holes = holes.iter().cloned().peekable();
    let mut dead = dead().map(|n| n..n + 1).peekable();
    loop {
        let next = match (holes.peek(), dead.peek()) {
            (Some(h), Some(d)) if d.start < h.start => dead.next(),
            (Some(_), _) => holes.next(),
            (None, _) => dead.next(),
        };
        match next {
            Some(gap) if number >= gap.start => number += gap.end - gap.start,
            Some(_) => {}
            None => return Some(Pe::new(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let near =
            chosen(|random| first_victim(&topology, &BTreeSet::new(), Pe::new(3), quarter, random));
        assert_eq!(near.keys().copied().collect::<Vec<_>>(), [2]);
        let rack = chosen(|random| {
            first_victim(&topology, &BTreeSet::new(), Pe::new(3), Distance::ONE.half(), random)
        });
        assert_eq!(rack.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(rack.values().all(|n| *n > 1000), "uniform: {rack:?}");
        assert!(
            chosen(|random| first_victim(
                &topology,
                &BTreeSet::new(),
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
            next_victim(&topology, &BTreeSet::new(), Pe::new(1), Pe::new(0), random)
        });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
        let rack: u32 = counts.range(2..4).map(|(_, n)| n).sum();
        assert!((2800..3200).contains(&rack), "3 of 4: {counts:?}");
        // Me in the other rack: only that rack, never nearer again.
        let counts = chosen(|random| {
            next_victim(&topology, &BTreeSet::new(), Pe::new(6), Pe::new(0), random)
        });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4, 5, 7]);
    }

    #[test]
    fn of_two_pes_neither_passes_a_fish_on() {
        let topology = Topology::flat(2);
        assert!(
            chosen(|random| next_victim(
                &topology,
                &BTreeSet::new(),
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
        let dead: BTreeSet<Pe> = [1, 2, 5, 7].map(Pe::new).into();
        let first =
            chosen(|random| first_victim(&topology, &dead, Pe::new(3), Distance::ONE, random));
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [0, 4, 6]);
        assert!(first.values().all(|n| *n > 1000), "uniform: {first:?}");
        let next = chosen(|random| next_victim(&topology, &dead, Pe::new(3), Pe::new(0), random));
        assert_eq!(next.keys().copied().collect::<Vec<_>>(), [4, 6]);
        let alone: BTreeSet<Pe> = (0..8).filter(|n| *n != 3).map(Pe::new).collect();
        assert!(
            chosen(|random| first_victim(&topology, &alone, Pe::new(3), Distance::ONE, random))
                .is_empty()
        );
    }
}
