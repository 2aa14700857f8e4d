//! Which PEs watch each other.
//!
//! There are two kinds of rings, both of living PEs: the PEs of each host, and the hosts. A PE
//! dials the next PE on its host, and one PE on the next host: the one at its own position there
//! (counted round, if that host has fewer PEs). The two ends of a connection watch each other. So
//!
//! - each PE dials at most two others, and is dialled by one PE on its own host and by its share of
//!   another host's PEs;
//! - each PE is watched from another host, if there is one: when a host falls silent, all its PEs
//!   are missed at the same time;
//! - the next host is [far away](super::ring_order): when a rack falls silent, living hosts miss
//!   all its hosts at the same time, too;
//! - all living PEs are connected, which [membership](crate::protocol::membership) relies on.
//!
//! If two PEs would dial each other, the one with the smaller number does.

use super::ring_order::ring_order;
use crate::protocol::Living;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use ultramarine_topology::{Label, LevelKind, Pe, Topology};

/// The PEs of each host. A place that names no host counts as a host.
///
/// It takes memory for each PE of the job, so that all watches of one process should share one.
#[derive(Debug)]
pub struct HostRings {
    /// A row for each host, in the order of the ring of hosts; each row is ordered by number.
    rows: Vec<Vec<Pe>>,
    /// The row of each PE.
    row_of: Vec<u32>,
}

/// The PEs with which a PE shares a connection. Both lists are ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Partners {
    /// It dials these.
    pub(super) calls: Vec<Pe>,
    /// These dial it.
    pub(super) called_by: Vec<Pe>,
    /// The deaths that may change them are those in this number of rows from this one on, going
    /// round.
    rows: (usize, usize),
}

impl Partners {
    pub(super) fn iter(&self) -> impl Iterator<Item = Pe> + '_ {
        self.calls.iter().chain(&self.called_by).copied()
    }

    /// Whether a connection is shared with this PE, whichever of the two dials.
    pub(super) fn contains(&self, pe: Pe) -> bool {
        [&self.calls, &self.called_by].iter().any(|side| side.binary_search(&pe).is_ok())
    }
}

impl HostRings {
    /// The hosts of a job.
    pub fn new(topology: &Topology) -> Self {
        let mut rows: Vec<Vec<Pe>> = Vec::new();
        let mut known: BTreeMap<&[Label], u32> = BTreeMap::new();
        let mut row_of = Vec::new();
        for pe in (0..topology.pes()).map(Pe::new) {
            let labels = topology.place(pe).labels();
            let host = labels.iter().position(|label| label.kind == LevelKind::Host);
            let path = host.map_or(labels, |at| &labels[..=at]);
            let row = *known.entry(path).or_insert_with(|| {
                rows.push(Vec::new());
                // There are no more rows than PEs.
                rows.len() as u32 - 1
            });
            rows[row as usize].push(pe);
            row_of.push(row);
        }
        // So far rows are ordered by their smallest PE, hence in the order of the hierarchy.
        let order = ring_order(rows.len());
        let mut places = vec![0; rows.len()];
        order.iter().zip(0..).for_each(|(row, place)| places[*row as usize] = place);
        HostRings {
            rows: order.iter().map(|row| std::mem::take(&mut rows[*row as usize])).collect(),
            row_of: row_of.into_iter().map(|row| places[row as usize]).collect(),
        }
    }

    /// The number of PEs in the job.
    pub fn pes(&self) -> u32 {
        // A topology counts them so, too.
        self.row_of.len() as u32
    }

    /// Whether the death of `pe` may change these partners. In a large job hardly any does.
    pub(super) fn may_change(&self, partners: &Partners, pe: Pe) -> bool {
        let (first, count) = partners.rows;
        let rows = self.rows.len();
        (self.row_of(pe) + rows - first) % rows < count
    }

