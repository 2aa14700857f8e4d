//! Which PEs hold a share of the table: an order of all PEs for each share, which follows from the
//! hierarchy alone. The first that lives is the owner, and the next ones have copies.
//!
//! The order begins with the share's home and goes round the hosts, one PE of each, again and
//! again. So the owner and its copies are on different hosts, as far as there are that many. Where
//! hosts have as many PEs, each PE has the first copy of one share. A death only moves others
//! forward: a PE that holds a share holds it for good, and one that becomes the owner has had a
//! copy.

use std::collections::BTreeSet;
use ultramarine_topology::{Pe, Topology};

/// The PEs in the order of a share. It ends with the last.
pub(super) struct Order<'a> {
    topology: &'a Topology,
    home: Pe,
    /// Where the home stands on its host.
    place: u32,
    /// The first PE of the host that comes next, and how often each host has come before.
    host: Pe,
    round: u32,
    left: u32,
}

impl<'a> Order<'a> {
    pub(super) fn of(topology: &'a Topology, home: Pe) -> Self {
        let host = Pe::new(topology.host_of(home).numbers().start);
        let place = home.number() - host.number();
        Order { topology, home, place, host, round: 0, left: topology.pes() }
    }
}

impl Iterator for Order<'_> {
    type Item = Pe;

    fn next(&mut self) -> Option<Pe> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let host = self.topology.host_of(self.host).numbers();
            let (size, round) = (host.end - host.start, self.round);
            self.host = Pe::new(if host.end == self.topology.pes() { 0 } else { host.end });
            self.round += u32::from(self.topology.host_of(self.home).contains(self.host));
            if round < size {
                return Some(Pe::new(host.start + (self.place % size + round) % size));
            }
        }
    }
}

/// The living holders of a share: the owner, and this number of copies, as far as there are others.
pub(super) fn holders(
    topology: &Topology,
    share: Pe,
    copies: usize,
    dead: &BTreeSet<Pe>,
) -> Vec<Pe> {
    Order::of(topology, share).filter(|pe| !dead.contains(pe)).take(1 + copies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ultramarine_topology::{LevelKind, Place};

    fn topology(sizes: &[u32]) -> Topology {
        let place =
            |host: usize| Place::from_pairs([(LevelKind::Host, &format!("h{host:02}")[..])]);
        let places: Vec<_> = (0..)
            .zip(sizes)
            .flat_map(|(host, size)| (0..*size).map(move |_| place(host)))
            .collect();
        Topology::new(&places, &vec![1; places.len()]).unwrap()
    }

    proptest! {
        #[test]
        fn each_pe_comes_once_and_hosts_take_turns(
            sizes in prop::collection::vec(1..5_u32, 1..6),
            home in 0..30_u32,
        ) {
            let topology = topology(&sizes);
            let home = Pe::new(home % topology.pes());
            let order: Vec<Pe> = Order::of(&topology, home).collect();
            prop_assert_eq!(order[0], home);
            let all: BTreeSet<Pe> = order.iter().copied().collect();
            prop_assert_eq!((order.len(), all.len()), (topology.pes() as usize, order.len()));
            let hosts: BTreeSet<_> = order[..sizes.len()]
                .iter()
                .map(|pe| topology.host_of(*pe).numbers().start)
                .collect();
            prop_assert_eq!(hosts.len(), sizes.len(), "{:?}", order);
        }

        #[test]
        fn each_pe_has_the_first_copy_of_one_share(hosts in 1..5_usize, size in 1..5_u32) {
            let topology = topology(&vec![size; hosts]);
            prop_assume!(topology.pes() > 1);
            let copy = |share| holders(&topology, Pe::new(share), 1, &BTreeSet::new())[1];
            let copies: BTreeSet<Pe> = (0..topology.pes()).map(copy).collect();
            prop_assert_eq!(copies.len(), topology.pes() as usize);
        }
    }

    #[test]
    fn a_death_moves_those_that_come_next_forward() {
        let topology = topology(&[2, 2, 2]);
        let of = |dead: &[u32]| {
            let dead = dead.iter().copied().map(Pe::new).collect();
            holders(&topology, Pe::new(1), 1, &dead)
        };
        assert_eq!(of(&[]), [1, 3].map(Pe::new));
        assert_eq!(of(&[1]), [3, 5].map(Pe::new));
        assert_eq!(of(&[3, 5]), [1, 0].map(Pe::new));
        assert_eq!(of(&[0, 1, 2, 3, 5]), [4].map(Pe::new));
    }
}
