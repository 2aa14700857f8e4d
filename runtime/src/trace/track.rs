//! What one thread records.

use super::CURRENT;
use super::stretch::{Count, Counts, Stretch};
use crate::lock::Lock;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use ultramarine_trace::packet::{
    DebugAnnotation, EventName, InternedData, Kind, SequenceFlags, TracePacket, TrackDescriptor,
    TrackEvent,
};
use ultramarine_trace::{FUNCTIONS, LOST, NUMBERS, RUN, SPAN, SPANS, append};

/// How much a track may write before runs are counted together.
const AT_ONCE_BYTES: u64 = 1 << 20;

/// How much more it may write each second. (59 MB in an hour.)
const BYTES_PER_S: u64 = 16 << 10;

/// The most that waits to be written. A slice that finds no room is counted: the disk is too slow.
const WAITING_BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// The calling thread's track, and the number of its recording.
    static OWN: RefCell<Option<(u64, Arc<Lock<Track>>)>> = const { RefCell::new(None) };
}

/// Runs `act` on the calling thread's track, if it has one in the recording that goes on.
pub(super) fn with_own(act: impl FnOnce(&mut Track)) {
    // A thread that ends has none any more.
    let _ = OWN.try_with(|own| {
        if let Some((recording, track)) = &*own.borrow()
            && *recording == CURRENT.load(Ordering::Relaxed)
        {
            act(&mut track.lock());
        }
    });
}

/// The start of a recording, on the threads' clock and on that of the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) at: Instant,
    pub(super) unix: Duration,
}

impl Origin {
    /// A moment in nanoseconds since 1970.
    fn unix_ns(&self, at: Instant) -> u64 {
        (self.unix + at.saturating_duration_since(self.at)).as_nanos() as u64
    }
}

/// A thread's track: see the [module](super).
pub(super) struct Track {
    origin: Origin,
    /// What the track is called, and its sequence of packets.
    number: u32,
    /// The numbers of the names that have been written, by where these lie and their lengths.
    names: HashMap<(usize, usize), u64>,
    /// The runs that the thread is amid, one within the other: how much of each was that of others
    /// within it.
    amid: Vec<u64>,
    stretch: Stretch,
    /// How many bytes it has written.
    written: u64,
    /// How many runs and spans found no room.
    lost: u64,
    /// Whole packets, for the thread that writes the file.
    out: Vec<u8>,
}

impl Track {
    /// Makes a track, which is described so.
    pub(super) fn new(origin: Origin, number: u32, described: TrackDescriptor) -> Self {
        let (names, amid, stretch, out) = Default::default();
        let mut track = Track { origin, number, names, amid, stretch, written: 0, lost: 0, out };
        track.append(&TracePacket {
            track_descriptor: Some(described),
            sequence_flags: Some(SequenceFlags::Begins as u32),
            ..track.packet()
        });
        track
    }

    /// Makes it the calling thread's, in this recording.
    pub(super) fn bind(track: Arc<Lock<Track>>, recording: u64) {
        OWN.set(Some((recording, track)));
    }

    /// Whether the thread is amid a run.
    pub(super) fn is_amid_run(&self) -> bool {
        !self.amid.is_empty()
    }

    /// A run begins.
    pub(super) fn begin_run(&mut self) {
        self.amid.push(0);
    }

    /// What has begun last was no run.
    pub(super) fn call_off(&mut self) {
        self.amid.pop();
    }

    /// The run that has begun last is over.
    pub(super) fn note_run(&mut self, name: &'static str, begun: Instant, end: Instant) {
        let [begin, end] = [begun, end].map(|at| self.origin.unix_ns(at));
        let took = end.saturating_sub(begin);
        let of_others = self.amid.pop().unwrap_or_default();
        self.amid.iter_mut().last().into_iter().for_each(|outer| *outer += took);
        self.stretch.add(name, (begin, end), took.saturating_sub(of_others));
        self.write_if_due(end);
    }

    /// A span is over.
    pub(super) fn note_span(&mut self, name: &'static str, begun: Instant, end: Instant) {
        let [begin, end] = [begun, end].map(|at| self.origin.unix_ns(at));
        // Runs that wait come first, or spans might take all the room there is.
        if self.stretch.times.is_none() && self.may_write(end) {
            self.write_slice((begin, end), (SPAN, name), Vec::new(), 1);
        } else {
            self.stretch.spans.add(name, end.saturating_sub(begin));
        }
    }

