//! What one thread records.

use super::stretch::{Count, Counts, Stretch};
use crate::lock::Lock;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ultramarine_trace::packet::{
    DebugAnnotation, EventName, InternedData, Kind, SequenceFlags, TracePacket, TrackDescriptor,
    TrackEvent,
};
use ultramarine_trace::{FUNCTIONS, NUMBERS, RUN, SPAN, SPANS, append};

/// How much a lane may write before runs are counted together.
pub(super) const AT_ONCE_BYTES: u64 = 1 << 20;

/// How much more it may write each second. (57 MB in an hour.)
pub(super) const BYTES_PER_S: u64 = 16 << 10;

/// A run that takes longer is a slice of its own in any case, and runs are counted together for no
/// longer than this.
const SHORT: u64 = 8_000_000;

/// Runs that are further apart are not counted together.
const APART: u64 = 1_000_000;

/// The most that waits to be written: what finds no room is counted. (The disk does not get on.)
const WAITING_BYTES_MAX: usize = 4 << 20;

thread_local! {
    static OWN: RefCell<Option<Lane>> = const { RefCell::new(None) };
}

/// Runs `act` on the calling thread's lane, if it has one.
pub(super) fn with_own(act: impl FnOnce(&mut Lane)) {
    // A thread that ends has none any more.
    let _ = OWN.try_with(|own| own.borrow_mut().as_mut().map(act));
}

/// The start of a recording, on the thread's clock and on that of the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) at: Instant,
    pub(super) unix: Duration,
}

impl Origin {
    /// A moment in nanoseconds since 1970.
    pub(super) fn unix_ns(&self, at: Instant) -> u64 {
        (self.unix + at.saturating_duration_since(self.at)).as_nanos() as u64
    }
}

/// A thread's lane: see the [module](super).
pub(super) struct Lane {
    origin: Origin,
    /// What the lane's sequence is called, and its track.
    number: u32,
    /// The numbers of the names that have been written, by where these lie.
    names: HashMap<*const str, u64>,
    /// Runs that are not written yet.
    stretch: Option<Stretch>,
    /// Short spans within the run that is not over yet.
    spans: Counts,
    /// How many bytes it has written.
    written: u64,
    /// How many slices found no room.
    lost: u64,
    shared: Arc<Shared>,
}

/// What the thread that writes the file knows of a lane.
#[derive(Default)]
pub(super) struct Shared {
    /// Whole packets.
    pub(super) out: Lock<Vec<u8>>,
    /// Whether a run has begun that is not in them.
    pub(super) is_amid_run: AtomicBool,
}

impl Lane {
    /// Gives the calling thread this lane, whose track is described so.
    pub(super) fn begin(
        origin: Origin,
        number: u32,
        described: TrackDescriptor,
        shared: Arc<Shared>,
    ) {
        let (names, spans) = (HashMap::new(), Counts::default());
        let mut lane =
            Lane { origin, number, names, stretch: None, spans, written: 0, lost: 0, shared };
        lane.write(&[TracePacket {
            track_descriptor: Some(described),
            sequence_flags: Some(SequenceFlags::Begins as u32),
            ..lane.packet()
        }]);
        OWN.set(Some(lane));
    }

    /// A run begins.
    pub(super) fn begin_run(&self) {
        self.shared.is_amid_run.store(true, Ordering::Release);
    }

    /// A run that is over.
    pub(super) fn note_run(&mut self, name: &'static str, begun: Instant, end: Instant) {
        let [begin, end] = [begun, end].map(|at| self.origin.unix_ns(at));
        let took = end.saturating_sub(begin);
        if took >= SHORT || self.may_write(end) {
            self.flush();
            let mut counts = Counts::default();
            counts.add(name, took);
            self.stretch = Some(Stretch { begin, end, counts });
            return self.flush();
        }
        let joins =
            |stretch: &&mut Stretch| begin < stretch.end + APART && end < stretch.begin + SHORT;
        if let Some(stretch) = self.stretch.as_mut().filter(joins) {
            stretch.end = end;
            return stretch.counts.add(name, took);
        }
        self.flush();
        let mut counts = Counts::default();
        counts.add(name, took);
        self.stretch = Some(Stretch { begin, end, counts });
    }

