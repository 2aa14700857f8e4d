//! Making the table: the tree of labels, its distances, and the numbers of PEs.

use super::{DEPTH_LIMIT, Node, NodeId, Topology};
use crate::{Ball, Distance, Label, Pe, Place};
use std::borrow::Borrow;
use std::collections::HashMap;

/// The tree of labels while it is being made into a table.
pub(super) struct Builder<'a, P> {
    places: &'a [P],
    powers: &'a [u64],
    tree: Vec<Branch>,
    /// By depth: the distance between PEs that part there.
    distances: Vec<Distance>,
    topology: Topology,
}

/// A node of the full tree, one per distinct beginning of a place.
struct Branch {
    depth: usize,
    /// By smallest rank, since ranks are entered in order.
    children: Vec<Child>,
}

#[derive(Clone, Copy)]
enum Child {
    Branch(usize),
    Pe { rank: u32 },
}

impl<'a, P: Borrow<Place>> Builder<'a, P> {
    pub(super) fn new(places: &'a [P], powers: &'a [u64]) -> Self {
        let tree = grow(places);
        let (distances, radii) = measure(&tree);
        let pes = places.len();
        let topology = Topology {
            nodes: Vec::new(),
            node_of_pe: Vec::with_capacity(pes),
            rank_of_pe: Vec::with_capacity(pes),
            pe_of_rank: vec![Pe::ROOT; pes],
            power_before: vec![0],
            radii,
            places: Vec::new(),
            place_of_pe: Vec::with_capacity(pes),
        };
        Builder { places, powers, tree, distances, topology }
    }

    pub(super) fn build(mut self) -> Topology {
        self.number(0, None);
        self.topology
    }

    /// Numbers the PEs below `branch`, the lowest node kept above which is `parent`. Recurses as
    /// deep as places are, which is limited.
    fn number(&mut self, branch: usize, parent: Option<NodeId>) {
        let Branch { depth, ref mut children } = self.tree[branch];
        let children = std::mem::take(children);
        let first = self.topology.pes();
        let kept = (children.len() > 1).then(|| {
            let id = self.topology.nodes.len() as NodeId;
            let (ball, distance) = (Ball::new(first, first + 1), self.distances[depth]);
            self.topology.nodes.push(Node { ball, distance, depth, parent });
            id
        });
        // The place of the PEs right below, entered when the first of them is met.
        let mut place = None;
        for child in children {
            match child {
                Child::Branch(below) => self.number(below, kept.or(parent)),
                Child::Pe { rank } => {
                    let place = *place.get_or_insert_with(|| {
                        self.topology.places.push(self.places[rank as usize].borrow().clone());
                        self.topology.places.len() as u32 - 1
                    });
                    self.enter(rank, kept.or(parent), place);
                }
            }
        }
        if let Some(id) = kept {
            self.topology.nodes[id as usize].ball = Ball::new(first, self.topology.pes());
        }
    }

    /// Gives the next number to the PE of this rank.
    fn enter(&mut self, rank: u32, node: Option<NodeId>, place: u32) {
        let t = &mut self.topology;
        let (pe, before) = (t.pes(), t.power_before[t.power_before.len() - 1]);
        t.pe_of_rank[rank as usize] = Pe::new(pe);
        t.rank_of_pe.push(rank);
        t.node_of_pe.push(node);
        t.place_of_pe.push(place);
        t.power_before.push(before + self.powers[rank as usize]);
    }
}

/// The tree of labels, its root first.
fn grow<P: Borrow<Place>>(places: &[P]) -> Vec<Branch> {
    let mut tree = vec![Branch { depth: 0, children: Vec::new() }];
    let mut known: HashMap<(usize, &Label), usize> = HashMap::new();
    for (rank, place) in (0..).zip(places) {
        let mut at = 0;
        for (depth, label) in (1..).zip(place.borrow().labels()) {
            at = *known.entry((at, label)).or_insert_with(|| {
                let new = tree.len();
                tree.push(Branch { depth, children: Vec::new() });
                tree[at].children.push(Child::Branch(new));
                new
            });
        }
        tree[at].children.push(Child::Pe { rank });
    }
    tree
}

/// By depth in the tree the distance of PEs that part there, and all distances, ascending.
fn measure(tree: &[Branch]) -> (Vec<Distance>, Vec<Distance>) {
    let mut separates = [false; DEPTH_LIMIT + 1];
    for branch in tree {
        separates[branch.depth] |= branch.children.len() > 1;
    }
    let mut next = Distance::ONE;
    let (mut distances, mut radii) = (Vec::new(), Vec::new());
    for separates in separates {
        distances.push(next);
        if separates {
            radii.push(next);
            next = next.half();
        }
    }
    radii.push(Distance::ZERO);
    radii.reverse();
    (distances, radii)
}
