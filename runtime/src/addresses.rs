//! The socket addresses of all PEs of a job.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use ultramarine_topology::Pe;

/// A socket address for each PE, by number.
///
/// PEs of one host follow each other, so each IP address is kept once, and for each PE only the
/// port: two bytes, where the address would take 32. For 10^5 PEs on 1,600 hosts that is 240 kB,
/// little enough for every process to have all addresses from the start. A process that asked for
/// an address when it first needs it would ask at the worst moment: TCP takes over when a process
/// has died.
///
/// ```
/// use std::net::SocketAddr;
/// use ultramarine_runtime::addresses::Addresses;
/// use ultramarine_topology::Pe;
/// let all = ["10.0.0.1:40000", "10.0.0.1:40001", "10.0.0.2:40000"];
/// let all: Vec<SocketAddr> = all.map(|text| text.parse().unwrap()).into();
/// let addresses = Addresses::from(all.clone());
/// assert_eq!(addresses.of(Pe::new(1)), all[1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Each IP address with the number of the first PE that has it, ascending.
    hosts: Vec<(u32, IpAddr)>,
    ports: Vec<u16>,
}

impl Addresses {
    /// The number of PEs that have an address.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// The address of this PE.
    ///
    /// # Panics
    ///
    /// The PE has none.
    pub fn of(&self, pe: Pe) -> SocketAddr {
        let port = self.ports[pe.index()];
        let next = self.hosts.partition_point(|(first, _)| *first <= pe.number());
        // The first begins with PE 0, so there is one before the next.
        let (_, ip) = self.hosts[next - 1];
        SocketAddr::new(ip, port)
    }
}

impl FromIterator<SocketAddr> for Addresses {
    fn from_iter<I: IntoIterator<Item = SocketAddr>>(all: I) -> Self {
        let mut addresses = Addresses::default();
        for (pe, address) in (0..).zip(all) {
            if addresses.hosts.last().is_none_or(|(_, ip)| *ip != address.ip()) {
                addresses.hosts.push((pe, address.ip()));
            }
            addresses.ports.push(address.port());
        }
        addresses
    }
}

impl From<Vec<SocketAddr>> for Addresses {
    fn from(all: Vec<SocketAddr>) -> Self {
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_pe_has_the_address_that_it_was_given(
            all in prop::collection::vec((0..3_u8, any::<u16>()), 0..30),
        ) {
            let address = |(host, port): &(u8, u16)| SocketAddr::from(([10, 0, 0, *host], *port));
            let all: Vec<_> = all.iter().map(address).collect();
            let addresses = Addresses::from(all.clone());
            prop_assert_eq!(addresses.count(), all.len());
            for (pe, address) in (0..).zip(all) {
                prop_assert_eq!(addresses.of(Pe::new(pe)), address);
            }
        }
    }
}
