//! Builds the table of a [`Topology`]: the tree of labels, its distances, and the numbers of PEs.

use super::{Cluster, ClusterId, Topology};
use crate::place::DEPTH_LIMIT;
use crate::{Ball, Distance, Label, Pe, Place};
use std::borrow::Borrow;
use std::collections::HashMap;

/// The tree of labels while it becomes a table.
pub(super) struct Builder<'a, P> {
    places: &'a [P],
    powers: &'a [u64],
    tree: Vec<TreeNode>,
    /// By depth: the distance between PEs whose places part there.
    distances: Vec<Distance>,
    topology: Topology,
}

/// A node of the full tree: one for each distinct prefix of a place.
struct TreeNode {
    depth: usize,
    /// Ordered by smallest rank, because ranks are added in order.
    children: Vec<Child>,
}

#[derive(Clone, Copy)]
enum Child {
    Node(usize),
    Pe { rank: u32 },
}

impl<'a, P: Borrow<Place>> Builder<'a, P> {
    pub(super) fn new(places: &'a [P], powers: &'a [u64]) -> Self {
        let tree = grow(places);
        let (distances, radii) = measure(&tree);
        let pes = places.len();
        let topology = Topology {
            clusters: Vec::new(),
            cluster_of_pe: Vec::with_capacity(pes),
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

    /// Numbers the PEs below a tree node. `parent` is the lowest cluster above it. Recurses at most
    /// [`DEPTH_LIMIT`] + 1 deep.
    fn number(&mut self, node: usize, parent: Option<ClusterId>) {
        let TreeNode { depth, ref mut children } = self.tree[node];
        let children = std::mem::take(children);
        let first = self.topology.pes();
        let own = (children.len() > 1).then(|| {
            let id = self.topology.clusters.len() as ClusterId;
            let (ball, distance) = (Ball::new(first, first + 1), self.distances[depth]);
            self.topology.clusters.push(Cluster { ball, distance, depth, parent });
            id
        });
        // The place of the PEs directly below this node, added with the first of them.
        let mut place = None;
        for child in children {
            match child {
                Child::Node(below) => self.number(below, own.or(parent)),
                Child::Pe { rank } => {
                    let place = *place.get_or_insert_with(|| {
                        self.topology.places.push(self.places[rank as usize].borrow().clone());
                        self.topology.places.len() as u32 - 1
                    });
                    self.enter(rank, own.or(parent), place);
                }
            }
        }
        if let Some(id) = own {
            self.topology.clusters[id as usize].ball = Ball::new(first, self.topology.pes());
        }
    }

    /// Gives the next number to the PE of this rank.
    fn enter(&mut self, rank: u32, cluster: Option<ClusterId>, place: u32) {
        let t = &mut self.topology;
        let (pe, before) = (t.pes(), t.power_before[t.power_before.len() - 1]);
        t.pe_of_rank[rank as usize] = Pe::new(pe);
        t.rank_of_pe.push(rank);
        t.cluster_of_pe.push(cluster);
        t.place_of_pe.push(place);
        t.power_before.push(before + self.powers[rank as usize]);
    }
}

/// Builds the tree of labels; its root comes first.
fn grow<P: Borrow<Place>>(places: &[P]) -> Vec<TreeNode> {
    let mut tree = vec![TreeNode { depth: 0, children: Vec::new() }];
    let mut known: HashMap<(usize, &Label), usize> = HashMap::new();
    for (rank, place) in (0..).zip(places) {
        let mut at = 0;
        for (depth, label) in (1..).zip(place.borrow().labels()) {
            at = *known.entry((at, label)).or_insert_with(|| {
                let new = tree.len();
                tree.push(TreeNode { depth, children: Vec::new() });
                tree[at].children.push(Child::Node(new));
                new
            });
        }
        tree[at].children.push(Child::Pe { rank });
    }
    tree
}

/// Returns the distance of PEs that part at each depth of the tree, and all distances of the job,
/// ascending.
fn measure(tree: &[TreeNode]) -> (Vec<Distance>, Vec<Distance>) {
    let mut separates = [false; DEPTH_LIMIT + 1];
    for node in tree {
        separates[node.depth] |= node.children.len() > 1;
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
