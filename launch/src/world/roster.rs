//! What all processes have to know about all: what rank 0 makes of the rank infos.
//!
//! Of 10^5 processes on 6,250 hosts this is 0.46 MB, where the rank infos are 10 MB.

use super::rank_info::RankInfo;
use crate::error::StartError;
use crate::faults::DeathPlan;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use ultramarine_environment::interface::{Interface, fastest_common};
use ultramarine_topology::{Place, Topology};

/// A job, as all its processes know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Roster {
    /// Each once, and by rank which of them a process has.
    places: Vec<Place>,
    place_of_rank: Vec<u32>,
    /// By rank.
    worker_threads: Vec<u32>,
    /// How fast a worker thread of each process is, if all have measured it.
    speeds: Option<Vec<u64>>,
    /// Where they call each other, unless the user has chosen.
    pub(super) network: Network,
    /// The deaths that were asked for, if any.
    pub(super) faults: Option<DeathPlan>,
}

/// In which network processes call each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Network {
    /// They are on one host.
    Loopback,
    /// All hosts are in it.
    Common(IpNet),
    /// There is none that all hosts are in: each has the address that its name stands for.
    ByName,
}

impl Roster {
    /// The job of these processes, by rank.
    pub(super) fn of(infos: &[RankInfo]) -> Result<Roster, StartError> {
        super::rank_info::compare(infos)?;
        check_choice(infos)?;
        let mut known = HashMap::new();
        let mut places = Vec::new();
        let number = |place: &Place| {
            *known.entry(place.clone()).or_insert_with(|| {
                places.push(place.clone());
                places.len() as u32 - 1
            })
        };
        let place_of_rank = RankInfo::places(infos).map(number).collect();
        let faults = infos[0].faults.as_ref();
        let roster = Roster {
            place_of_rank,
            places,
            worker_threads: RankInfo::worker_threads(infos),
            speeds: infos.iter().map(|own| own.speed).collect(),
            network: Network::of(infos),
            faults: faults.map(|faults| faults.plan(infos.len() as u32)).transpose()?,
        };
        // What is wrong with it is said once.
        roster.topology()?;
        Ok(roster)
    }

    pub(super) fn topology(&self) -> Result<Topology, StartError> {
        let place = |place: &u32| &self.places[*place as usize];
        let places: Vec<&Place> = self.place_of_rank.iter().map(place).collect();
        Ok(Topology::new(&places, &self.powers())?)
    }

    /// How many worker threads the process of this rank has.
    pub(super) fn worker_threads(&self, rank: usize) -> usize {
        self.worker_threads[rank] as usize
    }

    /// The compute power of each process: its worker threads, times their speed if all have
    /// measured it.
    fn powers(&self) -> Vec<u64> {
        let threads = self.worker_threads.iter().map(|threads| u64::from(*threads));
        match &self.speeds {
            Some(speeds) => threads.zip(speeds).map(|(threads, speed)| threads * speed).collect(),
            None => threads.collect(),
        }
    }
}

/// An error if the user has chosen interfaces by which hosts cannot call each other.
fn check_choice(infos: &[RankInfo]) -> Result<(), StartError> {
    let is_one_host = infos.iter().all(|own| own.host == infos[0].host);
    let mut known: HashMap<IpAddr, &str> = HashMap::new();
    let chosen = infos.iter().enumerate().filter(|(_, own)| own.interface.is_some());
    for (rank, own) in chosen.filter(|_| !is_one_host) {
        let Some(interface) = own.interfaces.first() else { continue };
        let other = *known.entry(interface.address.addr()).or_insert(&own.host);
        if !interface.is_for_others() || other != own.host {
            let host = own.host.clone();
            let reason = format!(
                "other hosts cannot call it by {interface}, which --interface or \
                 ULTRAMARINE_INTERFACE has chosen"
            );
            return Err(StartError::Rank { rank, host, reason });
        }
    }
    Ok(())
}

