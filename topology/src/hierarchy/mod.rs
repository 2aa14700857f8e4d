//! From places to distances (`SymGridPar2` §4.1, 4.3).
//!
//! # The tree
//!
//! The places of all PEs form a tree of labels. Each PE is a leaf below its place, so PEs with
//! equal places are siblings. Places are compared label by label from the root, by kind and name,
//! and may differ in depth: if one place is a prefix of another, its PE is a sibling of the subtree
//! in which the other continues.
//!
//! # The ultrametric
//!
//! The paper defines `d(p, q) = 0` if `p = q`, else `2^-n`, where `n` is the length of the path
//! that `p` and `q` share. Of three PEs, two always share at least as much with each other as with
//! the third. Hence the *strong triangle inequality*, which makes the distance an ultrametric:
//!
//! ```text
//! d(p, s) ≤ max(d(p, q), d(q, s))
//! ```
//!
//! Three laws follow, and property tests hold all of them (`topology/tests/all/laws.rs`):
//!
//! - Being at most `r` apart is an equivalence relation. So two balls of one radius are either
//!   equal or disjoint.
//! - (B1) Every member of a ball is a centre of it: `q ∈ D(p; r)` implies `D(q; r) = D(p; r)`.
//! - (B2) The balls of radius `r/2` around the members of `D(p; r)` partition `D(p; r)`, and PEs of
//!   different parts are exactly `r` apart.
//!
//! # Levels that separate no PEs
//!
//! A step of the path at which no two PEs of the job part would halve distances and tell nothing.
//! Such levels are left out: *a level counts if at least one node on it has more than one child*
//! (PEs are children too), and `n` is the number of counted levels above the one where `p` and `q`
//! part. So
//!
//! - PEs that are all on one host are at distance 1, however long the path to that host is;
//! - with one PE per host, hosts add no level: two PEs in a rack are siblings;
//! - the distances of a job are 0 and 1, 1/2, 1/4 … without gaps;
//! - a distance means the same level everywhere. A level counts in the whole job or nowhere: a rack
//!   with one host keeps the host level if another rack has two hosts, so that 1/4 cannot mean
//!   "same host" in one rack and "same package" in the next.
//!
//! Because of the last point a ball may equal the ball of half its radius. Its partition by (B2)
//! then has a single part.
//!
//! # Numbers
//!
//! PEs are numbered by a walk through the tree that enters, at each node, the subtree with the
//! smallest rank first. So every subtree, hence every ball, is a contiguous range of numbers, and
//! rank 0 is PE 0.
//!
//! # Cost
//!
//! The table keeps only *clusters*, the nodes with more than one child. A job of `n` PEs has at
//! most `n - 1` of them, so the table takes O(n) memory. A query climbs from a PE to the cluster
//! that it asks for, in at most [`DEPTH_LIMIT`] steps.

mod builder;

use crate::place::DEPTH_LIMIT;
use crate::{Ball, Distance, Pe, Place, TopologyError};
use builder::Builder;
use std::borrow::Borrow;
use std::ops::Range;

/// The hierarchy of a job: how far each PE is from each other PE.
///
/// It is built once at start-up and only read afterwards; share it as an `Arc<Topology>`.
///
/// *Invariants:* the distance is an ultrametric; PEs are numbered in hierarchy order, so that every
/// [`Ball`] is a contiguous range of numbers; rank 0 of the launcher is [`Pe::ROOT`].
///
/// ```
/// use ultramarine_topology::{Distance, LevelKind::Host, Pe, Place, Topology};
/// let [a, b] = ["a", "b"].map(|name| Place::from_pairs([(Host, name)]));
/// // The launcher placed ranks 0 to 3 on the two hosts in turn, with 8 worker threads each.
/// let job = Topology::new(&[a.clone(), b.clone(), a, b], &[8; 4])?;
/// let [p, q] = [0, 2].map(|rank| job.pe_of(rank));
/// assert_eq!((p, q), (Pe::new(0), Pe::new(1)));
/// assert_eq!(job.distance(p, q), Distance::ONE.half());
/// assert_eq!(job.ball(p, Distance::ONE.half()).len(), 2);
/// # Ok::<(), ultramarine_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    /// Each cluster comes after its parent.
    clusters: Vec<Cluster>,
    /// By PE: the smallest cluster around it. `None` only in a job of one PE.
    cluster_of_pe: Vec<Option<ClusterId>>,
    rank_of_pe: Vec<u32>,
    pe_of_rank: Vec<Pe>,
    /// By PE number `k`: the power of the PEs `0..k`. One entry longer than there are PEs.
    power_before: Vec<u64>,
    radii: Vec<Distance>,
    /// The distinct places. [`Self::place_of_pe`] has an index into them for each PE.
    places: Vec<Place>,
    place_of_pe: Vec<u32>,
}

