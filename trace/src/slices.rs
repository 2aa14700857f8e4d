//! What a trace tells: which thread did what, and when.

use crate::packet::{DebugAnnotation, Kind, TracePacket, TrackDescriptor, TrackEvent};
use crate::{FUNCTIONS, LOST, NUMBERS, SPAN, SPANS};
use std::collections::HashMap;

/// A thread of a PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The number of its PE.
    pub pe: u32,
    /// Its name.
    pub name: String,
}

/// How often something ran, and how long that took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Its name.
    pub name: String,
    /// How often.
    pub runs: u64,
    /// How long all of them took, in nanoseconds.
    pub busy_ns: u64,
    /// How long the longest took.
    pub longest_ns: u64,
}

/// What a thread did from one moment to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The number of its thread in [`Slices::threads`].
    pub thread: u64,
    /// The function that took the most of it.
    pub name: String,
    /// When it began, and when it ended, in nanoseconds since 1970.
    pub begin_ns: u64,
    /// See [`begin_ns`](Self::begin_ns).
    pub end_ns: u64,
    /// It is a span within a run.
    pub is_span: bool,
    /// The functions that ran in it.
    pub functions: Vec<Count>,
    /// The short spans in it.
    pub spans: Vec<Count>,
}

/// Makes slices of the packets of a trace, or of its parts one after the other.
#[derive(Debug, Default)]
pub struct Slices {
    threads: HashMap<u64, Thread>,
    /// By sequence and number.
    names: HashMap<(u32, u64), String>,
    /// What has begun on a track.
    begun: HashMap<u64, Slice>,
    lost: u64,
}

impl Slices {
    /// The threads of which there has been a description, by their numbers.
    pub fn threads(&self) -> &HashMap<u64, Thread> {
        &self.threads
    }

    /// How many runs and spans are missing so far, as the disk was too slow for them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The slice that ends with this packet, if one does.
    pub fn next(&mut self, packet: TracePacket) -> Option<Slice> {
        let sequence = packet.trusted_packet_sequence_id.unwrap_or_default();
        for name in packet.interned_data.into_iter().flat_map(|data| data.event_names) {
            self.names.insert((sequence, name.iid()), name.name.unwrap_or_default());
        }
        if let Some(track) = packet.track_descriptor {
            self.describe(track);
        }
        let event = packet.track_event?;
        let (at, track) = (packet.timestamp.unwrap_or_default(), event.track_uuid());
        match event.r#type() {
            Kind::SliceBegin => {
                let slice = self.begin(sequence, at, &event);
                self.begun.insert(track, slice);
                None
            }
            Kind::SliceEnd => Some(self.begun.remove(&track)?.ended(at)),
            Kind::Instant => {
                let lost = event.debug_annotations.iter().filter(|of| of.name() == LOST);
                self.lost = lost.fold(self.lost, |sum, of| sum.saturating_add(of.uint_value()));
                None
            }
            Kind::Unspecified => None,
        }
    }

    fn describe(&mut self, track: TrackDescriptor) {
        let uuid = track.uuid();
        let Some(thread) = track.thread else { return };
        let pe = u32::try_from(thread.pid().saturating_sub(1)).unwrap_or_default();
        self.threads.insert(uuid, Thread { pe, name: thread.thread_name.unwrap_or_default() });
    }

    fn begin(&self, sequence: u32, at: u64, event: &TrackEvent) -> Slice {
        let name = self.names.get(&(sequence, event.name_iid())).cloned();
        let counted = |what: &str| {
            let all = event.debug_annotations.iter().filter(|of| of.name() == what);
            all.flat_map(|of| &of.dict_entries).map(count).collect()
        };
        Slice {
            thread: event.track_uuid(),
            name: name.unwrap_or_default(),
            begin_ns: at,
            end_ns: at,
            is_span: event.categories.iter().any(|of| of == SPAN),
            functions: counted(FUNCTIONS),
            spans: counted(SPANS),
        }
    }
}

impl Slice {
    /// How long it took.
    pub fn took_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    fn ended(mut self, end: u64) -> Slice {
        self.end_ns = end.max(self.begin_ns);
        if self.functions.is_empty() && !self.is_span {
            let (took, name) = (self.took_ns(), self.name.clone());
            self.functions.push(Count { name, runs: 1, busy_ns: took, longest_ns: took });
        }
        self
    }
}

fn count(of: &DebugAnnotation) -> Count {
    let value = |name: &str| {
        let found = of.dict_entries.iter().find(|entry| entry.name() == name);
        found.map_or(0, DebugAnnotation::uint_value)
    };
    let [runs, busy_ns, longest_ns] = NUMBERS.map(value);
    Count { name: of.name().to_owned(), runs, busy_ns, longest_ns }
}
