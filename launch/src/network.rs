//! The networks that a host is on, and which of them the PEs of a job call each other in.
//!
//! MPI finds its network itself. The job's own TCP connections (those of the detector, and all once
//! a process has died) go where `--interface` says; if it says nothing, over the fastest network
//! that all hosts are on. The addresses that host names stand for are taken only if there is none:
//! often they are of a slow network for management.

use crate::error::StartError;
#[cfg(any(feature = "mpi", test))]
use std::collections::HashSet;
use std::sync::OnceLock;
use ultramarine_environment::interface::{Interface, InterfaceChoice};

/// The interfaces by which others may call this process: the one that was chosen, or all that
/// others may be able to reach.
pub(crate) fn usable(choice: Option<&InterfaceChoice>) -> Result<Vec<Interface>, StartError> {
    let all = Interface::all().unwrap_or_else(|error| {
        tracing::info!("the network interfaces of this host are not known: {error}");
        Vec::new()
    });
    let Some(choice) = choice else {
        return Ok(all.into_iter().filter(Interface::is_for_others).collect());
    };
    let chosen = choice.of(&all).cloned().ok_or_else(|| {
        let all: Vec<_> = all.iter().map(Interface::to_string).collect();
        StartError::Options(format!(
            "no network interface of this host is `{choice}`, as --interface or \
             ULTRAMARINE_INTERFACE has it; there is {}",
            all.join(", ")
        ))
    })?;
    Ok(vec![chosen])
}

/// The fastest network that all of these hosts are on, with its slowest interface there: the first
/// of those that are equally fast, as the first host has them, version 4 before version 6. A
/// network in which two hosts have the same address does not count: these are two networks of one
/// name, such as those of the hosts' containers.
#[cfg(any(feature = "mpi", test))]
pub(crate) fn fastest_common<'a>(hosts: &'a [Vec<Interface>]) -> Option<&'a Interface> {
    let (first, _) = hosts.split_first()?;
    let mut best: Option<&Interface> = None;
    for candidate in first.iter().filter(|interface| interface.is_for_others()) {
        let network = candidate.address.trunc();
        let own = |host: &'a Vec<Interface>| host.iter().find(|own| own.address.trunc() == network);
        let members: Option<Vec<_>> = hosts.iter().map(own).collect();
        let Some(members) = members else { continue };
        let addresses: HashSet<_> = members.iter().map(|own| own.address.addr()).collect();
        if addresses.len() < hosts.len() {
            continue;
        }
        let slowest = members.into_iter().min_by_key(|own| own.speed_mbits);
        let rank = |of: &Interface| (of.speed_mbits, of.address.addr().is_ipv4());
        best = match (best, slowest) {
            (Some(best), Some(slowest)) if rank(slowest) > rank(best) => Some(slowest),
            (None, slowest) => slowest,
            (best, _) => best,
        };
    }
    best
}

static OF_THIS_JOB: OnceLock<String> = OnceLock::new();

/// Records the network in which other processes connect to this one.
#[cfg(feature = "mpi")]
pub(crate) fn set_network_of_this_job(network: String) {
    // A process is part of one job at most.
    let _ = OF_THIS_JOB.set(network);
}

/// In which network the PEs of this process's job call each other, in words; `None` if they are
/// threads of one process.
pub fn of_this_job() -> Option<&'static str> {
    OF_THIS_JOB.get().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str, speed_mbits: u32) -> Interface {
        let address = address.parse().expect("an address");
        Interface { name: name.to_owned(), address, speed_mbits }
    }

    /// A host with networks for management, for computing, and for its containers.
    fn host(number: u8) -> Vec<Interface> {
        let at = |network: &str| format!("{network}.{number}/24");
        vec![
            interface("lo", "127.0.0.1/8", 0),
            interface("eth0", &at("10.0.0"), 1000),
            interface("ib0", &at("10.1.0"), 100_000),
            interface("docker0", "172.17.0.1/16", 200_000),
        ]
    }

    fn network_of(hosts: &[Vec<Interface>]) -> Option<String> {
        fastest_common(hosts).map(|interface| interface.address.trunc().to_string())
    }

    #[test]
    fn the_fastest_that_all_are_on_is_taken() {
        let mut hosts = [host(1), host(2), host(3)];
        assert_eq!(network_of(&hosts).as_deref(), Some("10.1.0.0/24"));
        // One has it slower: it counts as fast as that.
        hosts[1][2].speed_mbits = 100;
        assert_eq!(network_of(&hosts).as_deref(), Some("10.0.0.0/24"));
        hosts[2].remove(2);
        assert_eq!(network_of(&hosts).as_deref(), Some("10.0.0.0/24"));
        hosts[0].remove(1);
        assert_eq!(network_of(&hosts), None, "there is none that all are on");
        assert_eq!(network_of(&[]), None);
    }

    #[test]
    fn of_equally_fast_ones_the_first_is_taken_and_version_4_before_6() {
        let both = |number| {
            vec![
                interface("eth0", &format!("fd00::{number}/64"), 0),
                interface("eth0", &format!("fe80::{number}/64"), 0),
                interface("eth1", &format!("10.2.0.{number}/24"), 0),
                interface("eth2", &format!("10.3.0.{number}/24"), 0),
            ]
        };
        assert_eq!(network_of(&[both(1), both(2)]).as_deref(), Some("10.2.0.0/24"));
        let six = |number| both(number)[..2].to_vec();
        assert_eq!(network_of(&[six(1), six(2)]).as_deref(), Some("fd00::/64"));
        let local = |number| both(number)[1..2].to_vec();
        assert_eq!(network_of(&[local(1), local(2)]), None);
    }
}