/// An index into [`Topology::clusters`].
type ClusterId = u32;

/// A virtual cluster (`SymGridPar2` §4.1): a subtree that branches at its top.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// The PEs in it.
    pub(crate) ball: Ball,
    /// The distance between PEs of different children.
    pub(crate) distance: Distance,
    /// The number of labels from the root to it.
    pub(crate) depth: usize,
    parent: Option<ClusterId>,
}

impl Topology {
    /// Builds the topology of a job from the place and the compute power of each PE. Both slices
    /// are indexed by launcher rank. A power is a number of worker threads, or another measure in a
    /// unit that all PEs share.
    ///
    /// # Errors
    /// If there are no PEs or more than `u32::MAX`, if the slices differ in length, if a power is 0
    /// or the sum of the powers exceeds `u64::MAX`, or if a place is deeper than [`DEPTH_LIMIT`].
    pub fn new<P: Borrow<Place>>(places: &[P], powers: &[u64]) -> Result<Topology, TopologyError> {
        check(places, powers)?;
        Ok(Builder::new(places, powers).build())
    }

    /// Builds a job without hierarchy: the PEs are at distance 1 from each other, at the root, and
    /// have power 1. Ranks equal PE numbers.
    ///
    /// ```
    /// use ultramarine_topology::{Distance, Pe, Topology};
    /// let job = Topology::flat(3);
    /// assert_eq!(job.radii(), [Distance::ZERO, Distance::ONE]);
    /// assert_eq!(job.distance(Pe::new(1), Pe::new(2)), Distance::ONE);
    /// ```
    ///
    /// # Panics
    /// If `pes` is 0.
    pub fn flat(pes: u32) -> Topology {
        assert!(pes > 0, "a topology needs at least one PE");
        let (places, powers) = (vec![Place::default(); pes as usize], vec![1; pes as usize]);
        Builder::new(&places, &powers).build()
    }

    /// The number of PEs in the job, at least 1.
    pub fn pes(&self) -> u32 {
        self.rank_of_pe.len() as u32
    }

    /// The rank that the launcher gave to a PE.
    ///
    /// # Panics
    /// If the job has no such PE. All methods that take a [`Pe`] panic in this case.
    pub fn rank_of(&self, pe: Pe) -> u32 {
        self.rank_of_pe[pe.index()]
    }

    /// The PE with this launcher rank.
    ///
    /// # Panics
    /// If the job has no such rank.
    pub fn pe_of(&self, rank: u32) -> Pe {
        self.pe_of_rank[rank as usize]
    }

    /// The distance between two PEs: 0 if they are the same, else a power of two up to 1.
    pub fn distance(&self, p: Pe, q: Pe) -> Distance {
        assert!(q.index() < self.rank_of_pe.len(), "a job of {} PEs has no {q}", self.pes());
        if p == q {
            return Distance::ZERO;
        }
        self.ancestors(p)
            .find(|cluster| cluster.ball.contains(q))
            .map_or(Distance::ZERO, |cluster| cluster.distance)
    }

    /// The closed ball `D(p; r)`: all PEs at most `r` away from `p` (`SymGridPar2` §4.1). Any `r`
    /// is allowed, also one that is not a distance of this job.
    pub fn ball(&self, p: Pe, r: Distance) -> Ball {
        self.cluster(p, r).map_or(Ball::new(p.number(), p.number() + 1), |cluster| cluster.ball)
    }

    /// The PEs on the host of `p`; `p` alone if its place names no host.
    pub fn host_of(&self, p: Pe) -> Ball {
        let host = self.place(p).host();
        let is_within = |ball: &Ball| {
            // The PEs of one host have consecutive numbers.
            let ends = [ball.first(), Pe::new(ball.numbers().end - 1)];
            host.is_some() && ends.iter().all(|&end| self.place(end).host() == host)
        };
        let balls = self.ancestors(p).map(|cluster| cluster.ball);
        balls.take_while(is_within).last().unwrap_or(Ball::new(p.number(), p.number() + 1))
    }

    /// Whether all PEs are on one host, as far as is known: also if no place names a host.
    pub fn is_on_one_host(&self) -> bool {
        let [first, last] = [0, self.pes() - 1].map(|number| self.place(Pe::new(number)).host());
        // The PEs of one host have consecutive numbers.
        first == last
    }

    /// The number of hosts: 1 if no place names any.
    pub fn hosts(&self) -> u32 {
        let host = |number| self.place(Pe::new(number)).host();
        // The PEs of one host have consecutive numbers.
        1 + (1..self.pes()).filter(|pe| host(*pe) != host(pe - 1)).count() as u32
    }

