//! What one thread records.

use super::item::Item;
use super::stretch::Stretch;
use super::{CURRENT, Compared};
use crate::lock::Lock;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use ultramarine_trace::packet::TrackDescriptor;

/// How much a track may write before runs are counted together.
const AT_ONCE_BYTES: u64 = 1 << 20;

/// How much more it may write each second. (59 MB in an hour.)
const BYTES_PER_S: u64 = 16 << 10;

/// The most that waits to be written. What finds no room is counted: the disk is too slow.
const WAITING_BYTES_MAX: u64 = 4 << 20;

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The calling thread's track, and what only the thread itself needs.
struct Own {
    recording: u64,
    track: Arc<Track>,
    /// The runs that the thread is amid, one within the other: how much of each was that of others
    /// within it.
    amid: Vec<u64>,
    /// When its last run ended.
    last_end: Option<Instant>,
}

/// Runs `act` if the calling thread has a track in the recording that goes on.
fn with_own(act: impl FnOnce(&mut Own)) {
    // A thread that ends has none any more.
    let _ = OWN.try_with(|own| {
        if let Some(own) = &mut *own.borrow_mut()
            && own.recording == CURRENT.load(Relaxed)
        {
            act(own);
        }
    });
}

/// A run begins.
pub(super) fn begin_run() {
    with_own(|own| {
        own.amid.push(0);
        own.track.is_amid_run.store(true, Relaxed);
    });
}

/// What has begun last was no run.
pub(super) fn call_off() {
    with_own(|own| {
        own.amid.pop();
        own.track.is_amid_run.store(!own.amid.is_empty(), Relaxed);
    });
}

/// The run that has begun last is over. It has begun then, or when the last one ended.
pub(super) fn note_run(name: &'static str, begun: Option<Instant>, end: Instant) {
    with_own(|own| {
        let begun = begun.or(own.last_end).unwrap_or(end);
        own.last_end = Some(end);
        let took = end.saturating_duration_since(begun).as_nanos() as u64;
        let of_others = own.amid.pop().unwrap_or_default();
        own.amid.iter_mut().last().into_iter().for_each(|outer| *outer += took);
        let own_ns = took.saturating_sub(of_others);
        own.track.note_run(name, (begun, end), own_ns, own.amid.is_empty());
    });
}

/// A span is over.
pub(super) fn note_span(name: &'static str, begun: Instant, end: Instant) {
    with_own(|own| own.track.lock().note_span(name, begun, end));
}

/// A thread's track: see the [module](super).
pub(super) struct Track {
    pub(super) number: u32,
    pub(super) described: TrackDescriptor,
    /// Whether the thread is amid a run. Only the thread says so; the lock makes it known in time.
    is_amid_run: AtomicBool,
    noted: Lock<Noted>,
}

/// What a thread has noted, and not yet given to the one that writes. Times are in nanoseconds
/// since the recording began.
struct Noted {
    origin: Instant,
    stretch: Stretch,
    /// How much of the file it may have taken.
    written: u64,
    /// How many runs, spans and events found no room.
    lost: u64,
    /// For the thread that writes the file.
    out: Vec<Item>,
    /// How much of it there may be.
    waiting: u64,
}

impl Track {
    /// Makes a track of this number, which is described so, in a recording that began then.
    pub(super) fn new(origin: Instant, number: u32, described: TrackDescriptor) -> Self {
        let (stretch, out) = Default::default();
        let noted = Noted { origin, stretch, written: 0, lost: 0, out, waiting: 0 };
        let is_amid_run = AtomicBool::new(false);
        Track { number, described, is_amid_run, noted: Lock::new(noted) }
    }

    /// Makes it the calling thread's, in this recording.
    pub(super) fn bind(self: Arc<Self>, recording: u64) {
        OWN.set(Some(Own { recording, track: self, amid: Vec::new(), last_end: None }));
    }

    /// Whether the thread is amid a run.
    pub(super) fn is_amid_run(&self) -> bool {
        self.is_amid_run.load(Relaxed)
    }

    fn lock(&self) -> impl std::ops::DerefMut<Target = Noted> {
        self.noted.lock()
    }

    /// A run is over of which this much was its own, and not that of a run within it.
    fn note_run(
        &self,
        name: &'static str,
        (begun, end): (Instant, Instant),
        own_ns: u64,
        is_outermost: bool,
    ) {
        let mut noted = self.lock();
        let [begin, end] = [begun, end].map(|at| noted.since_origin(at));
        noted.stretch.add(name, (begin, end), own_ns);
        if is_outermost {
            self.is_amid_run.store(false, Relaxed);
            noted.give_if_due(end);
        }
    }