    /// A span that is over, within a run that is not.
    pub(super) fn note_span(&mut self, name: &'static str, begun: Instant, end: Instant) {
        let [begin, end] = [begun, end].map(|at| self.origin.unix_ns(at));
        if end.saturating_sub(begin) >= SHORT || self.may_write(end) {
            let name_iid = self.number_of(name);
            self.write_pair((begin, end), (SPAN, name, name_iid), Vec::new());
        } else {
            self.spans.add(name, end.saturating_sub(begin));
        }
    }

    /// Whether each run can be a slice of its own.
    fn may_write(&self, now: u64) -> bool {
        let since = now.saturating_sub(self.origin.unix.as_nanos() as u64);
        self.written < AT_ONCE_BYTES + since / 1_000_000 * BYTES_PER_S / 1000
    }

    /// Writes what has been counted together so far.
    pub(super) fn flush(&mut self) {
        if let Some(stretch) = self.stretch.take() {
            self.write_slice(&stretch);
        }
        self.shared.is_amid_run.store(false, Ordering::Release);
    }

    fn write_slice(&mut self, stretch: &Stretch) {
        let Some(most) = stretch.counts.most() else { return };
        let (name, name_iid) = (most.name, self.number_of(most.name));
        let spans = std::mem::take(&mut self.spans);
        let mut more = Vec::new();
        if !stretch.counts.is_one_run() {
            more.push(annotation(FUNCTIONS, &stretch.counts));
        }
        if spans.most().is_some() {
            more.push(annotation(SPANS, &spans));
        }
        self.write_pair((stretch.begin, stretch.end), (RUN, name, name_iid), more);
    }

    /// The number of a name, and whether it is new.
    fn number_of(&mut self, name: &'static str) -> (u64, bool) {
        let next = self.names.len() as u64 + 1;
        let number = *self.names.entry(name).or_insert(next);
        (number, number == next)
    }

    fn write_pair(
        &mut self,
        (begin, end): (u64, u64),
        (category, name, (name_iid, is_new)): (&str, &'static str, (u64, bool)),
        debug_annotations: Vec<DebugAnnotation>,
    ) {
        let new = EventName { iid: Some(name_iid), name: Some(readable(name).to_owned()) };
        let begins = TracePacket {
            timestamp: Some(begin),
            interned_data: is_new.then(|| InternedData { event_names: vec![new] }),
            track_event: Some(TrackEvent {
                name_iid: Some(name_iid),
                categories: vec![category.to_owned()],
                debug_annotations,
                ..self.event(Kind::SliceBegin)
            }),
            ..self.packet()
        };
        let ends = TracePacket {
            timestamp: Some(end),
            track_event: Some(self.event(Kind::SliceEnd)),
            ..self.packet()
        };
        self.write(&[begins, ends]);
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

    fn write(&mut self, packets: &[TracePacket]) {
        let shared = self.shared.clone();
        let mut out = shared.out.lock();
        // Without its name, or its track, what comes later would make no sense.
        let is_needed =
            |packet: &TracePacket| packet.track_event.is_none() || packet.interned_data.is_some();
        if out.len() > WAITING_BYTES_MAX && !packets.iter().any(is_needed) {
            self.lost += 1;
            return;
        }
        let before = out.len();
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let name = format!("{lost} slices found no room: the disk does not get on");
            let event = TrackEvent { name: Some(name), ..self.event(Kind::Instant) };
            let timestamp = packets.first().and_then(|packet| packet.timestamp);
            append(&TracePacket { timestamp, track_event: Some(event), ..self.packet() }, &mut out);
        }
        packets.iter().for_each(|packet| append(packet, &mut out));
        self.written += (out.len() - before) as u64;
    }
}

/// The thread ends.
impl Drop for Lane {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A function's name without what the compiler adds for async ones, each time that it goes on.
fn readable(name: &str) -> &str {
    name.trim_end_matches("::{{closure}}")
}

/// How many runs or spans there were of each function, and how long they took.
fn annotation(what: &str, counts: &Counts) -> DebugAnnotation {
    let number = |name: &str, value| DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    };
    let group = |name: &str, dict_entries| DebugAnnotation {
        name: Some(name.to_owned()),
        dict_entries,
        ..DebugAnnotation::default()
    };
    let of_one = |Count { name, runs, busy, longest }: &Count| {
        let values = [*runs, *busy, *longest];
        group(
            readable(name),
            NUMBERS.into_iter().zip(values).map(|(name, it)| number(name, it)).collect(),
        )
    };
    group(what, counts.iter().map(of_one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_trace::{Packets, Slice, Slices};

    /// What a lane writes that is given these runs, which begin and end at these times.
    fn written(act: impl FnOnce(&mut Lane, &dyn Fn(u64) -> Instant) + Send) -> (usize, Vec<Slice>) {
        let shared = Arc::<Shared>::default();
        let origin = Origin { at: Instant::now(), unix: Duration::from_secs(1000) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                Lane::begin(origin, 7, TrackDescriptor::default(), shared.clone());
                let at = |us| origin.at + Duration::from_micros(us);
                with_own(|lane| act(lane, &at));
            });
        });
        assert!(!shared.is_amid_run.load(Ordering::Acquire));
        let bytes = std::mem::take(&mut *shared.out.lock());
        let mut slices = Slices::default();
        let read = Packets::of(&bytes).filter_map(|packet| slices.next(packet)).collect();
        (bytes.len(), read)
    }

