//! The network interfaces of a host, how a user names one of them, and which network hosts share.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest name that Linux gives an interface, in bytes.
const NAME_BYTES_MAX: usize = 15;

/// An address of a host, and the network interface that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// As in `ip address`.
    pub name: String,
    /// Its address, with the length of its network's prefix.
    pub address: IpNet,
    /// In Mbit/s; 0 if the system does not know it.
    pub speed_mbits: u32,
}

impl Interface {
    /// Those of this host that are up, in the order in which the system has them.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn all() -> std::io::Result<Vec<Interface>> {
        let is_up = |found: &if_addrs::Interface| {
            !matches!(
                found.oper_status,
                if_addrs::IfOperStatus::Down
                    | if_addrs::IfOperStatus::NotPresent
                    | if_addrs::IfOperStatus::LowerLayerDown
            )
        };
        let interface = |found: if_addrs::Interface| {
            let prefix = match &found.addr {
                if_addrs::IfAddr::V4(address) => address.prefixlen,
                if_addrs::IfAddr::V6(address) => address.prefixlen,
            };
            let address = IpNet::new(found.ip(), prefix).ok()?;
            Some(Interface { speed_mbits: speed_mbits(&found.name), name: found.name, address })
        };
        Ok(if_addrs::get_if_addrs()?.into_iter().filter(is_up).filter_map(interface).collect())
    }

    /// Whether other hosts may be able to call this address.
    pub fn is_for_others(&self) -> bool {
        let address = self.address.addr();
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !address.is_loopback() && !is_link_local
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.address)?;
        match self.speed_mbits {
            0 => Ok(()),
            speed if speed < 1000 => write!(f, " ({speed} Mb/s)"),
            speed => write!(f, " ({} Gb/s)", f64::from(speed) / 1000.0),
        }
    }
}

/// What the driver says; 0 if it says nothing, or nothing sensible.
fn speed_mbits(name: &str) -> u32 {
    // Further addresses of an interface may have names such as `eth0:1`.
    let device = name.split(':').next().unwrap_or(name);
    let text = std::fs::read_to_string(format!("/sys/class/net/{device}/speed"));
    // -1 and its like say that it is not known.
    text.ok().and_then(|text| text.trim().parse::<i32>().ok()).unwrap_or(0).max(0) as u32
}

/// What `--interface` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceChoice {
    /// The interface of this name.
    Name(String),
    /// An address in this network.
    Network(IpNet),
}

impl InterfaceChoice {
    /// The first that it means. Addresses that others can reach come first, and of these those of
    /// version 4.
    pub fn of<'a>(&self, interfaces: &'a [Interface]) -> Option<&'a Interface> {
        let is_meant = |interface: &&Interface| match self {
            InterfaceChoice::Name(name) => interface.name == *name,
            InterfaceChoice::Network(network) => network.contains(&interface.address.addr()),
        };
        interfaces.iter().filter(is_meant).min_by_key(|interface| {
            (!interface.is_for_others(), interface.address.addr().is_ipv6())
        })
    }
}

impl FromStr for InterfaceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            let network = text.parse::<IpNet>();
            return network.map(InterfaceChoice::Network).map_err(|_| EXPECTED.to_owned());
        }
        let is_name = !text.is_empty()
            && text.len() <= NAME_BYTES_MAX
            && text.bytes().all(|byte| byte.is_ascii_graphic())
            && text.parse::<IpAddr>().is_err();
        is_name.then(|| InterfaceChoice::Name(text.to_owned())).ok_or_else(|| EXPECTED.to_owned())
    }
}

const EXPECTED: &str = "the name of a network interface or a network is expected, as in ib0 or \
                        10.1.0.0/16";

impl fmt::Display for InterfaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterfaceChoice::Name(name) => f.write_str(name),
            InterfaceChoice::Network(network) => write!(f, "{network}"),
        }
    }
}

/// The fastest network that all of these hosts are on, with its slowest interface there: the first
/// of those that are equally fast, as the first host has them, version 4 before version 6. A
/// network in which two hosts have the same address does not count: these are two networks of one
/// name, such as those of the hosts' containers.
pub fn fastest_common<'a>(hosts: &'a [Vec<Interface>]) -> Option<&'a Interface> {
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

    #[test]
    fn an_interface_is_chosen_by_name_or_network() {
        let chosen = |text: &str| {
            let choice: InterfaceChoice = text.parse().expect(text);
            assert_eq!(choice.to_string(), text);
            choice.of(&host(7)).map(|interface| interface.name.clone())
        };
        assert_eq!(chosen("ib0").as_deref(), Some("ib0"));
        assert_eq!(chosen("10.0.0.0/16").as_deref(), Some("eth0"));
        assert_eq!(chosen("10.0.0.0/8").as_deref(), Some("eth0"), "the first");
        assert_eq!(chosen("127.0.0.0/8").as_deref(), Some("lo"));
        assert_eq!(chosen("ib1"), None);
        assert_eq!(chosen("192.168.0.0/16"), None);
        for bad in
            ["", "10.1.0.0/33", "10.1.0.1", "::1", "a/b", "two words", "longer-than-15-bytes"]
        {
            let refused = bad.parse::<InterfaceChoice>().expect_err(bad);
            assert!(refused.contains("as in ib0 or 10.1.0.0/16"), "{refused}");
        }
    }

    #[test]
    fn an_interface_is_shown_with_its_speed() {
        assert_eq!(
            interface("eth0", "10.0.0.1/24", 100).to_string(),
            "eth0 10.0.0.1/24 (100 Mb/s)"
        );
        assert_eq!(interface("e", "10.0.0.1/24", 2500).to_string(), "e 10.0.0.1/24 (2.5 Gb/s)");
        assert_eq!(interface("e", "fd00::1/64", 0).to_string(), "e fd00::1/64");
    }

    #[test]
    fn this_host_has_a_loopback_interface() {
        let all = Interface::all().expect("the system says");
        assert!(all.iter().any(|interface| interface.address.addr().is_loopback()), "{all:?}");
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
