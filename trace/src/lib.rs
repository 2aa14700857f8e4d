//! The format of traces: that of [Perfetto](https://perfetto.dev), so that its viewer shows them.
//!
//! A trace is a row of packets, and two traces, one after the other, are a trace. So each process
//! of a job writes a part of its own, which is a trace itself, and all of them together are that of
//! the job. A part that was cut off, as its process was killed, holds up to its last whole packet.
//!
//! Of the many messages of Perfetto [`packet`] has those that are needed here.
#![forbid(unsafe_code)]

pub mod packet;
mod reader;

pub use reader::{Compared, Count, Event, Noted, Process, Reader, Sample, Slice, Thread};

use packet::TracePacket;
use prost::Message as _;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key};
use std::ffi::OsStr;
use std::path::Path;

/// The file name of the part of a process whose first PE has this number.
pub fn part_name(pe: u32) -> String {
    format!("pe{pe:06}.part")
}

/// Whether a file has the name of a part.
pub fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let number = name.and_then(|name| name.strip_prefix("pe")?.strip_suffix(".part"));
    number.is_some_and(|number| number.len() >= 6 && number.bytes().all(|it| it.is_ascii_digit()))
}

/// The category of slices that are runs of tasks, or what threads do between them.
pub const RUN: &str = "run";

/// The category of a program's own spans, which are within runs.
pub const SPAN: &str = "span";

/// The names of threads that run tasks all the time begin so.
pub const WORKER: &str = "worker";

/// Counters of PEs that say what there is at the time. All others count from the start of the job.
pub const GAUGES: [&str; 4] =
    ["tasks waiting", "tasks on other PEs", "idle workers", "memory in bytes"];

/// The counter of a PE's bytes that went to others, or were copied from their memory.
pub const MOVED_BYTES: &str = "bytes sent or fetched";

/// What a thread does that looks for a task.
pub const SEARCH: &str = "looking for work";

/// The names of the runtime's own functions begin so, such as those that compare clocks.
const RUNTIME: &str = "ultramarine_runtime::";

/// What it does for rayon meanwhile.
pub const RAYON: &str = "a job of rayon";

/// An event that says how many runs and spans have found no room before it, as the disk was slow.
pub const LOST: &str = "lost";

/// The annotation of a slice that says how often each function ran in it.
pub const FUNCTIONS: &str = "functions";

/// The same of short spans.
pub const SPANS: &str = "spans";

/// What the event of a death says after the PE's name, which is `PE` and its number.
pub const DIED: &str = "has died";

/// An event that says how another PE's clock differs, in an annotation of this name.
pub const CLOCK: &str = "clock";

/// What is in it: the number of the other PE; what its clock said, and that of this PE, at the same
/// time, in nanoseconds since 1970; and within how many that is right.
pub const COMPARED: [&str; 4] = ["pe", "theirs_ns", "ours_ns", "error_ns"];

/// When a slice began, where a clock was made wrong for testing.
pub const TRUE_NS: &str = "true_ns";

/// What is said of each: how often, how long together, and the longest.
pub const NUMBERS: [&str; 3] = ["runs", "busy_ns", "longest_ns"];

/// The field of a trace that its packets are.
const PACKET: u32 = 1;

/// Adds a packet to a trace.
pub fn append(packet: &TracePacket, trace: &mut Vec<u8>) {
    encode_key(PACKET, WireType::LengthDelimited, trace);
    // A vector grows.
    let _ = packet.encode_length_delimited(trace);
}

/// The packets of a trace.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    trace: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    /// The packets of this trace, as far as it goes.
    pub fn of(trace: &'a [u8]) -> Self {
        Packets { trace, at: 0 }
    }

    /// The packets so far.
    pub fn read(&self) -> &'a [u8] {
        &self.trace[..self.at]
    }

    /// What comes after them. At the end of a trace that is whole, nothing.
    pub fn rest(&self) -> &'a [u8] {
        &self.trace[self.at..]
    }

    /// The packet at the beginning of these bytes, and what is behind it.
    fn first(mut bytes: &[u8]) -> Option<(TracePacket, &[u8])> {
        let key = decode_key(&mut bytes).ok()?;
        if key != (PACKET, WireType::LengthDelimited) {
            return None;
        }
        let length = decode_varint(&mut bytes).ok()?;
        let (packet, rest) = bytes.split_at_checked(length.try_into().ok()?)?;
        Some((TracePacket::decode(packet).ok()?, rest))
    }
}

/// Ends with the last whole packet.
impl Iterator for Packets<'_> {
    type Item = TracePacket;

    fn next(&mut self) -> Option<TracePacket> {
        let (packet, rest) = Self::first(&self.trace[self.at..])?;
        self.at = self.trace.len() - rest.len();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> Vec<TracePacket> {
        let packet = |timestamp| TracePacket { timestamp, ..TracePacket::default() };
        [None, Some(1), Some(u64::MAX)].map(packet).to_vec()
    }

    #[test]
    fn packets_come_back_in_order() {
        let mut trace = Vec::new();
        packets().iter().for_each(|packet| append(packet, &mut trace));
        let mut read = Packets::of(&trace);
        assert_eq!(read.by_ref().collect::<Vec<_>>(), packets());
        assert!(read.rest().is_empty());
    }

    #[test]
    fn a_trace_holds_up_to_its_last_whole_packet() {
        let mut trace = Vec::new();
        let mut ends = vec![0];
        for packet in packets() {
            append(&packet, &mut trace);
            ends.push(trace.len());
        }
        for cut in 0..trace.len() {
            let mut read = Packets::of(&trace[..cut]);
            let count = read.by_ref().count();
            assert_eq!(count, ends.iter().filter(|end| **end <= cut).count() - 1, "{cut}");
            assert_eq!(read.read().len(), ends[count]);
        }
    }

    #[test]
    fn a_part_is_known_by_its_name() {
        for pe in [0, 17, u32::MAX] {
            assert!(is_part(&Path::new("a.part").join(part_name(pe))), "{pe}");
        }
        for name in ["video.mp4.part", "pe1.part", "pe00000x.part", "pe000000.partial"] {
            assert!(!is_part(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn what_is_no_trace_has_no_packets() {
        for bytes in [&b"{\"traceEvents\": []}"[..], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1], &[]]
        {
            assert_eq!(Packets::of(bytes).count(), 0);
        }
    }
}