    /// Whether there is room for another slice at this time.
    fn may_write(&self, now: u64) -> bool {
        let since_ms = now.saturating_sub(self.origin.unix.as_nanos() as u64) / 1_000_000;
        self.written < AT_ONCE_BYTES + since_ms * BYTES_PER_S / 1000
    }

    /// Writes what has been counted, if there is room, and no run would overlap with it.
    fn write_if_due(&mut self, now: u64) {
        if self.amid.is_empty() && self.may_write(now) {
            self.write_stretch();
        }
    }

    fn write_stretch(&mut self) {
        let Stretch { times, functions, spans } = std::mem::take(&mut self.stretch);
        let (Some(times), Some(most)) = (times, functions.most()) else {
            // Without a run they wait for the next one.
            self.stretch.spans = spans;
            return;
        };
        let mut more = Vec::new();
        if functions.runs() > 1 {
            more.push(annotation(FUNCTIONS, &functions));
        }
        if !spans.is_empty() {
            more.push(annotation(SPANS, &spans));
        }
        self.write_slice(times, (RUN, most.name), more, functions.runs() + spans.runs());
    }

    /// What the file lacks at this time. At the end of the recording, all that has been counted.
    pub(super) fn take(&mut self, now: Instant, is_last: bool) -> Vec<u8> {
        let now = self.origin.unix_ns(now);
        if is_last {
            self.write_stretch();
        } else {
            self.write_if_due(now);
        }
        if self.lost > 0 {
            let lost = number(LOST, std::mem::take(&mut self.lost));
            let event = TrackEvent {
                name: Some(LOST.to_owned()),
                debug_annotations: vec![lost],
                ..self.event(Kind::Instant)
            };
            let timestamp = Some(now);
            self.append(&TracePacket { timestamp, track_event: Some(event), ..self.packet() });
        }
        std::mem::take(&mut self.out)
    }