    fn runs(slices: &[Slice], name: &str) -> u64 {
        let functions = slices.iter().flat_map(|slice| &slice.functions);
        functions.filter(|count| count.name == name).map(|count| count.runs).sum()
    }

    #[test]
    fn runs_are_slices_with_their_times() {
        let (_, slices) = written(|lane, at| {
            lane.note_run("one::{{closure}}", at(5), at(7));
            lane.note_span("part", at(12), at(13));
            lane.note_run("two", at(10), at(20));
        });
        let times: Vec<_> = slices
            .iter()
            .map(|slice| {
                (&*slice.name, slice.begin_ns % 1_000_000_000, slice.end_ns % 1_000_000_000)
            })
            .collect();
        assert_eq!(times, [("one", 5000, 7000), ("part", 12_000, 13_000), ("two", 10_000, 20_000)]);
        assert_eq!(slices.iter().filter(|slice| slice.is_span).count(), 1);
    }

    #[test]
    fn short_runs_are_counted_together_once_a_lane_has_had_its_share() {
        const RUNS: u64 = 200_000;
        let (bytes, slices) = written(|lane, at| {
            for run in 0..RUNS {
                let name = if run % 3 == 0 { "third" } else { "other" };
                lane.note_span("within", at(10 * run + 1), at(10 * run + 2));
                lane.note_run(name, at(10 * run), at(10 * run + 9));
            }
            lane.note_run("long", at(3_000_000), at(3_020_000));
        });
        let share = AT_ONCE_BYTES + 3 * BYTES_PER_S;
        assert!((bytes as u64) < share + 100_000, "{bytes}");
        assert_eq!(runs(&slices, "third"), RUNS.div_ceil(3));
        assert_eq!(runs(&slices, "other"), RUNS - RUNS.div_ceil(3));
        assert_eq!(runs(&slices, "long"), 1);
        let within = slices.iter().flat_map(|slice| &slice.spans).map(|count| count.runs);
        let alone = slices.iter().filter(|slice| slice.is_span).count() as u64;
        assert_eq!(within.sum::<u64>() + alone, RUNS);
        let most = slices.iter().map(|slice| slice.end_ns - slice.begin_ns);
        assert_eq!(most.max(), Some(20_000_000), "the long one");
        assert!(slices.len() < RUNS as usize / 8, "{}", slices.len());
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (bytes, slices) = written(|lane, at| {
            *lane.shared.out.lock() = vec![0; WAITING_BYTES_MAX + 1];
            lane.note_run("named", at(0), at(1));
            lane.note_run("named", at(2), at(3));
            lane.note_run("named", at(4), at(5));
            assert_eq!(lane.lost, 2);
            lane.shared.out.lock().clear();
            lane.note_run("named", at(6), at(7));
            assert_eq!(lane.lost, 0);
        });
        assert!(slices.len() == 1 && bytes < 300, "{bytes} {slices:?}");
    }
}
