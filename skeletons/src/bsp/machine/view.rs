//! Which PEs take part, and which ranks each of them has: what follows from the dead of whom a PE
//! knows, and from nothing else. So PEs that know of the same dead agree on it without a word. (All
//! may agree on other ranges of ranks, see `balance`: that holds up to the next death.)
//!
//! The ranks are spread evenly over all PEs, in the order of their numbers, which is that of the
//! hierarchy. Those of dead PEs go to the nearer of the next living ones on both sides; where both
//! are as near, each gets half. (Each PE has a range of ranks all the same: in an ultrametric
//! space, of two dead neighbours the left one is never the only one that goes to the right.)

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use ultramarine_topology::{Pe, Topology};

/// Tells the views of a run from each other. Later ones know of more dead.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct ViewId {
    dead: u32,
    /// How often ranks have moved since the last death.
    moves: u32,
    digest: u64,
}

impl ViewId {
    fn of(dead: &BTreeSet<Pe>) -> Self {
        let digest = dead.iter().fold(0u64, |digest, pe| {
            (digest ^ u64::from(pe.number())).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        ViewId { dead: dead.len() as u32, moves: 0, digest }
    }

    /// Whether a PE of this view may come to that one.
    pub(super) fn may_become(self, other: ViewId) -> bool {
        (self.dead, self.moves) < (other.dead, other.moves)
    }
}

/// See the [module](self). (It takes no more memory than there are dead: others follow from those.)
#[derive(Clone)]
pub(super) struct View {
    pub(super) id: ViewId,
    topology: Arc<Topology>,
    ranks: u32,
    /// Ascending.
    dead: Arc<[u32]>,
    /// Where this PE stands among the members.
    place: usize,
    own: Range<u32>,
    /// The first rank of each member, if ranks have moved.
    bounds: Option<Arc<[u32]>>,
}

impl View {
    /// What `me` sees if these PEs are dead.
    pub(super) fn new(me: Pe, ranks: u32, topology: &Arc<Topology>, dead: &BTreeSet<Pe>) -> Self {
        let mut view = View {
            id: ViewId::of(dead),
            topology: topology.clone(),
            ranks,
            dead: dead.iter().map(|pe| pe.number()).collect(),
            place: 0,
            own: 0..0,
            bounds: None,
        };
        view.place = view.place_of(me);
        view.own = view.bound(view.place)..view.bound(view.place + 1);
        view
    }

    /// The same PEs, whose ranges begin with these ranks.
    pub(super) fn with_bounds(&self, bounds: Arc<[u32]>) -> Self {
        let mut view = self.clone();
        view.id.moves += 1;
        view.bounds = Some(bounds);
        view.own = view.bound(view.place)..view.bound(view.place + 1);
        view
    }

    /// The number of members.
    pub(super) fn len(&self) -> usize {
        self.topology.pes() as usize - self.dead.len()
    }

    /// The number of members before a PE.
    fn place_of(&self, pe: Pe) -> usize {
        pe.index() - self.dead.partition_point(|dead| *dead < pe.number())
    }

    fn member(&self, place: usize) -> Pe {
        // Before the dead PE of this number.
        let (mut from, mut to) = (0, self.dead.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            if self.dead[middle] as usize - middle <= place {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Pe::new((place + from) as u32)
    }

    /// The first rank of a PE if none is dead. (If there are fewer ranks than PEs, the first PE has
    /// one: mostly that of the program, which hears there how far it is.)
    fn share(&self, pe: u32) -> u32 {
        (u64::from(self.ranks) * u64::from(pe)).div_ceil(u64::from(self.topology.pes())) as u32
    }

    /// The first rank of a member; behind the last, the number of ranks.
    fn bound(&self, place: usize) -> u32 {
        if place == 0 || place >= self.len() {
            return if place == 0 { 0 } else { self.ranks };
        }
        if let Some(bounds) = &self.bounds {
            return bounds[place];
        }
        let [member, next] = [place - 1, place].map(|place| self.member(place));
        // Between these two are the ranks of dead PEs that are as near to both.
        let (mut from, mut to) = (self.share(member.number() + 1), self.share(next.number()));
        for lost in member.number() + 1..next.number() {
            let near = |pe| self.topology.distance(Pe::new(lost), pe);
            match near(member).cmp(&near(next)) {
                Ordering::Less => from = self.share(lost + 1),
                Ordering::Equal => {}
                Ordering::Greater => to = to.min(self.share(lost)),
            }
        }
        from + (to - from) / 2
    }

    /// The ranks of this PE.
    pub(super) fn own(&self) -> Range<u32> {
        self.own.clone()
    }

    /// The PE that has a rank.
    pub(super) fn owner(&self, rank: u32) -> Pe {
        if let Some(bounds) = &self.bounds {
            return self.member(bounds.partition_point(|first| *first <= rank) - 1);
        }
        let pes = u64::from(self.topology.pes());
        // The last PE whose share does not begin behind the rank.
        let first = (u64::from(rank) * pes / u64::from(self.ranks)) as u32;
        if self.dead.binary_search(&first).is_err() {
            return Pe::new(first);
        }
        let next = self.place_of(Pe::new(first));
        let is_before = next > 0 && rank < self.bound(next);
        self.member(if is_before || next == self.len() { next - 1 } else { next })
    }

    /// The member that is this far behind this PE, round to the first after the last.
    pub(super) fn behind(&self, far: usize) -> Pe {
        self.member((self.place + far) % self.len())
    }

    /// Whether this PE is the first member.
    pub(super) fn is_first(&self) -> bool {
        self.place == 0
    }

    /// Whether the end of a meeting of the members implies that a member has what this PE had sent
    /// to it before: this PE speaks to it there, and messages between two PEs keep their order.
    pub(super) fn hears_in_meeting(&self, pe: Pe) -> bool {
        let far = (self.place_of(pe) + self.len() - self.place) % self.len();
        far.is_power_of_two() || far == 0
    }

    /// The PE that keeps copies of this PE's checkpoints: one on another host if there is one, as
    /// far behind this PE as its host has members, so that each PE keeps the copies of few.
    pub(super) fn partner(&self, topology: &Topology) -> Option<Pe> {
        let host = topology.host_of(self.member(self.place));
        let [first, end] = [host.numbers().start, host.numbers().end].map(Pe::new);
        let neighbours = self.place_of(end) - self.place_of(first);
        let on_another = (neighbours..self.len()).chain(1..neighbours.min(self.len()));
        let on_another = on_another.map(|far| self.behind(far)).find(|pe| !host.contains(*pe));
        on_another.or_else(|| (self.len() > 1).then(|| self.behind(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ultramarine_topology::{Distance, LevelKind, Place};

    /// Hosts of two PEs each, in racks of two hosts.
    fn racks(pes: u32) -> Arc<Topology> {
        let place = |pe: u32| {
            let (rack, host) = (format!("r{}", pe / 4), format!("h{}", pe / 2));
            Place::from_pairs([(LevelKind::Switch, &rack[..]), (LevelKind::Host, &host)])
        };
        let places: Vec<_> = (0..pes).map(place).collect();
        Arc::new(Topology::new(&places, &vec![1; pes as usize]).unwrap())
    }

    proptest! {
        #[test]
        fn each_rank_has_one_living_pe_whoever_has_died(
            pes in 1..14_u32,
            ranks in 1..40_u32,
            dead in prop::collection::btree_set(0..14_u32, 0..10),
        ) {
            let topology = racks(pes);
            let dead: BTreeSet<Pe> = dead.into_iter().filter(|pe| *pe < pes).map(Pe::new).collect();
            let living: Vec<Pe> = (0..pes).map(Pe::new).filter(|pe| !dead.contains(pe)).collect();
            let mut next = 0;
            for &me in &living {
                let view = View::new(me, ranks, &topology, &dead);
                prop_assert_eq!(view.own().start, next);
                next = view.own().end;
                prop_assert!(view.own().all(|rank| view.owner(rank) == me));
                let partner = view.partner(&topology);
                prop_assert_eq!(partner.is_some(), living.len() > 1);
                let is_near = |pe: &Pe| topology.host_of(me).contains(*pe);
                if let Some(partner) = partner {
                    prop_assert!(partner != me && living.contains(&partner));
                    prop_assert!(!is_near(&partner) || living.iter().all(is_near));
                }
            }
            prop_assert!(living.is_empty() || next == ranks);
        }
    }

    #[test]
    fn the_ranks_of_the_dead_go_to_the_nearest() {
        let topology = racks(8);
        assert!(topology.distance(Pe::new(2), Pe::new(3)) < Distance::ONE);
        let own = |me, dead: &[u32]| {
            let dead = dead.iter().copied().map(Pe::new).collect();
            View::new(Pe::new(me), 16, &topology, &dead).own()
        };
        assert_eq!(own(3, &[2]), 4..8, "from its own host");
        assert_eq!((own(1, &[2]), own(1, &[2, 3])), (2..4, 2..8), "from its own rack");
        assert_eq!(
            (own(0, &[]), own(0, &[1, 2, 3]), own(7, &[0, 1, 2, 3, 4, 5, 6])),
            (0..2, 0..8, 0..16)
        );
    }
}