    /// The partners of `me` among the living PEs. It has none if it is not one of them. Looks at
    /// the PEs of its own host, of the living host before it, and of the two after it.
    pub(super) fn partners(&self, me: Pe, living: &Living) -> Partners {
        let mut partners = Partners::default();
        if !living.contains(me) {
            return partners;
        }
        partners.rows = self.rows_near(self.row_of(me), living);
        let callees = self.callees(me, living);
        for pe in &callees {
            let is_mutual = self.callees(*pe, living).contains(&me);
            let side =
                if is_mutual && *pe < me { &mut partners.called_by } else { &mut partners.calls };
            side.push(*pe);
        }
        let callers = self.callers(me, living).into_iter().filter(|pe| !callees.contains(pe));
        partners.called_by.extend(callers);
        partners.calls.sort_unstable();
        partners.called_by.sort_unstable();
        partners
    }

    /// The next PE on the host, and one on the next host; `me` must live.
    fn callees(&self, me: Pe, living: &Living) -> SmallVec<[Pe; 2]> {
        let own = self.row_of(me);
        let (before, after) = self.others(me);
        let mut callees = SmallVec::new();
        callees.extend(after.iter().chain(before).copied().find(|pe| living.contains(*pe)));
        if let Some(next) = self.neighbour(own, living, 1) {
            let place = self.place(me, living) % self.living_in(next, living).count();
            callees.extend(self.living_in(next, living).nth(place));
        }
        callees
    }

    /// The PEs that have `me` as a callee: the one before it on its host, and its share of those on
    /// the host before.
    fn callers(&self, me: Pe, living: &Living) -> Vec<Pe> {
        let own = self.row_of(me);
        let (before, after) = self.others(me);
        let mut callers = Vec::new();
        callers.extend(after.iter().chain(before).copied().rfind(|pe| living.contains(*pe)));
        if let Some(before) = self.neighbour(own, living, self.rows.len() - 1) {
            let share = self.living_in(own, living).count();
            let all = self.living_in(before, living);
            callers.extend(all.skip(self.place(me, living)).step_by(share));
        }
        callers
    }

    fn row_of(&self, pe: Pe) -> usize {
        self.row_of[pe.index()] as usize
    }

    /// The PEs of a PE's host before it and after it.
    fn others(&self, pe: Pe) -> (&[Pe], &[Pe]) {
        let row = &self.rows[self.row_of(pe)];
        let at = row.partition_point(|other| *other < pe);
        (&row[..at], &row[at + 1..])
    }

    /// The position of a PE among the living PEs of its host.
    fn place(&self, pe: Pe, living: &Living) -> usize {
        self.others(pe).0.iter().filter(|other| living.contains(**other)).count()
    }

    /// The nearest other row that has living PEs, going round by `step` rows at a time.
    fn neighbour(&self, own: usize, living: &Living, step: usize) -> Option<usize> {
        let count = self.rows.len();
        let others = (1..count).map(|steps| (own + steps * step) % count);
        others.into_iter().find(|row| self.living_in(*row, living).next().is_some())
    }

    /// The rows from the living one before this one to the living one after it, and those without
    /// living PEs between them: the first, and how many there are. (The row after next matters for
    /// who dials whom if it is this one; but then the row before this one has died out.)
    fn rows_near(&self, own: usize, living: &Living) -> (usize, usize) {
        let rows = self.rows.len();
        let before = self.neighbour(own, living, rows - 1).unwrap_or(own);
        let after = self.neighbour(own, living, 1).unwrap_or(own);
        let between = |from: usize, to: usize| (to + rows - from) % rows;
        (before, (between(before, own) + between(own, after) + 1).min(rows))
    }

