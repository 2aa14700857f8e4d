//! Networks of known machines, with the source of each figure.
//!
//! What vendors and benchmarks publish is half of a round trip, bandwidth and message rate.
//! `LogGP` wants overheads and latency apart. Where nothing better is known, half a round trip is
//! split as Netgauge's example of an MPI over a fast network has it for one byte (Hoefler,
//! Lichei, Rehm, *Low-Overhead `LogGP` Parameter Assessment for Modern Interconnection Networks*,
//! IPDPS 2007; page of the tool: L = 0.61 µs, o of the sender 0.27 µs, of the receiver 0.55 µs),
//! which is about 19 : 43 : 38 in percent.
//!
//! *Assumed* marks a figure that was chosen because none was found. Each PE has the network
//! interface to itself, and messages of different PEs do not meet in switches: both make the
//! network look better than it is when all PEs of a host send at once.

use super::transfer::LinkCosts;
use crate::machine::Tier;
use std::str::FromStr;

/// The mean delay beyond the latency, as a fraction of it. Assumed.
const JITTER: f64 = 0.1;

/// A network that is known by name (`--network NAME`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preset {
    /// Cray Gemini: Cray XE6, as `HECToR` was when the papers measured on it (2011–2014).
    ///
    /// | figure | value | source |
    /// |---|---|---|
    /// | half round trip, neighbours | 1.27 µs | Hopper, an XE6; the farthest pair 3.88 µs, 24 hops away: the model of it in github.com/lanl/PPT. EuroBen (*Overview of Recent Supercomputers*, 2013) has 0.7 to 1.4 µs, by the kind of transfer |
    /// | a hop of the torus | 0.109 µs | from these two; 0.105 µs: Alverson, Roweth, Kaplan, *The Gemini System Interconnect*, HOTI 2010, as cited there |
    /// | in a rack, across racks | 1.70 µs, 2.58 µs | assumed: 4 hops and 12. Two random nodes of Hopper's torus of 17 × 8 × 24 are 12 hops apart |
    /// | bandwidth | 5.8 GB/s | the most that MPI sees of a link: Pedretti et al., *Using the Cray Gemini Performance Counters*, SAND2013-0216C, as cited there |
    /// | message rate | 2.1 M/s a PE | follows from the receiver's overhead, as split; the gap is assumed to be the same |
    /// | shared memory | 0.7 µs, package 0.4 µs, 5 GB/s | assumed: about twice the time of the `hdr` row, a processor of ten years later |
    Gemini,
    /// HPE Slingshot 11, 200 Gb/s: Cray EX.
    ///
    /// | figure | value | source |
    /// |---|---|---|
    /// | a switch | 0.35 µs | De Sensi et al., *An In-Depth Analysis of the Slingshot Interconnect*, SC 2020: at most three hops from switch to switch |
    /// | half round trip, near | 1.8 µs | assumed |
    /// | across racks | +0.7 µs | two more switches of 0.35 µs |
    /// | bandwidth | 23.3 GB/s | `osu_bibw`: 46.6 GB/s, both ways together, on AMD EPYC 9745: EESSI, *MPI at Warp Speed: EESSI Meets Slingshot-11*, 2025 |
    /// | message rate | 1.4 M/s a PE | the same, 1 byte: 2.87 MB/s, both ways together |
    /// | shared memory | gap 0.258 µs | Cray MPICH on Frontier, `osu_bw`, 1 byte: 3.87 MB/s: github.com/pmodels/mpich issue 7723 |
    /// | shared memory | 0.36 µs, package 0.24 µs, 11 GB/s | as `hdr` |
    Slingshot,
    /// `InfiniBand` HDR, 200 Gb/s.
    ///
    /// | figure | value | source |
    /// |---|---|---|
    /// | half round trip, near | 1.2 µs | 1 byte: Microsoft, *HBv3-series performance* (Azure documentation) |
    /// | across racks | +0.26 µs | assumed: two more switches of 0.13 µs |
    /// | bandwidth | 24 GB/s | 192 Gb/s one way: the same page |
    /// | gap | 0.336 µs | `osu_bibw`, 1 byte: 5.95 MB/s, both ways together, HPC-X on `ConnectX`-6: github.com/openucx/ucx issue 7245. The adapter itself: 215 M messages/s (NVIDIA, *`ConnectX`-6 user manual*) |
    /// | shared memory | 0.36 µs, package 0.24 µs | `osu_latency` of two providers, 8 bytes: github.com/ofiwg/libfabric pull request 8680. Which one is how near is assumed |
    /// | shared memory | gap 0.083 µs, 11 GB/s | 12.0 M messages/s, 11,174 MB/s at 16 KiB: github.com/openucx/ucx issue 1831 |
    Hdr,
    /// TCP over 10 Gb/s Ethernet, one switch a rack.
    ///
    /// | figure | value | source |
    /// |---|---|---|
    /// | half round trip, near | 20 µs | Hurwitz, Feng, *Initial End-to-End Performance Evaluation of 10-Gigabit Ethernet*, Hot Interconnects 11, 2003: 20 µs, on inexpensive computers |
    /// | across racks | +2 µs | assumed: two more switches that store and forward |
    /// | bandwidth | 1.18 GB/s | assumed: 94 % of the line, what frames of 1,500 bytes leave |
    /// | split | 20 : 50 : 30 | assumed: the kernel's work is overhead, interrupts are latency |
    /// | message rate | 166,667/s a PE | follows: the receiver's overhead of 6 µs |
    /// | shared memory | as `hdr` | |
    Ethernet,
    /// Messages take no time and cost nothing: for checks.
    Ideal,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 5] =
        [Preset::Gemini, Preset::Slingshot, Preset::Hdr, Preset::Ethernet, Preset::Ideal];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Gemini => "gemini",
            Preset::Slingshot => "slingshot",
            Preset::Hdr => "hdr",
            Preset::Ethernet => "ethernet",
            Preset::Ideal => "ideal",
        }
    }

    /// What messages cost between PEs that share this.
    pub fn costs(self, tier: Tier) -> LinkCosts {
        use Tier::{Host, Machine, Package, Rack};
        // Send overhead, latency, receive overhead, gap; all in ns; then ps a byte.
        let figures = match (self, tier) {
            (Preset::Gemini, Package) => [100, 150, 150, 150, 200],
            (Preset::Gemini, Host) => [180, 280, 240, 240, 200],
            (Preset::Gemini, Rack) => [240, 980, 480, 480, 172],
            (Preset::Gemini, Machine) => [240, 1_860, 480, 480, 172],
            (Preset::Slingshot, Package) => [50, 100, 90, 258, 90],
            (Preset::Slingshot, Host) => [70, 150, 140, 258, 90],
            (Preset::Slingshot, Rack) => [340, 760, 700, 697, 43],
            (Preset::Slingshot, Machine) => [340, 1_460, 700, 697, 43],
            (Preset::Hdr, Rack) => [230, 510, 460, 336, 42],
            (Preset::Hdr, Machine) => [230, 770, 460, 336, 42],
            (Preset::Ethernet, Rack) => [4_000, 10_000, 6_000, 4_000, 850],
            (Preset::Ethernet, Machine) => [4_000, 12_000, 6_000, 4_000, 850],
            (Preset::Hdr | Preset::Ethernet, Package) => [50, 100, 90, 83, 90],
            (Preset::Hdr | Preset::Ethernet, Host) => [70, 150, 140, 83, 90],
            (Preset::Ideal, _) => [0; 5],
        };
        let [send_overhead_ns, latency_ns, receive_overhead_ns, gap_ns, gap_per_byte_ps] = figures;
        LinkCosts {
            latency_ns,
            send_overhead_ns,
            receive_overhead_ns,
            gap_ns,
            gap_per_byte_ps,
            jitter_ns: (latency_ns as f64 * JITTER).round() as u64,
        }
    }
}