    /// The distances that occur in this job, ascending: 0 first, and 1 last if there is more than
    /// one PE.
    pub fn radii(&self) -> &[Distance] {
        &self.radii
    }

    /// The branches of a broadcast tree: splits the range `pes`, which contains `p`, into `p`
    /// itself and disjoint ranges, the longest first. A PE that tells all of `pes` something passes
    /// it to one PE of each branch, which does the same with its own branch.
    ///
    /// A PE has at most about log2 of `pes` branches. A cluster is cut into two branches only if
    /// `p` is in it, so a message enters each other host once.
    ///
    /// ```
    /// # use ultramarine_topology::{Pe, Topology};
    /// let job = Topology::flat(6);
    /// assert_eq!(job.branches(Pe::new(0), 0..6).collect::<Vec<_>>(), [3..6, 1..3]);
    /// assert_eq!(job.branches(Pe::new(3), 3..6).collect::<Vec<_>>(), [4..6]);
    /// ```
    ///
    /// # Panics
    /// If `p` is not in `pes`, or when the iterator gets to PEs that the job does not have.
    pub fn branches(&self, p: Pe, pes: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        assert!(pes.contains(&p.number()), "{p} is none of the PEs {pes:?}");
        let mut own = pes;
        std::iter::from_fn(move || {
            let Range { start, end } = own;
            let middle = (end - start > 1).then(|| self.split_point(&own))?;
            let (rest, branch) = if p.number() < middle {
                (start..middle, middle..end)
            } else {
                (middle..end, start..middle)
            };
            own = rest;
            Some(branch)
        })
    }

    /// Where to split a range of at least two PEs: the first PE of the second part. Cuts no cluster
    /// that can stay whole; with that, both parts are as equal as possible.
    fn split_point(&self, pes: &Range<u32>) -> u32 {
        let Range { start, end } = *pes;
        let middle = start.midpoint(end);
        let whole = self.distance(Pe::new(start), Pe::new(end - 1));
        // It does not contain both the first and the last PE, so one of its ends lies between them.
        let cluster = self.ball(Pe::new(middle), whole.half()).numbers();
        let ends = [cluster.start, cluster.end].into_iter().filter(|at| start < *at && *at < end);
        ends.min_by_key(|at| at.abs_diff(middle)).unwrap_or(middle)
    }

    /// An equidistant basis of `D(p; r)` with the compute power around each of its PEs: the paper's
    /// `equiDist` (`SymGridPar2` §4.3).
    ///
    /// Returns pairs `(q_i, n_i)` with these properties:
    ///
    /// - The first `q_i` is `p`; the others follow by ascending PE number.
    /// - The balls `D(q_i; r/2)` partition `D(p; r)`, and different `q_i` are exactly `r` apart.
    /// - `n_i` is the power of `D(q_i; r/2)`, so the powers add up to that of `D(p; r)`.
    ///
    /// By (B1) any PE of its ball can be `q_i`. `rng`, a source of uniformly random numbers, picks
    /// one, so that different callers load different PEs. If no PE is exactly `r` away from `p`,
    /// the basis is `p` alone.
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

    /// The sum of the compute powers of the PEs in a ball.
    ///
    /// # Panics
    /// If the ball is one of a larger job.
    pub fn power_of(&self, ball: Ball) -> u64 {
        let Range { start, end } = ball.numbers();
        self.power_before[end as usize] - self.power_before[start as usize]
    }

    /// The place of a PE.
    pub fn place(&self, p: Pe) -> &Place {
        &self.places[self.place_of_pe[p.index()] as usize]
    }

    /// The largest cluster around `p` with a distance of at most `r`; `None` if that is `p` alone.
    pub(crate) fn cluster(&self, p: Pe, r: Distance) -> Option<&Cluster> {
        self.ancestors(p).take_while(|cluster| cluster.distance <= r).last()
    }

    /// The largest cluster around `p` within `outer`, another cluster around `p`; `None` if that is
    /// `p` alone.
    pub(crate) fn cluster_below(&self, p: Pe, outer: &Cluster) -> Option<&Cluster> {
        self.ancestors(p).take_while(|cluster| cluster.distance < outer.distance).last()
    }

    /// The clusters that `p` is in, from the smallest to the whole job.
    fn ancestors(&self, p: Pe) -> impl Iterator<Item = &Cluster> {
        let cluster = |id: ClusterId| &self.clusters[id as usize];
        let smallest = self.cluster_of_pe[p.index()].map(cluster);
        std::iter::successors(smallest, move |inner| inner.parent.map(cluster))
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
    fn levels_that_separate_no_pes_add_no_distance() {
        // One host at the end of a long path: all PEs are at distance 1.
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
    fn errors_name_the_cause() {
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
