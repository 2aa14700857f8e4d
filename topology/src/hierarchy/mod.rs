//! From places to distances (`SymGridPar2` §4.1, 4.3).
//!
//! # The tree
//!
//! The places of all PEs make a tree of labels. Each PE is a leaf of its own below its place, so
//! PEs with equal places are siblings. Places are compared label by label from the root, kind and
//! name, and may differ in depth: where one is the beginning of another, its PE is a sibling of
//! the subtrees in which the other goes on.
//!
//! # Levels that separate nobody
//!
//! The paper's `d(p, q) = 2^-n` counts in `n` the steps of the path that `p` and `q` share. A step
//! that no two PEs of the job disagree about would halve distances and tell nothing, so such
//! levels are left out: *a level counts if at least one node on it has more than one child*, PEs
//! being children too, and `n` is the number of counted levels above the one where `p` and `q`
//! part. So
//!
//! - PEs that are all on one host are all at distance 1, however long the path to that host;
//! - with one PE per host, hosts add no level: two PEs in a rack are siblings;
//! - the distances of a job are 1, 1/2, 1/4 … without gaps, and 0;
//! - a distance means the same level everywhere. Levels go as a whole or stay as a whole: a rack
//!   with one host keeps its level when another has two, so that "1/4" does not say "same host"
//!   in one rack and "same package" in the next.
//!
//! The last point means that a ball may equal the one of half its radius. It is then partitioned
//! by itself alone, which is (B2) in its smallest case.
//!
//! # Numbers
//!
//! PEs are numbered by walking the tree, from each node first into the subtree with the smallest
//! rank. So every subtree, hence every ball, is a range of numbers, and rank 0 is PE 0.
//!
//! # Cost
//!
//! The table keeps only nodes with more than one child, of which a job with `n` PEs has at most
//! `n - 1`, each with its range, parent and distance: O(n) in all. A query climbs from a PE to the
//! node it is after, at most [`DEPTH_LIMIT`] steps.

mod builder;

use crate::{Ball, Distance, Pe, Place, TopologyError};
use builder::Builder;
use std::borrow::Borrow;
use std::ops::Range;

/// The greatest number of labels in a place.
pub const DEPTH_LIMIT: usize = 32;

/// The hierarchy of a job: who is how far from whom.
///
/// Made once at start-up and then only read; share it as `Arc<Topology>`.
///
/// ```
/// use ultramarine_topology::{Distance, LevelKind::Host, Pe, Place, Topology};
/// let [a, b] = ["a", "b"].map(|name| Place::from_pairs([(Host, name)]));
/// // The launcher dealt ranks 0 to 3 out in turn, with 8 worker threads each.
/// let job = Topology::new(&[a.clone(), b.clone(), a, b], &[8; 4])?;
/// let [p, q] = [0, 2].map(|rank| job.pe_of(rank));
/// assert_eq!((p, q), (Pe::new(0), Pe::new(1)));
/// assert_eq!(job.distance(p, q), Distance::ONE.half());
/// assert_eq!(job.ball(p, Distance::ONE.half()).len(), 2);
/// # Ok::<(), ultramarine_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    /// The nodes with more than one child, each after its parent.
    nodes: Vec<Node>,
    /// By PE: the lowest node it is under. `None` only for the only PE of its job.
    node_of_pe: Vec<Option<NodeId>>,
    rank_of_pe: Vec<u32>,
    pe_of_rank: Vec<Pe>,
    /// By PE number `k`: the power of the PEs `0..k`. One longer than there are PEs.
    power_before: Vec<u64>,
    radii: Vec<Distance>,
    /// The distinct places, and by PE which of them it has.
    places: Vec<Place>,
    place_of_pe: Vec<u32>,
}

/// An index into [`Topology::nodes`].
type NodeId = u32;

/// A virtual cluster: a subtree that branches at its top.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The PEs below it.
    pub(crate) ball: Ball,
    /// How far PEs of different children are from each other.
    pub(crate) distance: Distance,
    /// How many labels lead to it.
    pub(crate) depth: usize,
    parent: Option<NodeId>,
}

