//! The graph of the pools: which PEs tell each other of their load, and push nodes to each other.

use std::collections::BTreeSet;
use ultramarine_topology::{Pe, Topology};

/// The neighbours of a PE, once these are dead. In each ball around it, from its host to the whole
/// job: its counterparts in the parts 1, 2, 4, … further on and back, counted round. So each PE has
/// a number of neighbours that grows with the logarithm of the number of PEs, most of them near;
/// and what is pushed on a few times can come to any PE. The place of a dead one has the next that
/// lives.
pub(super) fn neighbours(me: Pe, topology: &Topology, dead: &BTreeSet<Pe>) -> Vec<Pe> {
    let mut all = BTreeSet::new();
    let mut part = 1;
    // The first is that of the PE alone.
    for radius in topology.radii().iter().skip(1) {
        let ball = topology.ball(me, *radius).numbers();
        let whole = ball.len() as u32;
        let mut step = part;
        while step < whole {
            for step in [step, whole - step] {
                let at = |more: u32| {
                    let place = (me.number() - ball.start + step + more) % whole;
                    Pe::new(ball.start + place)
                };
                let lives = |pe: &Pe| *pe != me && !dead.contains(pe);
                all.extend((0..whole).map(at).find(lives));
            }
            step *= 2;
        }
        part = whole;
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_topology::{LevelKind::Host, Place};

    #[test]
    fn neighbours_are_near_and_few() {
        let hosts = (0..64).map(|pe| Place::from_pairs([(Host, ["a", "b"][pe / 32])]));
        let topology = Topology::new(&hosts.collect::<Vec<_>>(), &[1; 64]).unwrap();
        let of = |me: u32, dead: &[u32]| {
            let dead = dead.iter().copied().map(Pe::new).collect();
            let all = neighbours(Pe::new(me), &topology, &dead);
            all.into_iter().map(Pe::number).collect::<Vec<_>>()
        };
        assert_eq!(of(3, &[]), [1, 2, 4, 5, 7, 11, 19, 27, 31, 35]);
        assert_eq!(of(3, &[4, 35]), [1, 2, 5, 7, 11, 19, 27, 31, 36]);
        for (pe, other) in (0..64).flat_map(|pe| of(pe, &[]).into_iter().map(move |o| (pe, o))) {
            assert!(of(other, &[]).contains(&pe), "{pe} and {other} are neighbours of each other");
        }
        let lonely = Topology::flat(1);
        assert_eq!(neighbours(Pe::ROOT, &lonely, &BTreeSet::new()), []);
    }
}
