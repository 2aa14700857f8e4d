//! What a trace tells: which thread did what, and when; what happened to a PE, and what it counted.

use crate::packet::{DebugAnnotation, Kind, TracePacket, TrackDescriptor, TrackEvent};
use crate::{CLOCK, COMPARED, FUNCTIONS, LOST, NUMBERS, RUNTIME, SEARCH, SPAN, SPANS, WORKER};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A thread of a PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The number of its PE.
    pub pe: u32,
    /// Its name.
    pub name: String,
}

impl Thread {
    /// Whether it runs tasks all the time.
    pub fn is_worker(&self) -> bool {
        self.name.starts_with(WORKER)
    }
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

impl Count {
    /// Whether it is of the program, and not of the runtime.
    pub fn is_of_program(&self) -> bool {
        self.name != SEARCH && !self.name.starts_with(RUNTIME)
    }
}

/// What a thread did from one moment to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The number of its thread in [`Reader::threads`].
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

/// Something that happened to a PE, or of which it has heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number of the PE.
    pub pe: u32,
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// What.
    pub text: String,
}

/// What a PE had counted at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of the PE.
    pub pe: u32,
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// What it counts.
    pub counter: String,
    /// How many there were.
    pub value: u64,
}

/// What the clocks of two PEs said at the same time, in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The number of the PE that has compared.
    pub pe: u32,
    /// What its clock said.
    pub ours_ns: u64,
    /// The number of the other PE.
    pub other: u32,
    /// What that one's clock said.
    pub theirs_ns: u64,
    /// Within how many that is right.
    pub error_ns: u64,
}

/// What a packet tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// What a thread did, which is over with this packet.
    Slice(Slice),
    /// Something happened to a PE.
    Event(Event),
    /// A counter of a PE has changed.
    Sample(Sample),
    /// A PE has compared its clock with another one's.
    Compared(Compared),
}

/// A PE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its name, which says on which host it is.
    pub name: String,
    /// The command line of its process.
    pub command: Vec<String>,
}

/// Reads the packets of a trace, or of its parts one after the other.
#[derive(Debug, Default)]
pub struct Reader {
    threads: HashMap<u64, Thread>,
    /// By the number of the PE.
    processes: BTreeMap<u32, Process>,
    /// The numbers of PEs by those of their tracks.
    pes: HashMap<u64, u32>,
    /// Their PEs and names by the numbers of their tracks.
    counters: HashMap<u64, (u32, String)>,
    /// By sequence and number.
    names: HashMap<(u32, u64), String>,
    /// What has begun on a track.
    begun: HashMap<u64, Slice>,
    lost: u64,
}

impl Reader {
    /// The threads of which there has been a description, by their numbers.
    pub fn threads(&self) -> &HashMap<u64, Thread> {
        &self.threads
    }

    /// The threads that run tasks all the time, each by its PE and its number.
    pub fn workers(&self) -> BTreeSet<(u32, u64)> {
        let workers = self.threads.iter().filter(|(_, thread)| thread.is_worker());
        workers.map(|(number, thread)| (thread.pe, *number)).collect()
    }

    /// The PEs of which there has been a description, by their numbers.
    pub fn processes(&self) -> &BTreeMap<u32, Process> {
        &self.processes
    }

    /// How many runs and spans are missing so far, as the disk was too slow for them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What this packet tells, if it does not only prepare for others.
    pub fn next(&mut self, packet: TracePacket) -> Option<Noted> {
        let sequence = packet.trusted_packet_sequence_id.unwrap_or_default();
        for name in packet.interned_data.into_iter().flat_map(|data| data.event_names) {
            self.names.insert((sequence, name.iid()), name.name.unwrap_or_default());
        }
        if let Some(track) = packet.track_descriptor {
            self.describe(track);
        }
        let (event, at) = (packet.track_event?, packet.timestamp?);
        let track = event.track_uuid();
        match event.r#type() {
            Kind::SliceBegin => {
                let slice = self.begin(sequence, at, &event);
                self.begun.insert(track, slice);
                None
            }
            Kind::SliceEnd => Some(Noted::Slice(self.begun.remove(&track)?.ended(at))),
            Kind::Instant => {
                let lost = event.debug_annotations.iter().filter(|of| of.name() == LOST);
                self.lost = lost.fold(self.lost, |sum, of| sum.saturating_add(of.uint_value()));
                let pe = *self.pes.get(&track)?;
                if let Some(of) = event.debug_annotations.iter().find(|of| of.name() == CLOCK) {
                    let [other, theirs_ns, ours_ns, error_ns] = entries(of, COMPARED);
                    let other = other.try_into().ok()?;
                    let compared = Compared { pe, ours_ns, other, theirs_ns, error_ns };
                    return Some(Noted::Compared(compared));
                }
                let text = event.name.unwrap_or_default();
                Some(Noted::Event(Event { pe, at_ns: at, text }))
            }
            Kind::Counter => {
                let (pe, counter) = self.counters.get(&track)?.clone();
                let value = event.counter_value().try_into().unwrap_or_default();
                Some(Noted::Sample(Sample { pe, at_ns: at, counter, value }))
            }
            Kind::Unspecified => None,
        }
    }

    /// The number of the PE that a packet is of, as far as that is known.
    pub fn pe_of(&self, packet: &TracePacket) -> Option<u32> {
        let track = packet.track_event.as_ref()?.track_uuid();
        let of_thread = self.threads.get(&track).map(|thread| thread.pe);
        let of_pe = || self.pes.get(&track).copied();
        of_thread.or_else(of_pe).or_else(|| Some(self.counters.get(&track)?.0))
    }

    fn describe(&mut self, track: TrackDescriptor) {
        let (uuid, parent) = (track.uuid(), track.parent_uuid());
        let pe = |pid: i32| u32::try_from(pid.saturating_sub(1)).unwrap_or_default();
        if let Some(thread) = track.thread {
            let (pe, name) = (pe(thread.pid()), thread.thread_name.unwrap_or_default());
            self.threads.insert(uuid, Thread { pe, name });
        } else if let Some(process) = track.process {
            let pe = pe(process.pid());
            let (name, command) = (process.process_name.unwrap_or_default(), process.cmdline);
            self.processes.insert(pe, Process { name, command });
            self.pes.insert(uuid, pe);
        } else if let (Some(_), Some(pe)) = (track.counter, self.pes.get(&parent)) {
            self.counters.insert(uuid, (*pe, track.name.unwrap_or_default()));
        }
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

/// The values of these names.
fn entries<const N: usize>(of: &DebugAnnotation, names: [&str; N]) -> [u64; N] {
    names.map(|name| {
        let found = of.dict_entries.iter().find(|entry| entry.name() == name);
        found.map_or(0, DebugAnnotation::uint_value)
    })
}

fn count(of: &DebugAnnotation) -> Count {
    let [runs, busy_ns, longest_ns] = entries(of, NUMBERS);
    Count { name: of.name().to_owned(), runs, busy_ns, longest_ns }
}