    /// Notes what happened to a PE.
    pub(super) fn note_event(&self, text: String, at: Instant) {
        let mut noted = self.lock();
        let at = noted.since_origin(at);
        noted.give(Item::Event { text, at }, 1);
    }

    /// Notes how another clock differs.
    pub(super) fn note_clock(&self, compared: Compared, at: Instant) {
        let mut noted = self.lock();
        let at = noted.since_origin(at);
        noted.give(Item::Clock { compared, at }, 1);
    }

    /// Notes what a PE has counted, if there is room or it is the last time.
    pub(super) fn note_counters(&self, counters: Vec<(String, u64)>, at: Instant, is_last: bool) {
        let mut noted = self.lock();
        let at = noted.since_origin(at);
        if is_last || noted.may_write(at) {
            noted.give(Item::Counters { counters, at }, 0);
        }
    }

    /// What the file lacks at this time. At the end of the recording, all that has been counted.
    pub(super) fn take(&self, now: Instant, is_last: bool) -> Vec<Item> {
        let mut noted = self.lock();
        let at = noted.since_origin(now);
        if is_last {
            noted.give_stretch();
        } else if !self.is_amid_run() {
            // A run within another must not be written before that.
            noted.give_if_due(at);
        }
        noted.waiting = 0;
        let mut items = std::mem::take(&mut noted.out);
        if noted.lost > 0 {
            items.push(Item::Lost { runs: std::mem::take(&mut noted.lost), at });
        }
        items
    }
}

impl Noted {
    fn since_origin(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_nanos() as u64
    }

    /// A span is over.
    fn note_span(&mut self, name: &'static str, begun: Instant, end: Instant) {
        let [begin, end] = [begun, end].map(|at| self.since_origin(at));
        // Runs that wait come first, or spans might take all the room there is.
        if self.stretch.times.is_none() && self.may_write(end) {
            self.give(Item::Span { name, times: (begin, end) }, 1);
        } else {
            self.stretch.spans.add(name, end.saturating_sub(begin));
        }
    }

    /// Whether there is room for another slice at this time.
    fn may_write(&self, now: u64) -> bool {
        self.written < AT_ONCE_BYTES + now / 1_000_000 * BYTES_PER_S / 1000
    }

    /// Gives away what has been counted, if there is room.
    fn give_if_due(&mut self, now: u64) {
        if self.may_write(now) {
            self.give_stretch();
        }
    }

    fn give_stretch(&mut self) {
        // Without a run, spans wait for the next one.
        if self.stretch.times.is_some() {
            let stretch = Box::new(std::mem::take(&mut self.stretch));
            let runs = stretch.functions.runs() + stretch.spans.runs();
            self.give(Item::Runs(stretch), runs);
        }
    }

