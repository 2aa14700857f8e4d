//! The modelled network: what a message costs between two PEs, by how near they are.
//!
//! | question | module |
//! |---|---|
//! | When do the bytes of a message arrive, and how long are both ends busy? | [`LinkCosts`], [`Transfer`] |
//! | What are the costs of a known network? | [`Preset`] |
//! | What are the costs of this network, which was measured? | [`Network::measured`] |
//! | How much later than usual does a message come? | [`Network::jitter_ns`] |
//!
//! ```
//! use ultramarine_simulator::machine::Tier;
//! use ultramarine_simulator::network::{Network, Preset};
//!
//! let network = Network::of("gemini".parse::<Preset>()?);
//! let costs = network.costs(Tier::Rack);
//! let small = costs.transfer(64);
//! assert_eq!(small.last_byte_ns, 240 + 980 + 10);
//! # Ok::<(), ultramarine_simulator::network::UnknownNetwork>(())
//! ```
//!
//! The model is `LogGP`, one set of costs for each [`Tier`]. It has no switches, no routes and no
//! congestion: a message is late only because one of its ends is busy, or by chance. This module
//! must never know what is in a message, nor what time it is.

mod jitter;
mod measured;
mod preset;
mod transfer;

pub use measured::MeasuredError;
pub use preset::{Preset, UnknownNetwork};
pub use transfer::{LinkCosts, Transfer};

use crate::machine::Tier;
use jitter::Exponential;

/// The costs of messages in a simulated machine.
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    /// By tier.
    costs: [LinkCosts; 4],
    exponential: Exponential,
}

impl Network {
    /// A known network.
    pub fn of(preset: Preset) -> Self {
        Self::new(preset.name(), Tier::ALL.map(|tier| preset.costs(tier)))
    }

    /// The network that a real job measured: `json` is the line that `ultramarine topo --json`
    /// prints in a job of two PEs or more. What is read from it, and what is assumed, is written in
    /// `network/measured.rs`.
    ///
    /// # Errors
    /// If it is not JSON, has no round trips, or has some that are not valid.
    pub fn measured(json: &str) -> Result<Self, MeasuredError> {
        Ok(Self::new("measured", measured::costs(json)?))
    }

    /// A network with these costs for PEs that share a package, a host, a rack, the machine.
    pub fn new(name: &str, costs: [LinkCosts; 4]) -> Self {
        Network { name: name.to_owned(), costs, exponential: Exponential::new() }
    }

    /// The same network with a jitter of this fraction of each latency: 0 for none.
    #[must_use]
    pub fn with_jitter(mut self, fraction: f64) -> Self {
        for costs in &mut self.costs {
            costs.jitter_ns = (costs.latency_ns as f64 * fraction.max(0.0)).round() as u64;
        }
        self
    }

    /// The same network with this latency between hosts, in nanoseconds; what it has in jitter
    /// grows along.
    #[must_use]
    pub fn with_latency_ns(mut self, latency_ns: u64) -> Self {
        for tier in [Tier::Rack, Tier::Machine] {
            let costs = &mut self.costs[tier as usize];
            let jitter = costs.jitter_ns as f64 / costs.latency_ns.max(1) as f64;
            costs.jitter_ns = (latency_ns as f64 * jitter).round() as u64;
            costs.latency_ns = latency_ns;
        }
        self
    }

    /// Its name: that of the preset, or `measured`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What messages cost between PEs that share this.
    #[inline]
    pub fn costs(&self, tier: Tier) -> &LinkCosts {
        &self.costs[tier as usize]
    }

    /// How much later than its latency a message comes, in nanoseconds, by a uniformly random
    /// number. Exponential, at most 7.6 times the mean.
    #[inline]
    pub fn jitter_ns(&self, tier: Tier, random: u64) -> u64 {
        self.exponential.draw(self.costs(tier).jitter_ns, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_fraction_of_the_latency() {
        let network = Network::of(Preset::Gemini).with_jitter(0.5);
        assert_eq!(network.costs(Tier::Machine).jitter_ns, 930);
        assert_eq!(network.jitter_ns(Tier::Machine, 0), 0);
        assert!(network.jitter_ns(Tier::Machine, u64::MAX) > 4_000);
        let slow = network.clone().with_latency_ns(18_600);
        assert_eq!(slow.costs(Tier::Machine).jitter_ns, 9_300);
        assert_eq!(slow.costs(Tier::Host), network.costs(Tier::Host));
        let none = network.with_jitter(0.0);
        assert_eq!(none.jitter_ns(Tier::Machine, u64::MAX), 0);
        assert_eq!(Network::of(Preset::Hdr).with_jitter(-1.0).costs(Tier::Rack).jitter_ns, 0);
    }
}