/// There is no network of this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "there is no network `{0}`; known are {known}",
    known = Preset::ALL.map(Preset::name).join(", ")
)]
pub struct UnknownNetwork(String);

impl FromStr for Preset {
    type Err = UnknownNetwork;

    fn from_str(name: &str) -> Result<Self, UnknownNetwork> {
        let known = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        known.ok_or_else(|| UnknownNetwork(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
        }
    }

    #[test]
    fn half_round_trips_are_those_of_the_tables() {
        let half = |preset: Preset| Tier::ALL.map(|tier| preset.costs(tier).half_round_trip_ns());
        assert_eq!(half(Preset::Gemini), [400, 700, 1_700, 2_580]);
        assert_eq!(half(Preset::Slingshot), [240, 360, 1_800, 2_500]);
        assert_eq!(half(Preset::Hdr), [240, 360, 1_200, 1_460]);
        assert_eq!(half(Preset::Ethernet), [240, 360, 20_000, 22_000]);
        assert_eq!(half(Preset::Ideal), [0; 4]);
    }

    #[test]
    fn rates_are_those_of_the_tables() {
        let each_ns = |preset: Preset| {
            let transfer = preset.costs(Tier::Rack).transfer(1);
            transfer.sender_port_ns.max(transfer.receiver_port_ns)
        };
        let each = [Preset::Gemini, Preset::Slingshot, Preset::Ethernet].map(each_ns);
        assert_eq!(each, [480, 700, 6_000]);
        // A mebibyte at 24 GB/s.
        let transfer = Preset::Hdr.costs(Tier::Rack).transfer(1 << 20);
        assert_eq!(transfer.last_byte_ns - transfer.first_byte_ns, 44_040);
    }

    #[test]
    fn farther_is_never_faster() {
        for preset in Preset::ALL {
            let costs = Tier::ALL.map(|tier| preset.costs(tier).half_round_trip_ns());
            assert!(costs.is_sorted(), "{preset:?}: {costs:?}");
        }
    }
}