impl Topology {
    /// The topology of a job from the place and compute power of each PE, by launcher rank. The
    /// power is the number of worker threads, or any other measure that is common to all PEs.
    ///
    /// # Errors
    /// When there is no PE or more than `u32::MAX`, when the slices differ in length, when a power
    /// is 0 or their sum exceeds a `u64`, or when a place is deeper than [`DEPTH_LIMIT`].
    pub fn new<P: Borrow<Place>>(places: &[P], powers: &[u64]) -> Result<Topology, TopologyError> {
        check(places, powers)?;
        Ok(Builder::new(places, powers).build())
    }

    /// A job without hierarchy: all PEs at distance 1 from each other, with power 1 and at the
    /// root. Ranks are PE numbers.
    ///
    /// # Panics
    /// When `pes` is 0.
    pub fn flat(pes: u32) -> Topology {
        assert!(pes > 0, "a topology needs at least one PE");
        let (places, powers) = (vec![Place::default(); pes as usize], vec![1; pes as usize]);
        Builder::new(&places, &powers).build()
    }

    /// The number of PEs in the job, at least 1.
    pub fn pes(&self) -> u32 {
        self.rank_of_pe.len() as u32
    }

    /// The launcher's rank of a PE.
    ///
    /// # Panics
    /// When the job has no such PE; so do all methods that take a [`Pe`].
    pub fn rank_of(&self, pe: Pe) -> u32 {
        self.rank_of_pe[pe.index()]
    }

    /// The PE that has this rank.
    ///
    /// # Panics
    /// When the job has no such rank.
    pub fn pe_of(&self, rank: u32) -> Pe {
        self.pe_of_rank[rank as usize]
    }

    /// How far apart two PEs are: 0 if they are one, else a power of two.
    pub fn distance(&self, p: Pe, q: Pe) -> Distance {
        assert!(q.index() < self.rank_of_pe.len(), "a job of {} PEs has no {q}", self.pes());
        if p == q {
            return Distance::ZERO;
        }
        self.ancestors(p)
            .find(|node| node.ball.contains(q))
            .map_or(Distance::ZERO, |node| node.distance)
    }

    /// The closed ball `D(p; r)`: all PEs at most `r` away from `p`, for any `r`, whether or not
    /// two PEs of this job are `r` apart.
    pub fn ball(&self, p: Pe, r: Distance) -> Ball {
        self.cluster(p, r).map_or(Ball::new(p.number(), p.number() + 1), |node| node.ball)
    }

    /// The PEs on the host of `p`: `p` alone where no host is named.
    pub fn host_of(&self, p: Pe) -> Ball {
        let host = self.place(p).host();
        let is_within = |ball: &Ball| {
            // PEs of one host follow each other.
            let ends = [ball.first(), Pe::new(ball.numbers().end - 1)];
            host.is_some() && ends.iter().all(|&end| self.place(end).host() == host)
        };
        let balls = self.ancestors(p).map(|node| node.ball);
        balls.take_while(is_within).last().unwrap_or(Ball::new(p.number(), p.number() + 1))
    }

    /// The distances between PEs of this job, ascending: 0 first, and if there is more than one
    /// PE, 1 last.
    pub fn radii(&self) -> &[Distance] {
        &self.radii
    }

    /// The branches below `p` in a tree over these PEs, one of which it is: ranges that with `p`
    /// itself make up all of them, the longest first. Who is told something for all gives each
    /// branch to one of its PEs, and each of those does the same with its own.
    ///
    /// So no PE has more than about log2 of them to do with. A cluster is in two branches only if
    /// `p` is in it: news enter each host once.
    ///
    /// ```
    /// # use ultramarine_topology::{Pe, Topology};
    /// let job = Topology::flat(6);
    /// assert_eq!(job.branches(Pe::new(0), 0..6).collect::<Vec<_>>(), [3..6, 1..3]);
    /// assert_eq!(job.branches(Pe::new(3), 3..6).collect::<Vec<_>>(), [4..6]);
    /// ```
    pub fn branches(&self, p: Pe, pes: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        assert!(pes.contains(&p.number()), "{p} is none of the PEs {pes:?}");
        let mut own = pes;
        std::iter::from_fn(move || {
            let Range { start, end } = own;
            let middle = (end - start > 1).then(|| self.parting(&own))?;
            let (rest, branch) = if p.number() < middle {
                (start..middle, middle..end)
            } else {
                (middle..end, start..middle)
            };
            own = rest;
            Some(branch)
        })
    }

