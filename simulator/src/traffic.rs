//! How long a message takes from PE to PE.

use std::ops::RangeInclusive;
use ultramarine_topology::Distance;

/// How messages travel.
#[derive(Clone, Debug)]
pub(crate) enum Traffic {
    /// By chance, and sometimes for very long, to try out all orders of events.
    Random(RandomTraffic),
    /// As on a machine.
    LogGp(LogGp),
}

/// Latencies by chance.
#[derive(Clone, Debug)]
pub(crate) struct RandomTraffic {
    /// How long a message takes, in nanoseconds.
    pub(crate) latency_ns: RangeInclusive<u64>,
    /// One message in this many is late, and with it those behind it, by up to this long.
    pub(crate) late_one_in: u64,
    pub(crate) late_ns: u64,
    /// One frame in this many is lost, if any.
    pub(crate) lost_one_in: Option<u64>,
}

/// The LogGP model: by distance, ascending.
#[derive(Clone, Debug)]
pub(crate) struct LogGp(pub(crate) Vec<(Distance, LinkCosts)>);

/// The costs of a message, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkCosts {
    pub(crate) latency: u64,
    pub(crate) overhead: u64,
    pub(crate) gap: u64,
    /// In picoseconds.
    pub(crate) gap_per_byte: u64,
}

impl LogGp {
    pub(crate) fn at(&self, distance: Distance) -> LinkCosts {
        let found = self.0.iter().find(|(at_most, _)| distance <= *at_most);
        found.or(self.0.last()).map_or(LinkCosts::NOTHING, |(_, costs)| *costs)
    }
}

impl LinkCosts {
    const NOTHING: LinkCosts = LinkCosts { latency: 0, overhead: 0, gap: 0, gap_per_byte: 0 };

    /// How long a port is busy with a message of this length.
    pub(crate) fn port_ns(&self, bytes: usize) -> u64 {
        self.overhead.max(self.gap).max(bytes as u64 * self.gap_per_byte / 1000)
    }
}