    /// Gives away what stands for this number of runs, spans and events.
    fn give(&mut self, item: Item, runs: u64) {
        if self.waiting > WAITING_BYTES_MAX {
            self.lost += runs;
            return;
        }
        let bytes = item.bytes();
        self.waiting += bytes;
        self.written += bytes;
        self.out.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::clock::{Clock, Skew};
    use crate::trace::encoder::Encoder;
    use std::time::Duration;
    use ultramarine_trace::packet::ProcessDescriptor;
    use ultramarine_trace::{Noted, Packets, Reader, Slice};

    /// The calling thread has a track, in a recording that has begun just now.
    struct Alone(Arc<Track>, Instant, Clock);

    impl Alone {
        fn begin() -> Self {
            let clock = Clock::new(Skew::default());
            let at = clock.origin;
            let (uuid, process) = (Some(7), Some(ProcessDescriptor::default()));
            let described = TrackDescriptor { uuid, process, ..TrackDescriptor::default() };
            let track = Arc::new(Track::new(at, 7, described));
            CURRENT.store(1, Relaxed);
            track.clone().bind(1);
            Alone(track, at, clock)
        }

        fn run(&self, name: &'static str, (begin, end): (u64, u64)) {
            begin_run();
            self.note_run(name, (begin, end));
        }

        fn note_run(&self, name: &'static str, (begin, end): (u64, u64)) {
            note_run(name, Some(self.1 + us(begin)), self.1 + us(end));
        }

        fn note_span(&self, name: &'static str, (begin, end): (u64, u64)) {
            note_span(name, self.1 + us(begin), self.1 + us(end));
        }

        fn take(&self, at: u64, is_last: bool) -> Vec<Item> {
            self.0.take(self.1 + us(at), is_last)
        }

        /// What is in the file, and its length.
        fn read(&self, items: Vec<Item>) -> (Reader, Vec<Noted>, usize) {
            let bytes = Encoder::new(&self.0, self.2).encode(items);
            let mut reader = Reader::default();
            let read = Packets::of(&bytes).filter_map(|packet| reader.next(packet)).collect();
            (reader, read, bytes.len())
        }

        fn slices(&self, items: Vec<Item>) -> Vec<Slice> {
            slices(self.read(items).1)
        }
    }

    fn slices(noted: Vec<Noted>) -> Vec<Slice> {
        let slice = |noted| match noted {
            Noted::Slice(slice) => Some(slice),
            _ => None,
        };
        noted.into_iter().filter_map(slice).collect()
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
        let alone = Alone::begin();
        alone.run("one::{{closure}}", (5, 7));
        begin_run();
        alone.note_span("part", (12, 13));
        alone.note_run("two", (10, 20));
        let slices = alone.slices(alone.take(20, true));
        let start = alone.2.at(0);
        let times: Vec<_> = slices
            .iter()
            .map(|slice| (&*slice.name, slice.begin_ns - start, slice.end_ns - start))
            .collect();
        assert_eq!(times, [("one", 5000, 7000), ("part", 12_000, 13_000), ("two", 10_000, 20_000)]);
        assert_eq!(slices.iter().filter(|slice| slice.is_span).count(), 1);
    }

    #[test]
    fn a_run_within_another_is_not_counted_twice() {
        let alone = Alone::begin();
        begin_run();
        begin_run();
        begin_run();
        call_off();
        alone.note_run("inner", (10, 30));
        assert!(alone.0.is_amid_run());
        assert!(alone.take(31, false).is_empty(), "it would overlap with the outer one");
        alone.note_run("outer", (5, 40));
        assert!(!alone.0.is_amid_run());
        let slices = alone.slices(alone.take(40, true));
        let [slice] = &slices[..] else { panic!("{slices:?}") };
        assert_eq!(slice.took_ns(), 35_000);
        let busy: Vec<_> =
            slice.functions.iter().map(|count| (&*count.name, count.busy_ns)).collect();
        assert_eq!(busy, [("inner", 20_000), ("outer", 15_000)]);
    }

    #[test]
    fn what_began_at_no_known_time_began_when_the_last_run_ended() {
        let alone = Alone::begin();
        alone.run("task", (1, 4));
        begin_run();
        note_run("job", None, alone.1 + us(9));
        let slices = alone.slices(alone.take(9, true));
        assert_eq!(slices.iter().map(Slice::took_ns).collect::<Vec<_>>(), [3000, 5000]);
    }

    #[test]
    fn a_pe_has_events_and_counters_that_are_written_when_they_change() {
        let alone = Alone::begin();
        let Alone(track, at, _) = &alone;
        let counted = |value| vec![("waiting".to_owned(), value), ("same".to_owned(), 1)];
        for (ms, value) in [(0, 3), (1, 3), (2, 5)] {
            track.note_counters(counted(value), *at + us(1000 * ms), false);
        }
        track.note_event("it has died".to_owned(), *at + us(3000));
        let (_, noted, _) = alone.read(alone.take(4000, true));
        let texts: Vec<_> = noted
            .iter()
            .map(|noted| match noted {
                Noted::Sample(sample) => format!("{} {}", sample.counter, sample.value),
                Noted::Event(event) => event.text.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["waiting 3", "same 1", "waiting 5", "it has died"]);
    }

    /// However the runs come: the track is asked ten times a second, as at each pause.
    #[test]
    fn a_track_that_has_had_its_share_counts_runs_and_keeps_within_it() {
        const RUNS: u64 = 200_000;
        let alone = Alone::begin();
        let mut items = Vec::new();
        for run in 0..RUNS {
            let name = if run % 3 == 0 { "third" } else { "other" };
            let begin = 100 * run;
            begin_run();
            alone.note_span("within", (begin, begin + 1));
            alone.note_run(name, (begin, begin + 9));
            if run % 1000 == 0 {
                items.extend(alone.take(begin + 9, false));
            }
        }
        items.extend(alone.take(100 * RUNS, true));
        let (_, noted, bytes) = alone.read(items);
        let share = AT_ONCE_BYTES + 20 * BYTES_PER_S;
        assert!((bytes as u64) < share + 1000, "{bytes}");
        let slices = slices(noted);
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
        let alone = Alone::begin();
        alone.0.lock().waiting = WAITING_BYTES_MAX + 1;
        (0..3).for_each(|run| alone.run("named", (run, run)));
        alone.0.lock().waiting = 0;
        alone.run("named", (4, 5));
        let (reader, noted, _) = alone.read(alone.take(6, true));
        let slices = noted.iter().filter(|noted| matches!(noted, Noted::Slice(_))).count();
        assert_eq!((slices, reader.lost()), (1, 3));
    }
}
