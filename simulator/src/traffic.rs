//! How long a message takes from PE to PE.

use crate::machine::Machine;
use crate::network::Network;
use std::ops::RangeInclusive;

/// How messages travel.
#[expect(clippy::large_enum_variant, reason = "there is one in a simulation")]
#[derive(Clone, Debug)]
pub(crate) enum Traffic {
    /// By chance, and sometimes for very long, to try out all orders of events.
    Random(RandomTraffic),
    /// As on this machine, over this network.
    Modelled(Machine, Network),
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
