//! The PEs as a binary tree, so that what concerns all reaches all in O(log n) steps.

use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// Those to whom `me` passes on what comes down the tree of the living, of a job of `pes` PEs.
pub(super) fn children(me: Pe, pes: u32, dead: &BTreeSet<Pe>) -> impl Iterator<Item = Pe> {
    let living = living(pes, dead);
    let at = living.partition_point(|pe| *pe < me);
    let first = (2 * at + 1).min(living.len());
    let end = (2 * at + 3).min(living.len());
    living.into_iter().skip(first).take(end - first)
}

/// Whom `me` has it from. `None` for the root, which is the first of all that live.
pub(super) fn parent(me: Pe, pes: u32, dead: &BTreeSet<Pe>) -> Option<Pe> {
    let living = living(pes, dead);
    let at = living.partition_point(|pe| *pe < me);
    at.checked_sub(1).map(|n| living[n / 2])
}

fn living(pes: u32, dead: &BTreeSet<Pe>) -> Vec<Pe> {
    (0..pes).map(Pe::new).filter(|pe| !dead.contains(pe)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_alive_is_reached_once_and_soon() {
        for pes in 1..40 {
            for gap in 2..6 {
                let dead: BTreeSet<Pe> = (1..pes).filter(|n| n % gap == 1).map(Pe::new).collect();
                let mut reached = vec![Pe::ROOT];
                let mut front = vec![Pe::ROOT];
                for _ in 0..7 {
                    let next = |pe: &Pe| children(*pe, pes, &dead).map(|c| (*pe, c)).collect();
                    let next: Vec<Vec<_>> = front.iter().map(next).collect();
                    front = next
                        .concat()
                        .iter()
                        .map(|(above, pe)| {
                            assert_eq!(parent(*pe, pes, &dead), Some(*above));
                            *pe
                        })
                        .collect();
                    reached.extend(&front);
                }
                reached.sort_unstable();
                assert_eq!(reached, living(pes, &dead));
            }
        }
        assert_eq!(parent(Pe::ROOT, 3, &BTreeSet::new()), None);
    }
}
