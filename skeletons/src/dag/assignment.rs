//! Which PE owns which node: a pure function of the graph and the PEs, so that all agree.

use super::block::Block;
use super::handles::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use ultramarine_topology::{Pe, Topology};

/// How nodes are assigned to PEs. A node that was [placed](super::Builder::place) is where it was
/// placed all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Assignment {
    /// The nodes are divided into levels, by the longest path that leads to them from a node
    /// without inputs. Each level is divided among the PEs in their order, in proportion to their
    /// cores. So all PEs have work at each step; and nodes that were built one after the other,
    /// which often belong together, are on the same PE, or on PEs of the same host or rack.
    ///
    /// Of a graph that is built [in blocks](super::Dag::blocks), blocks are divided so.
    #[default]
    Levels,
    /// The cyclic recursive assignment (Leliveld, listing 3.7): a node's first input is computed
    /// where the node is, so that the result need not be sent, and each further input on the next
    /// PE. It knows nothing of hosts and cores.
    ///
    /// Of a graph that is built in blocks, each block has the next PE, in proportion to cores. So
    /// have those of a stream, with any assignment.
    Cyclic,
}

/// The owners of all nodes, as long as no PE dies.
pub(super) enum Owners {
    /// Those of the nodes of the only block, among PEs whose numbers have 16 bits: there may be
    /// 10^8 nodes.
    NodesOfFew(Vec<u16>),
    /// The same, among more PEs.
    Nodes(Vec<Pe>),
    /// Each block has one owner.
    Blocks {
        /// The cores of each PE and of those before it.
        ends: Vec<u64>,
        /// The number of blocks, if they are divided in order. Else they are dealt in turn.
        in_order: Option<u32>,
    },
}

impl Owners {
    pub(super) fn of_nodes(owners: Vec<Pe>) -> Self {
        let few = owners.iter().map(|pe| u16::try_from(pe.number()));
        match few.collect() {
            Ok(few) => Owners::NodesOfFew(few),
            Err(_) => Owners::Nodes(owners),
        }
    }

    pub(super) fn owner(&self, node: NodeId) -> Pe {
        match self {
            Owners::NodesOfFew(owners) => {
                Pe::new(owners.get(node.index as usize).copied().unwrap_or(0).into())
            }
            Owners::Nodes(owners) => owners.get(node.index as usize).copied().unwrap_or(Pe::ROOT),
            Owners::Blocks { ends, in_order } => {
                let (block, all) = (u128::from(node.block), u128::from(cores_of(ends)));
                let core = match in_order {
                    Some(blocks) => (2 * block + 1) * all / (2 * u128::from(*blocks)),
                    None => block % all,
                };
                owner_of_core(ends, core as u64)
            }
        }
    }
}

/// The cores of each PE and of those before it.
pub(super) fn ends(cores: &[u64]) -> Vec<u64> {
    let add = |sum: &mut u64, cores: &u64| {
        *sum += cores;
        Some(*sum)
    };
    cores.iter().scan(0, add).collect()
}

fn cores_of(ends: &[u64]) -> u64 {
    ends.last().copied().unwrap_or(1)
}

fn owner_of_core(ends: &[u64], core: u64) -> Pe {
    Pe::new(ends.partition_point(|end| *end <= core) as u32)
}

impl Assignment {
    /// The owner of each node, among PEs that have these numbers of cores.
    pub(super) fn owners(self, block: &Block, wanted: &[NodeId], cores: &[u64]) -> Vec<Pe> {
        let mut owners = match self {
            Assignment::Levels => levels(block, cores),
            Assignment::Cyclic => cyclic(block, wanted, cores.len() as u32),
        };
        for (index, pe) in block.placed() {
            // The builder has been told how many PEs there are.
            owners[index as usize] = pe;
        }
        owners
    }
}