    /// Where to part some PEs, at least two, such that no cluster is cut that can be left whole,
    /// and both parts are as equal as that allows: the first of the second part.
    fn parting(&self, pes: &Range<u32>) -> u32 {
        let Range { start, end } = *pes;
        let middle = start.midpoint(end);
        let whole = self.distance(Pe::new(start), Pe::new(end - 1));
        // It holds not both the first and the last, so one of its ends is between them.
        let cluster = self.ball(Pe::new(middle), whole.half()).numbers();
        let ends = [cluster.start, cluster.end].into_iter().filter(|at| start < *at && *at < end);
        ends.min_by_key(|at| at.abs_diff(middle)).unwrap_or(middle)
    }

    /// An equidistant basis of `D(p; r)` with the powers clustered around its PEs: the paper's
    /// `equiDist`.
    ///
    /// The balls of radius `r / 2` around the PEs `q_i` returned partition `D(p; r)`, different
    /// `q_i` are exactly `r` apart, and with each comes the power of its ball, so that the powers
    /// add up to that of `D(p; r)`. The first is `p` itself; the others follow by PE number. By
    /// (B1) any PE of its ball will do for `q_i`, and `rng`, a source of uniformly random numbers,
    /// picks one, so that not all callers load the same PEs. If nobody is exactly `r` away from
    /// `p`, the basis is `p` alone.
    pub fn equidistant_basis(
        &self,
        p: Pe,
        r: Distance,
        rng: &mut impl FnMut() -> u64,
    ) -> Vec<(Pe, u64)> {
        let whole = self.ball(p, r);
        let own = self.ball(p, r.half());
        let mut basis = vec![(p, self.power_of(own))];
        let mut next = whole.numbers().start;
        while next < whole.numbers().end {
            let part = self.ball(Pe::new(next), r.half());
            if part != own {
                basis.push((part.pick(rng()), self.power_of(part)));
            }
            next = part.numbers().end;
        }
        basis
    }

    /// The compute power of a PE, in the unit given to [`Topology::new`].
    pub fn power(&self, p: Pe) -> u64 {
        self.power_before[p.index() + 1] - self.power_before[p.index()]
    }

    /// The compute power of all PEs in a ball of this job together.
    pub fn power_of(&self, ball: Ball) -> u64 {
        let Range { start, end } = ball.numbers();
        self.power_before[end as usize] - self.power_before[start as usize]
    }

    /// Where a PE is.
    pub fn place(&self, p: Pe) -> &Place {
        &self.places[self.place_of_pe[p.index()] as usize]
    }

    /// The greatest virtual cluster around `p` that is no wider than `r`, if there is any but `p`.
    pub(crate) fn cluster(&self, p: Pe, r: Distance) -> Option<&Node> {
        self.ancestors(p).take_while(|node| node.distance <= r).last()
    }

    /// The greatest virtual cluster around `p` that is smaller than `outer`, itself one around
    /// `p`; `None` if that is `p` alone.
    pub(crate) fn cluster_below(&self, p: Pe, outer: &Node) -> Option<&Node> {
        self.ancestors(p).take_while(|node| node.distance < outer.distance).last()
    }

    /// The virtual clusters that `p` is in, from the smallest to the whole job.
    fn ancestors(&self, p: Pe) -> impl Iterator<Item = &Node> {
        let node = |id: NodeId| &self.nodes[id as usize];
        std::iter::successors(self.node_of_pe[p.index()].map(node), move |n| n.parent.map(node))
    }
}