impl Network {
    fn of(infos: &[RankInfo]) -> Network {
        // The first rank of each host counts for all.
        let host = |own: &RankInfo| (own.host.clone(), own.interfaces.clone());
        let mut hosts: HashMap<String, Vec<Interface>> = infos.iter().rev().map(host).collect();
        if hosts.len() == 1 {
            return Network::Loopback;
        }
        // Rank 0 says which comes first among equals.
        let first = hosts.remove(&infos[0].host).into_iter();
        let hosts: Vec<_> = first.chain(hosts.into_values()).collect();
        let common = fastest_common(&hosts);
        common.map_or(Network::ByName, |interface| Network::Common(interface.address.trunc()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::rank_info::tests::{on_network, rank_info};
    use ultramarine_runtime::addresses::Addresses;
    use ultramarine_runtime::wire;

    /// Both are a few bytes for each process. Run with `--nocapture` it prints how many.
    #[test]
    fn what_all_hear_is_much_shorter_than_what_it_is_made_of() {
        for hosts in [4, 16, 63, 6250_u32] {
            let name = |host| format!("r{}c{}n{:02}", host / 64, host / 8 % 8, host % 8);
            let of_host = |host| on_network(rank_info(&name(host), "0-15", 16, None), host);
            let infos: Vec<_> =
                (0..hosts).flat_map(|host| std::iter::repeat_n(of_host(host), 16)).collect();
            let length = |rank_info| wire::encode(rank_info).expect("short").len();
            let told = infos.iter().map(length).sum::<usize>();

            let roster = Roster::of(&infos).expect("they agree");
            let heard = wire::encode(&roster).expect("short");
            let read: Roster = wire::decode(&heard).expect("whole");
            let pes = read.topology().expect("they agree").pes();
            let ip = |pe: u32| std::net::Ipv4Addr::from_bits((10 << 24) + pe / 16);
            let address = |pe: u32| (ip(pe), 32_768 + (pe * 7919 % 28_000) as u16).into();
            let addresses: Addresses = (0..pes).map(address).collect();
            let addresses = 2 * wire::encode(&addresses).expect("short").len();
            println!(
                "{pes} PEs: rank infos: {told} bytes; roster: {}; addresses: {addresses}",
                heard.len()
            );
            assert_eq!(pes, hosts * 16);
            assert!(heard.len() <= 8 * pes as usize && addresses <= 8 * pes as usize + 64);
        }
    }

    #[test]
    fn power_is_threads_times_speed_if_all_know_it() {
        let of = |threads, speed| {
            let mut own = rank_info("a", "0", 1, Some(threads));
            own.speed = speed;
            own
        };
        let powers = |infos: &[_]| Roster::of(infos).expect("they agree").powers();
        assert_eq!(powers(&[of(2, Some(300)), of(1, Some(500))]), [600, 500]);
        assert_eq!(powers(&[of(2, Some(300)), of(1, None)]), [2, 1]);
    }

    #[test]
    fn a_chosen_interface_must_reach_other_hosts() {
        let chosen = |host: &str, address: &str| {
            let mut own = rank_info(host, "0", 1, None);
            let address = address.parse().expect("an address");
            own.interface = Some("x".to_owned());
            own.interfaces = vec![Interface { name: "x".to_owned(), address, speed_mbits: 0 }];
            own
        };
        let of = |one: &str, other: &str| Roster::of(&[chosen("a", one), chosen("b", other)]);
        of("10.0.0.1/24", "10.0.0.2/24").expect("they reach each other");
        for bad in ["127.0.0.1/8", "172.17.0.1/16", "169.254.0.1/16"] {
            let refused = of(bad, bad).expect_err(bad).to_string();
            assert!(refused.contains("other hosts cannot call it by x"), "{refused}");
        }
        Roster::of(&[chosen("a", "127.0.0.1/8"), chosen("a", "127.0.0.1/8")]).expect("one host");
    }

    #[test]
    fn hosts_call_each_other_in_the_network_that_they_share() {
        let alone = |host: &str| rank_info(host, "0", 1, None);
        let of = |infos: &[RankInfo]| Roster::of(infos).expect("they agree").network;
        assert_eq!(of(&[alone("a"), alone("a")]), Network::Loopback);
        assert_eq!(of(&[alone("a"), alone("b")]), Network::ByName);
        let shared = Network::Common("10.1.0.0/16".parse().expect("a network"));
        let [a, b] = [("a", 1), ("b", 2)].map(|(host, number)| on_network(alone(host), number));
        assert_eq!(of(&[a.clone(), b.clone()]), shared);
        assert_eq!(of(&[a.clone(), a.clone(), b.clone()]), shared, "two of a host count once");
        assert_eq!(of(&[a, b, alone("c")]), Network::ByName);
    }
}
