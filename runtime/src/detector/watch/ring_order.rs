//! The order of the hosts in their ring: neighbours are far apart in the machine.
//!
//! What fails at once is mostly a part of the machine, such as a rack: it loses its power, or its
//! switch. PEs are numbered in the order of the hierarchy, so such a part is a run of hosts with
//! consecutive numbers. If neighbours in the ring were neighbours in number, only the hosts at the
//! two ends of a dead rack would be watched by living hosts. So the ring goes on by 0.38 of all
//! hosts at a time, counted round:
//!
//! ```text
//! 16 hosts, 6 at a time:  0 6 12 2 8 14 4 10   1 7 13 3 9 15 5 11
//! ```
//!
//! Where it comes back to a host that it has, it goes on with the next. Tests hold these laws for
//! all numbers of hosts:
//!
//! - *Half of the machine.* In a run of at most half of the hosts, each has a neighbour outside.
//! - *A third.* In a run of at most a third of the hosts, each has both neighbours outside.
//! - *Two racks.* If each is less than a fifth of the hosts, each host in them has a neighbour
//!   outside both. So a rack is watched from outside also after the death of another.
//!
//! The order follows from the number of hosts alone: it is the same at all PEs, racks may be
//! unequal, and need not be known. 0.38 is the square of the golden ratio 0.618: multiples of it
//! stay apart for longest, counted round (Knuth, vol. 3, §6.4).

/// By place in the ring, the number of the host.
pub(super) fn ring_order(hosts: usize) -> Vec<u32> {
    let step = ((hosts * 382 + 500) / 1000).max(1);
    let mut order = Vec::with_capacity(hosts);
    // A round comes back to the host where it began.
    let mut begun = 0;
    while order.len() < hosts {
        let mut host = begun;
        loop {
            // There are no more hosts than PEs.
            order.push(host as u32);
            host = (host + step) % hosts;
            if host == begun {
                break;
            }
        }
        begun += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    /// The hosts with their two neighbours in the ring.
    fn ring(hosts: usize) -> Vec<(u32, [u32; 2])> {
        let order = ring_order(hosts);
        let at = |place: usize| order[place % hosts];
        (0..hosts).map(|place| (at(place), [at(place + hosts - 1), at(place + 1)])).collect()
    }

    /// How many of a host's neighbours are in none of these runs of hosts; the fewest of any host
    /// in them.
    fn fewest_outside(ring: &[(u32, [u32; 2])], runs: &[Range<u32>]) -> usize {
        let is_in = |host: &u32| runs.iter().any(|run| run.contains(host));
        let inner = ring.iter().filter(|(host, _)| is_in(host));
        let outside =
            inner.map(|(_, neighbours)| neighbours.iter().filter(|host| !is_in(host)).count());
        outside.min().unwrap_or(2)
    }

    #[test]
    fn sixteen_hosts() {
        assert_eq!(ring_order(16), [0, 6, 12, 2, 8, 14, 4, 10, 1, 7, 13, 3, 9, 15, 5, 11]);
        assert_eq!((ring_order(0), ring_order(1), ring_order(2)), (vec![], vec![0], vec![0, 1]));
    }

    #[test]
    fn each_host_is_in_the_ring_once() {
        for hosts in 0..500 {
            let mut order = ring_order(hosts);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..hosts as u32), "{hosts}");
        }
    }

    #[test]
    fn a_part_of_the_machine_is_watched_from_outside() {
        for hosts in 2..120_u32 {
            let ring = ring(hosts as usize);
            for (length, least) in [(hosts / 2, 1), (hosts / 3, 2)] {
                for first in 0..=hosts - length {
                    let run = first..first + length;
                    assert!(fewest_outside(&ring, &[run]) >= least, "{length} of {hosts}: {first}");
                }
            }
        }
    }

    #[test]
    fn two_racks_are_watched_from_outside() {
        for hosts in 10..120_u32 {
            let ring = ring(hosts as usize);
            let length = (hosts - 1) / 5;
            let rack = |first: u32| first..first + length;
            for one in 0..=hosts - length {
                for other in one..=hosts - length {
                    let racks = [rack(one), rack(other)];
                    assert!(fewest_outside(&ring, &racks) >= 1, "{racks:?} of {hosts}");
                }
            }
        }
    }
}
