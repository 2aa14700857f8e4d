//! Which PE owns which node: a pure function of the graph and the PEs, so that all agree.

use super::block::Block;
use super::handles::NodeId;
use ultramarine_topology::Pe;

/// The cyclic recursive assignment (Leliveld, listing 3.7). The wanted nodes are owned by the PEs
/// in turn, beginning with PE 1. A node's first input is owned by the same PE as the node, so that
/// the result need not be sent, and each further input by the next PE. A node that several need is
/// owned by the PE that its first reader, from the left, would have.
///
/// A node that no wanted one needs is owned by the root.
pub(super) fn cyclic(block: &Block, wanted: &[NodeId], pes: u32) -> Vec<Pe> {
    let mut owners = vec![None; block.len() as usize];
    // What is still to be visited, the leftmost last.
    let mut stack: Vec<(u32, u32)> = Vec::new();
    let rotated = |pe: u32, by: usize| ((u64::from(pe) + by as u64) % u64::from(pes)) as u32;
    stack.extend(wanted.iter().enumerate().rev().map(|(at, node)| (node.index, rotated(1, at))));
    while let Some((index, pe)) = stack.pop() {
        let owner = &mut owners[index as usize];
        if owner.is_none() {
            *owner = Some(Pe::new(pe));
            let begin = stack.len();
            let inputs = block.inputs(index).enumerate();
            stack.extend(inputs.map(|(at, input)| (input.index, rotated(pe, at))));
            stack[begin..].reverse();
        }
    }
    owners.into_iter().map(|owner| owner.unwrap_or(Pe::ROOT)).collect()
}

/// The heir of a PE: itself while it lives, else the next that does, counted round (Leliveld,
/// §4.1). It depends on the set of the dead only, so the order of deaths does not matter.
pub(super) fn heir(of: Pe, pes: u32, is_dead: impl Fn(Pe) -> bool) -> Pe {
    let order = (of.number()..pes).chain(0..of.number()).map(Pe::new);
    order.into_iter().find(|pe| !is_dead(*pe)).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Builder;

    #[test]
    fn inputs_are_spread_and_the_first_stays() {
        let mut g = Builder::new(0);
        let sources: Vec<_> = (0..4_u64).map(|n| g.source(|n| *n, n)).collect();
        let map = g.map(|(), n: &u64| *n, (), sources[1]);
        let sum = |(): &(), all: &[&u64]| all.iter().copied().sum::<u64>();
        let all = g.reduce(sum, (), [sources[0], map, sources[2], sources[0]]);
        let block = g.finish();
        let owners = cyclic(&block, &[all.id()], 3);
        // The reduction and its first input; the map and its input; the third; an unneeded one.
        assert_eq!(owners, [1, 2, 0, 0, 2, 1].map(Pe::new));
    }

    #[test]
    fn the_heir_is_the_next_that_lives() {
        let heir = |of, dead: &[u32]| heir(Pe::new(of), 4, |pe| dead.contains(&pe.number()));
        assert_eq!(heir(1, &[]), Pe::new(1));
        assert_eq!(heir(1, &[1, 2]), Pe::new(3));
        assert_eq!(heir(3, &[3, 0]), Pe::new(1));
    }
}