/// See [`Assignment::Levels`]. A node that no wanted one needs counts as the others do.
fn levels(block: &Block, cores: &[u64]) -> Vec<Pe> {
    let mut level: Vec<u32> = Vec::with_capacity(block.len() as usize);
    let mut widths: Vec<u64> = Vec::new();
    for index in 0..block.len() {
        let own = block.inputs(index).map(|input| level[input.index as usize] + 1).max();
        let own = own.unwrap_or(0);
        level.push(own);
        widths.resize(widths.len().max(own as usize + 1), 0);
        widths[own as usize] += 1;
    }
    let ends = ends(cores);
    let all = u128::from(cores_of(&ends));
    let mut seen = vec![0_u64; widths.len()];
    level
        .into_iter()
        .map(|level| level as usize)
        .map(|level| {
            let (place, width) = (u128::from(seen[level]), u128::from(widths[level]));
            seen[level] += 1;
            // The middle of the node's part of the level, in cores.
            owner_of_core(&ends, ((2 * place + 1) * all / (2 * width)) as u64)
        })
        .collect()
}

/// See [`Assignment::Cyclic`]. The wanted nodes are owned by the PEs in turn, beginning with PE 1.
/// A node that several need is owned by the PE that its first reader, from the left, would have. A
/// node that no wanted one needs is owned by the root.
fn cyclic(block: &Block, wanted: &[NodeId], pes: u32) -> Vec<Pe> {
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

/// The heir of a PE: itself while it lives, else the next that does, counted round, of the smallest
/// ball around it in which any does: of its host, else of its rack, and so on (Leliveld, §4.1, has
/// the next). It depends on the set of the dead only, so the order of deaths does not matter.
pub(super) fn heir(of: Pe, topology: &Topology, dead: &BTreeSet<Pe>) -> Pe {
    let lives = |pe: &Pe| !dead.contains(pe);
    let next = |numbers: std::ops::Range<u32>| {
        let mut round = (of.number()..numbers.end).chain(numbers.start..of.number()).map(Pe::new);
        round.find(lives)
    };
    let balls = topology.radii().iter().map(|radius| topology.ball(of, *radius).numbers());
    if lives(&of) { of } else { balls.into_iter().find_map(next).unwrap_or(of) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Builder;
    use ultramarine_topology::{LevelKind, Place};

    #[test]
    fn inputs_are_spread_and_the_first_stays() {
        let mut g = Builder::new(0, 3);
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
    fn each_level_is_divided_by_cores_in_order() {
        let mut g = Builder::new(0, 3);
        let leaves: Vec<_> = (0..8_u64).map(|n| g.source(|n| *n, n)).collect();
        let sum = |(): &(), all: &[&u64]| all.iter().copied().sum::<u64>();
        let root = g.reduce_tree(sum, (), 2, leaves.iter().copied()).unwrap();
        let (last, far) = (leaves[7], g.source(|n| *n, 8));
        g.place(far, 1);
        let block = g.finish();
        let owners = Assignment::Levels.owners(&block, &[root.id()], &[1, 1, 2]);
        let of = |range: std::ops::Range<usize>| {
            owners[range].iter().map(|pe| pe.number()).collect::<Vec<_>>()
        };
        assert_eq!(of(0..8), [0, 0, 1, 1, 2, 2, 2, 2]);
        assert_eq!(of(8..12), [0, 1, 2, 2], "above their inputs");
        assert_eq!(of(12..15), [1, 2, 2]);
        assert_eq!(owners[far.id().index as usize], Pe::new(1));
        assert_eq!(owners[last.id().index as usize], Pe::new(2));
    }

    #[test]
    fn the_heir_is_the_next_that_lives_of_the_same_host_first() {
        let hosts = ["a", "a", "b", "b"].map(|host| Place::from_pairs([(LevelKind::Host, host)]));
        let topology = Topology::new(&hosts, &[1; 4]).unwrap();
        let heir = |of, dead: &[u32]| {
            heir(Pe::new(of), &topology, &dead.iter().copied().map(Pe::new).collect()).number()
        };
        assert_eq!(heir(1, &[]), 1);
        assert_eq!(heir(1, &[1]), 0);
        assert_eq!(heir(1, &[0, 1]), 2);
        assert_eq!(heir(2, &[0, 2, 3]), 1);
        assert_eq!(heir(2, &[2, 3, 1]), 0);
    }

    #[test]
    fn blocks_are_divided_in_order_or_dealt_in_turn() {
        let of = |in_order, blocks: std::ops::Range<u32>| {
            let owners = Owners::Blocks { ends: ends(&[1, 2]), in_order };
            blocks
                .map(|block| owners.owner(NodeId { block, index: 7 }).number())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Some(6), 0..6), [0, 0, 1, 1, 1, 1]);
        assert_eq!(of(None, 5..9), [1, 0, 1, 1]);
    }
}