    /// Writes a slice. `counts` is the number of runs and spans that it stands for.
    fn write_slice(
        &mut self,
        (begin, end): (u64, u64),
        (category, name): (&str, &'static str),
        debug_annotations: Vec<DebugAnnotation>,
        counts: u64,
    ) {
        if self.out.len() > WAITING_BYTES_MAX {
            self.lost += counts;
            return;
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
        self.append(&TracePacket {
            timestamp: Some(begin),
            interned_data: (number == next).then(|| InternedData { event_names: vec![name] }),
            track_event: Some(begins),
            ..self.packet()
        });
        self.append(&TracePacket {
            timestamp: Some(end),
            track_event: Some(ends),
            ..self.packet()
        });
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

    fn append(&mut self, packet: &TracePacket) {
        let before = self.out.len();
        append(packet, &mut self.out);
        self.written += (self.out.len() - before) as u64;
    }
}

/// A function's name without what the compiler adds for async ones, each time that it goes on.
fn readable(name: &str) -> &str {
    name.trim_end_matches("::{{closure}}")
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    let (name, uint_value) = (Some(name.to_owned()), Some(value));
    DebugAnnotation { name, uint_value, ..DebugAnnotation::default() }
}

/// How many runs or spans there were of each name, and how long they took.
fn annotation(what: &str, counts: &Counts) -> DebugAnnotation {
    let group = |name: &str, dict_entries| {
        let name = Some(name.to_owned());
        DebugAnnotation { name, dict_entries, ..DebugAnnotation::default() }
    };
    let of_one = |Count { name, runs, busy_ns, longest_ns }: &Count| {
        let values = NUMBERS.into_iter().zip([*runs, *busy_ns, *longest_ns]);
        group(readable(name), values.map(|(name, value)| number(name, value)).collect())
    };
    group(what, counts.iter().map(of_one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_trace::{Packets, Slice, Slices};

    const START: Duration = Duration::from_secs(1000);

    fn track() -> (Track, Instant) {
        let at = Instant::now();
        (Track::new(Origin { at, unix: START }, 7, TrackDescriptor::default()), at)
    }

    /// What is in the file, and its length.
    fn read(written: &[Vec<u8>]) -> (Slices, Vec<Slice>, usize) {
        let bytes = written.concat();
        let mut slices = Slices::default();
        let read = Packets::of(&bytes).filter_map(|packet| slices.next(packet)).collect();
        (slices, read, bytes.len())
    }

    fn runs(slices: &[Slice], name: &str) -> u64 {
        let functions = slices.iter().flat_map(|slice| &slice.functions);
        functions.filter(|count| count.name == name).map(|count| count.runs).sum()
    }

    fn us(number: u64) -> Duration {
        Duration::from_micros(number)
    }

    #[test]
    fn runs_are_slices_with_their_times() {
        let (mut track, at) = track();
        track.begin_run();
        track.note_run("one::{{closure}}", at + us(5), at + us(7));
        track.begin_run();
        track.note_span("part", at + us(12), at + us(13));
        track.note_run("two", at + us(10), at + us(20));
        let (_, slices, _) = read(&[track.take(at + us(20), true)]);
        let start = START.as_nanos() as u64;
        let times: Vec<_> = slices
            .iter()
            .map(|slice| (&*slice.name, slice.begin_ns - start, slice.end_ns - start))
            .collect();
        assert_eq!(times, [("one", 5000, 7000), ("part", 12_000, 13_000), ("two", 10_000, 20_000)]);
        assert_eq!(slices.iter().filter(|slice| slice.is_span).count(), 1);
    }

    #[test]
    fn a_run_within_another_is_not_counted_twice() {
        let (mut track, at) = track();
        track.begin_run();
        track.begin_run();
        track.begin_run();
        track.call_off();
        track.note_run("inner", at + us(10), at + us(30));
        assert!(track.is_amid_run() && track.stretch.times.is_some());
        track.note_run("outer", at + us(5), at + us(40));
        assert!(!track.is_amid_run());
        let (_, slices, _) = read(&[track.take(at + us(40), true)]);
        let [slice] = &slices[..] else { panic!("{slices:?}") };
        assert_eq!(slice.took_ns(), 35_000);
        let busy: Vec<_> =
            slice.functions.iter().map(|count| (&*count.name, count.busy_ns)).collect();
        assert_eq!(busy, [("inner", 20_000), ("outer", 15_000)]);
    }

    /// However the runs come: the track is asked ten times a second, as at each pause.
    #[test]
    fn a_track_that_has_had_its_share_counts_runs_and_keeps_within_it() {
        const RUNS: u64 = 200_000;
        let (mut track, at) = track();
        let mut written = Vec::new();
        for run in 0..RUNS {
            let name = if run % 3 == 0 { "third" } else { "other" };
            let begin = at + us(100 * run);
            track.begin_run();
            track.note_span("within", begin, begin + us(1));
            track.note_run(name, begin, begin + us(9));
            if run % 1000 == 0 {
                written.push(track.take(begin + us(9), false));
            }
        }
        let end = at + us(100 * RUNS);
        written.push(track.take(end, true));
        let (_, slices, bytes) = read(&written);
        let share = AT_ONCE_BYTES + 20 * BYTES_PER_S;
        assert!((bytes as u64) < share + 1000, "{bytes}");
        assert_eq!(runs(&slices, "third"), RUNS.div_ceil(3));
        assert_eq!(runs(&slices, "other"), RUNS - RUNS.div_ceil(3));
        let within = slices.iter().flat_map(|slice| &slice.spans).map(|count| count.runs);
        let alone = slices.iter().filter(|slice| slice.is_span).count() as u64;
        assert_eq!(within.sum::<u64>() + alone, RUNS);
        let longest = slices.iter().map(Slice::took_ns).max();
        assert!(longest < Some(100_000_000), "no slice stands for long: {longest:?} ns");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (mut track, at) = track();
        track.out = vec![0; WAITING_BYTES_MAX + 1];
        for run in 0..3 {
            track.note_run("named", at + us(run), at + us(run));
        }
        track.out.clear();
        track.note_run("named", at + us(4), at + us(5));
        let (read_slices, slices, _) = read(&[track.take(at + us(6), true)]);
        assert_eq!((runs(&slices, "named"), read_slices.lost()), (1, 3));
    }
}