fn check<P: Borrow<Place>>(places: &[P], powers: &[u64]) -> Result<(), TopologyError> {
    if places.len() != powers.len() {
        let (places, powers) = (places.len(), powers.len());
        return Err(TopologyError::PowersMismatch { places, powers });
    }
    if places.is_empty() {
        return Err(TopologyError::NoPes);
    }
    if u32::try_from(places.len()).is_err() {
        return Err(TopologyError::TooManyPes { pes: places.len() });
    }
    let mut total = 0u64;
    for (rank, (place, &power)) in (0..).zip(places.iter().zip(powers)) {
        if power == 0 {
            return Err(TopologyError::NoPower { rank });
        }
        total = total.checked_add(power).ok_or(TopologyError::PowerOverflow)?;
        let place = place.borrow();
        let depth = place.labels().len();
        if depth > DEPTH_LIMIT {
            return Err(TopologyError::TooDeep { rank, depth, place: place.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Label;
    use crate::LevelKind::{Host, Package, Switch};

    #[test]
    fn levels_that_separate_nobody_add_no_distance() {
        // One host, found by a long path: all are at distance 1.
        let place = Place::from_pairs([(Switch, "s"), (Switch, "r"), (Host, "a"), (Package, "0")]);
        let job = Topology::new(&[place.clone(), place.clone(), place], &[1; 3]).unwrap();
        assert_eq!(job.radii(), [Distance::ZERO, Distance::ONE]);
        // One PE per host: racks count, hosts do not.
        let hosts = [("r", "a"), ("r", "b"), ("s", "c"), ("s", "d")];
        let places = hosts.map(|(rack, host)| Place::from_pairs([(Switch, rack), (Host, host)]));
        let job = Topology::new(&places, &[1; 4]).unwrap();
        assert_eq!(job.radii(), [Distance::ZERO, Distance::ONE.half(), Distance::ONE]);
    }

    #[test]
    fn a_distance_means_the_same_level_everywhere() {
        // Rack r has one host with two PEs, rack s two such hosts: "on one host" is 1/4 in both.
        let hosts = [("r", "a"), ("r", "a"), ("s", "b"), ("s", "b"), ("s", "c"), ("s", "c")];
        let places = hosts.map(|(rack, host)| Place::from_pairs([(Switch, rack), (Host, host)]));
        let job = Topology::new(&places, &[1; 6]).unwrap();
        let quarter = Distance::from_exponent(2);
        assert_eq!(job.distance(Pe::new(0), Pe::new(1)), quarter);
        assert_eq!(job.distance(Pe::new(2), Pe::new(3)), quarter);
        assert_eq!(job.ball(Pe::new(0), Distance::ONE.half()), job.ball(Pe::new(0), quarter));
    }

    #[test]
    fn a_place_that_begins_another() {
        let places = [
            Place::from_pairs([(Host, "a")]),
            Place::from_pairs([(Host, "a"), (Package, "0")]),
            Place::from_pairs([(Host, "a"), (Package, "0")]),
        ];
        let job = Topology::new(&places, &[1; 3]).unwrap();
        assert_eq!(job.distance(Pe::new(0), Pe::new(1)), Distance::ONE);
        assert_eq!(job.distance(Pe::new(1), Pe::new(2)), Distance::ONE.half());
    }

    #[test]
    fn what_is_wrong_is_told() {
        let text = |places: &[Place], powers: &[u64]| {
            Topology::new(places, powers).unwrap_err().to_string()
        };
        let place = Place::from_pairs([(Host, "a")]);
        let deep = Place::new(vec![Label::new(Switch, "s"); DEPTH_LIMIT + 1]);
        assert_eq!(text(&[], &[]), "a topology needs at least one PE, and none was given");
        assert_eq!(
            text(std::slice::from_ref(&place), &[1, 2]),
            "1 places but 2 compute powers were given; each PE has one of both"
        );
        let two = [place.clone(), place.clone()];
        assert!(text(&two, &[1, 0]).starts_with("rank 1 has a compute power of 0"));
        assert!(text(&two, &[u64::MAX, 1]).starts_with("the compute powers of all PEs add up"));
        assert!(text(&[place, deep], &[1, 1]).starts_with(
            "the place of rank 1 is 33 levels deep, more than the limit of 32: switch s, switch s"
        ));
    }

    #[test]
    fn the_deepest_places_allowed() {
        // Each of 33 PEs parts from the rest one level further down.
        let places: Vec<Place> =
            (0..=DEPTH_LIMIT).map(|n| Place::new(vec![Label::new(Switch, "s"); n])).collect();
        let job = Topology::new(&places, &vec![1; places.len()]).unwrap();
        let [last, before] = [32, 31].map(Pe::new);
        assert_eq!(job.distance(last, before), Distance::from_exponent(31));
        assert_eq!(job.radii().len(), DEPTH_LIMIT + 1);
    }
}
