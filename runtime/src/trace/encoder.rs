//! How what a thread has noted becomes packets. The thread that writes the file does it, since it
//! takes ten times as long as noting.

use super::Compared;
use super::clock::{Clock, Skew};
use super::item::Item;
use super::stretch::{Count, Counts, Stretch};
use super::track::Track;
use std::collections::HashMap;
use ultramarine_trace::packet::{
    CounterDescriptor, DebugAnnotation, EventName, InternedData, Kind, SequenceFlags, TracePacket,
    TrackDescriptor, TrackEvent,
};
use ultramarine_trace::{
    CLOCK, COMPARED, FUNCTIONS, LOST, NUMBERS, RUN, SPAN, SPANS, TRUE_NS, append,
};

/// The number of a counter's track is that of its PE's track and its own, which begins here.
const COUNTERS_FROM: u64 = 1 << 32;

/// Encodes what is on one track.
pub(super) struct Encoder {
    clock: Clock,
    /// What the track is called, and its sequence of packets.
    number: u32,
    /// The numbers of the names that have been written, by where these lie and their lengths.
    names: HashMap<(usize, usize), u64>,
    /// The numbers and the last values of the counters that have been written.
    counters: HashMap<String, (u64, u64)>,
    out: Vec<u8>,
}

impl Encoder {
    /// One for a track, which it describes.
    pub(super) fn new(track: &Track, clock: Clock) -> Self {
        let (names, counters, out) = Default::default();
        let mut encoder = Encoder { clock, number: track.number, names, counters, out };
        let packet = TracePacket {
            track_descriptor: Some(track.described.clone()),
            sequence_flags: Some(SequenceFlags::Begins as u32),
            ..encoder.packet()
        };
        append(&packet, &mut encoder.out);
        encoder
    }

    /// The packets of all that there was since the last call.
    pub(super) fn encode(&mut self, items: Vec<Item>) -> Vec<u8> {
        for item in items {
            match item {
                Item::Runs(stretch) => self.encode_stretch(&stretch),
                Item::Span { name, times } => self.encode_slice(times, (SPAN, name), Vec::new()),
                Item::Lost { runs, at } => {
                    self.encode_instant(LOST.to_owned(), at, vec![annotated(LOST, runs)]);
                }
                Item::Clock { compared, at } => {
                    let Compared { pe, theirs, ours, error } = compared;
                    let values = [pe.number().into(), theirs, ours, error];
                    let entries = COMPARED.into_iter().zip(values);
                    let entries = entries.map(|(name, value)| annotated(name, value)).collect();
                    self.encode_instant(CLOCK.to_owned(), at, vec![group(CLOCK, entries)]);
                }
                Item::Event { text, at } => self.encode_instant(text, at, Vec::new()),
                Item::Counters { counters, at } => {
                    counters.into_iter().for_each(|counter| self.encode_counter(counter, at));
                }
            }
        }
        std::mem::take(&mut self.out)
    }

    fn encode_stretch(&mut self, Stretch { times, functions, spans }: &Stretch) {
        let (Some(times), Some(most)) = (times, functions.most()) else { return };
        let mut more = Vec::new();
        if functions.runs() > 1 {
            more.push(annotation(FUNCTIONS, functions));
        }
        if !spans.is_empty() {
            more.push(annotation(SPANS, spans));
        }
        self.encode_slice(*times, (RUN, most.name), more);
    }

    fn encode_slice(
        &mut self,
        (begin, end): (u64, u64),
        (category, name): (&str, &'static str),
        mut debug_annotations: Vec<DebugAnnotation>,
    ) {
        if self.clock.skew != Skew::default() {
            debug_annotations.push(annotated(TRUE_NS, self.clock.right_at(begin)));
        }
        let next = self.names.len() as u64 + 1;
        let number = *self.names.entry((name.as_ptr().addr(), name.len())).or_insert(next);
        let name = EventName { iid: Some(number), name: Some(readable(name).to_owned()) };
        let begins = TrackEvent {
            name_iid: Some(number),
            categories: vec![category.to_owned()],
            debug_annotations,
            ..self.event(Kind::SliceBegin)
        };
        let ends = self.event(Kind::SliceEnd);
        let interned = (number == next).then(|| InternedData { event_names: vec![name] });
        self.append(begin, begins, interned);
        self.append(end, ends, None);
    }

    fn encode_instant(&mut self, name: String, at: u64, debug_annotations: Vec<DebugAnnotation>) {
        let event = self.event(Kind::Instant);
        self.append(at, TrackEvent { name: Some(name), debug_annotations, ..event }, None);
    }

    /// A counter is written when it changes.
    fn encode_counter(&mut self, (name, value): (String, u64), at: u64) {
        let next = COUNTERS_FROM * (1 + self.counters.len() as u64) + u64::from(self.number);
        let number = match self.counters.get_mut(&name) {
            Some((_, last)) if *last == value => return,
            Some((number, last)) => {
                *last = value;
                *number
            }
            None => {
                let described = TrackDescriptor {
                    uuid: Some(next),
                    parent_uuid: Some(self.number.into()),
                    name: Some(name.clone()),
                    counter: Some(CounterDescriptor {}),
                    ..TrackDescriptor::default()
                };
                let packet = TracePacket { track_descriptor: Some(described), ..self.packet() };
                append(&packet, &mut self.out);
                self.counters.insert(name, (next, value));
                next
            }
        };
        let event = TrackEvent {
            track_uuid: Some(number),
            counter_value: Some(value.try_into().unwrap_or(i64::MAX)),
            ..self.event(Kind::Counter)
        };
        self.append(at, event, None);
    }

    fn event(&self, kind: Kind) -> TrackEvent {
        TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(self.number.into()),
            ..TrackEvent::default()
        }
    }

    fn packet(&self) -> TracePacket {
        TracePacket {
            trusted_packet_sequence_id: Some(self.number),
            sequence_flags: Some(SequenceFlags::Uses as u32),
            ..TracePacket::default()
        }
    }

    fn append(&mut self, at: u64, event: TrackEvent, interned_data: Option<InternedData>) {
        let timestamp = Some(self.clock.at(at));
        let track_event = Some(event);
        let packet = TracePacket { timestamp, interned_data, track_event, ..self.packet() };
        append(&packet, &mut self.out);
    }
}

/// A function's name without what the compiler adds for async ones, each time that it goes on.
fn readable(name: &str) -> &str {
    name.trim_end_matches("::{{closure}}")
}

fn annotated(name: &str, value: u64) -> DebugAnnotation {
    let (name, uint_value) = (Some(name.to_owned()), Some(value));
    DebugAnnotation { name, uint_value, ..DebugAnnotation::default() }
}

fn group(name: &str, dict_entries: Vec<DebugAnnotation>) -> DebugAnnotation {
    let name = Some(name.to_owned());
    DebugAnnotation { name, dict_entries, ..DebugAnnotation::default() }
}

/// How many runs or spans there were of each name, and how long they took.
fn annotation(what: &str, counts: &Counts) -> DebugAnnotation {
    let of_one = |Count { name, runs, busy_ns, longest_ns }: &Count| {
        let values = NUMBERS.into_iter().zip([*runs, *busy_ns, *longest_ns]);
        group(readable(name), values.map(|(name, value)| annotated(name, value)).collect())
    };
    group(what, counts.iter().map(of_one).collect())
}