    fn living_in<'a>(&'a self, row: usize, living: &'a Living) -> impl Iterator<Item = Pe> + 'a {
        self.rows[row].iter().copied().filter(|pe| living.contains(*pe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use ultramarine_topology::Place;

    fn topology(host_of: &[u8]) -> Topology {
        let place = |host: &u8| Place::from_pairs([(LevelKind::Host, &*host.to_string())]);
        let places: Vec<_> = host_of.iter().map(place).collect();
        Topology::new(&places, &vec![1; places.len()]).unwrap()
    }

    fn numbers(pes: &[Pe]) -> Vec<u32> {
        pes.iter().map(|pe| pe.number()).collect()
    }

    #[test]
    fn two_hosts_of_three() {
        let hosts = HostRings::new(&topology(&[0, 0, 0, 1, 1, 1]));
        let partners = |me, dead: &[Pe]| {
            let partners = hosts.partners(Pe::new(me), &Living::new(6, dead));
            (numbers(&partners.calls), numbers(&partners.called_by))
        };
        assert_eq!(partners(0, &[]), (vec![1, 3], vec![2]));
        assert_eq!(partners(4, &[]), (vec![5], vec![1, 3]));
        assert_eq!(partners(0, &[Pe::new(3)]), (vec![1, 4], vec![2]));
        // On the second host only PE 4 is left. All of the first host dial it; it would dial PE 0.
        let dead = [Pe::new(3), Pe::new(5)];
        assert_eq!(partners(4, &dead), (vec![], vec![0, 1, 2]));
        assert_eq!(partners(2, &dead), (vec![0, 4], vec![1]));
        assert_eq!(partners(4, &[3, 4, 5].map(Pe::new)), (vec![], vec![]));
        assert_eq!(partners(1, &[0, 3, 4, 5].map(Pe::new)), (vec![2], vec![]));
    }

    proptest! {
        #[test]
        fn each_pe_of_a_rack_is_watched_from_outside(
            racks in prop::collection::vec(prop::collection::vec(1..5_u8, 1..9), 2..9),
        ) {
            let mut places = Vec::new();
            for (rack, hosts) in racks.iter().enumerate() {
                for (host, pes) in hosts.iter().enumerate() {
                    let (rack, host) = (rack.to_string(), host.to_string());
                    let labels = [(LevelKind::Switch, &*rack), (LevelKind::Host, &*host)];
                    places.extend(vec![Place::from_pairs(labels); usize::from(*pes)]);
                }
            }
            let topology = Topology::new(&places, &vec![1; places.len()]).unwrap();
            let hosts = HostRings::new(&topology);
            let living = Living::new(topology.pes(), &[]);
            let rack = |pe| &topology.place(pe).labels()[0];
            let host_count = racks.iter().map(Vec::len).sum::<usize>();
            for me in living.iter() {
                let own: usize = rack(me).name.parse().unwrap();
                let partners = hosts.partners(me, &living);
                let is_watched = partners.iter().any(|pe| rack(pe) != rack(me));
                prop_assert!(is_watched || racks[own].len() * 3 > host_count, "{me}");
            }
        }

        #[test]
        fn few_calls_everybody_is_watched_and_all_are_connected(
            host_of in prop::collection::vec(0..8_u8, 1..25),
            dead in prop::collection::vec(1..25_u32, 0..20),
        ) {
            let topology = topology(&host_of);
            let hosts = HostRings::new(&topology);
            let dead: Vec<_> = dead.into_iter().map(Pe::new).collect();
            let living = Living::new(topology.pes(), &dead);
            let all: Vec<Pe> = living.iter().collect();
            let host = |pe| topology.place(pe).host().unwrap().to_owned();
            let host_count = all.iter().map(|pe| host(*pe)).collect::<BTreeSet<_>>().len();
            let mut reached = BTreeSet::from([Pe::ROOT]);
            let mut edges = Vec::new();
            for me in &all {
                let partners = hosts.partners(*me, &living);
                prop_assert!(partners.calls.len() <= 2);
                let both = partners.calls.iter().chain(&partners.called_by);
                let both: Vec<Pe> = both.copied().collect();
                let distinct: BTreeSet<_> = both.iter().collect();
                prop_assert_eq!(distinct.len(), both.len());
                prop_assert!(!both.contains(me));
                // Most deaths change nothing.
                for pe in all.iter().filter(|pe| !hosts.may_change(&partners, **pe)) {
                    let fewer: Vec<_> = dead.iter().copied().chain([*pe]).collect();
                    let fewer = Living::new(topology.pes(), &fewer);
                    prop_assert_eq!(&hosts.partners(*me, &fewer), &partners);
                }
                // What one calls is called by it, and the other way round.
                for pe in &partners.calls {
                    prop_assert!(hosts.partners(*pe, &living).called_by.contains(me));
                }
                for pe in &partners.called_by {
                    prop_assert!(hosts.partners(*pe, &living).calls.contains(me));
                }
                let mates = all.iter().filter(|pe| host(**pe) == host(*me)).count();
                prop_assert!(mates == 1 || both.iter().any(|pe| host(*pe) == host(*me)));
                prop_assert!(host_count == 1 || both.iter().any(|pe| host(*pe) != host(*me)));
                edges.extend(both.into_iter().map(|pe| (*me, pe)));
            }
            for _ in &all {
                for (one, other) in &edges {
                    if reached.contains(one) {
                        reached.insert(*other);
                    }
                }
            }
            prop_assert_eq!(reached.into_iter().collect::<Vec<_>>(), all);
        }
    }

    /// Run with `cargo test --release -p ultramarine-runtime --no-default-features --lib \
    /// costs_of_a_large_job -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn costs_of_a_large_job() {
        use crate::protocol::{
            Death, FishingSettings, Heading, Membership, Node, Notice, ProtocolSettings,
        };
        use std::sync::Arc;
        use std::time::{Duration, Instant};
        use ultramarine_topology::Distance;

        fn cost<T>(what: &str, make: impl FnOnce() -> T) -> T {
            let (mut made, begin) = (None, Instant::now());
            let memory = allocation_counter::measure(|| made = Some(make()));
            let (kept, most) = (memory.bytes_current, memory.bytes_max);
            println!("  {what}: {:.1?}, {kept} bytes kept, {most} at most", begin.elapsed());
            made.unwrap()
        }
        for pes in [1000, 10_000, 100_000, 131_072] {
            println!("{pes} PEs, 16 on each host, 32 hosts in each rack");
            let place = |pe: u32| {
                let (rack, host) = (format!("r{}", pe / 512), format!("h{}", pe / 16));
                Place::from_pairs([(LevelKind::Switch, &*rack), (LevelKind::Host, &*host)])
            };
            let places: Vec<_> = (0..pes).map(place).collect();
            let powers = vec![16; places.len()];
            let topology = cost("topology", || Topology::new(&places, &powers).unwrap());
            let topology = Arc::new(topology);
            let me = Pe::new(pes / 2);
            let mut random = || 7u64;
            let basis = || topology.equidistant_basis(me, Distance::ONE, &mut random);
            println!("    a basis of {} balls", cost("its basis", basis).len());
            let rings = cost("rings", || HostRings::new(&topology));
            let settings = || ProtocolSettings::new(FishingSettings::for_threads(16));
            let node = || Node::new(me, topology.clone(), settings());
            let node = cost("node", node);
            let mut member =
                cost("membership", || Membership::new(me, pes, Duration::from_secs(2)));
            let dead = (1..=pes / 100).map(|n| Death::silent(Pe::new(n * 100 - 1))).collect();
            let bulletin = Notice::Bulletin { of: Heading::FIRST, after: 0, dead };
            cost("membership, 1 % dead", || {
                member.handle(Duration::ZERO, Pe::ROOT, bulletin, &mut |_, _| {});
            });
            drop(cost("partners", || rings.partners(me, member.living())));
            let heard = cost("the living, 1 % dead", || member.living().clone());
            drop((heard, node));
        }
    }
}
