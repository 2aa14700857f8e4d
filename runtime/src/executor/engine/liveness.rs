//! What a PE knows of the other PEs' lives: the failure detector, and what it has reported.

use crate::detector::{Detector, FailureEvent};
use crate::lock::Lock;
use crate::transport::{Connections, Lane, LaneError};
use crossbeam_queue::SegQueue;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// Takes the events of the failure detector, on the detector's own thread.
pub type EventHandler = Box<dyn Fn(FailureEvent) + Send>;

/// How a PE hears of deaths, and which lane it uses after one.
pub struct DetectorSetup {
    /// The lane to go over to after a death. `None` if the job's lane can still be trusted then.
    pub fallback: Option<Box<dyn Lane>>,
    /// Starts the detector.
    pub start: Box<dyn FnOnce(EventHandler) -> DetectorStart + Send>,
}

/// The detector, or why it could not start.
pub type DetectorStart = Result<Box<dyn FailureDetector>, LaneError>;

/// A running failure detector. If it is dropped without a goodbye, the others consider this PE
/// dead.
pub trait FailureDetector: Send + Sync {
    /// That PE seems silent: the detector should check it.
    fn suspect(&self, pe: Pe);
    /// The main task has ended here: the detector should ask whether the result counts.
    fn ask_end(&self);
    /// The number of connections the detector has made so far.
    fn connections(&self) -> Connections {
        Connections::default()
    }
    /// Tells the other PEs that this one leaves in order.
    fn goodbye(self: Box<Self>);
}

impl FailureDetector for Detector {
    fn suspect(&self, pe: Pe) {
        Detector::suspect(self, pe);
    }

    fn ask_end(&self) {
        Detector::ask_end(self);
    }

    fn connections(&self) -> Connections {
        let counters = self.counters();
        Connections {
            opened: counters.dialled.load(Ordering::Relaxed),
            accepted: counters.accepted.load(Ordering::Relaxed),
        }
    }

    fn goodbye(self: Box<Self>) {
        let counters = Detector::goodbye(*self);
        tracing::debug!(?counters, "the failure detector has ended");
    }
}

/// What a PE knows from its failure detector.
pub struct Liveness {
    detector: Lock<Option<Box<dyn FailureDetector>>>,
    events: SegQueue<FailureEvent>,
    has_events: AtomicBool,
    has_failures: AtomicBool,
    /// The number of the PE that runs the main task.
    root: AtomicU32,
    /// How many PEs have taken the place of a root that had died.
    successions: AtomicU32,
    pes: u32,
    /// A bit for each PE, since the first death: a job without one needs no memory for it.
    dead: OnceLock<Box<[AtomicU64]>>,
    /// When the last death was reported.
    last_death: Lock<Option<Instant>>,
    /// When the first of the others left in order.
    over_since: OnceLock<Instant>,
}

impl Liveness {
    /// Of a job of this many PEs, all of which live.
    pub fn new(pes: u32) -> Self {
        Liveness {
            detector: Lock::new(None),
            events: SegQueue::new(),
            has_events: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            root: AtomicU32::new(Pe::ROOT.number()),
            successions: AtomicU32::new(0),
            pes,
            dead: OnceLock::new(),
            last_death: Lock::new(None),
            over_since: OnceLock::new(),
        }
    }

    /// Whether the detector has reported this PE's death.
    pub fn is_dead(&self, pe: Pe) -> bool {
        let is_set = |words: &[AtomicU64]| {
            words
                .get(pe.index() / 64)
                .is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (pe.number() % 64) != 0)
        };
        self.has_failures() && self.dead.get().is_some_and(|words| is_set(words))
    }

    /// The PEs whose death the detector has reported, by number.
    pub(crate) fn dead(&self) -> impl Iterator<Item = Pe> + '_ {
        let words = self.dead.get().filter(|_| self.has_failures());
        let words = words.into_iter().flatten().zip(0..);
        words.flat_map(|(word, at)| {
            let word = word.load(Ordering::Relaxed);
            (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| Pe::new(at * 64 + bit))
        })
    }

    /// The PE that runs the main task: another than at first once a succession was reported.
    pub fn root(&self) -> Pe {
        Pe::new(self.root.load(Ordering::Relaxed))
    }

    /// How many PEs have taken the place of a root, as far as this one has heard.
    pub(crate) fn successions(&self) -> u32 {
        self.successions.load(Ordering::Relaxed)
    }

    /// Whether all others have died, as far as this PE has heard.
    pub(crate) fn is_alone(&self) -> bool {
        self.dead().count() + 1 >= self.pes as usize
    }

    /// When this PE last heard of a death.
    pub(crate) fn last_death(&self) -> Option<Instant> {
        *self.last_death.lock()
    }

    /// Whether a PE has died, or this one must leave.
    pub(crate) fn has_failures(&self) -> bool {
        self.has_failures.load(Ordering::Acquire)
    }

    /// Whether no PE has died, and the first to leave in order did so less than `patience` ago.
    pub(crate) fn are_others_there(&self, patience: Duration) -> bool {
        !self.has_failures() && self.over_since.get().is_none_or(|over| over.elapsed() < patience)
    }

    /// Notes an event. Returns whether it is the first death.
    pub fn note(&self, event: FailureEvent) -> bool {
        if let FailureEvent::Dead(dead) = &event {
            *self.last_death.lock() = Some(Instant::now());
            let words = self
                .dead
                .get_or_init(|| (0..self.pes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
            for pe in dead.iter().filter(|pe| pe.number() < self.pes) {
                words[pe.index() / 64].fetch_or(1 << (pe.number() % 64), Ordering::Relaxed);
            }
        }
        if let FailureEvent::Succession { judge } = &event {
            self.root.store(judge.number(), Ordering::Relaxed);
            self.successions.fetch_add(1, Ordering::Relaxed);
        }
        let is_over = matches!(event, FailureEvent::JobOver { .. });
        if is_over {
            self.over_since.get_or_init(Instant::now);
        }
        let is_harmless = is_over || event == FailureEvent::EndAgreed;
        let is_first = !is_harmless && !self.has_failures.swap(true, Ordering::AcqRel);
        self.events.push(event);
        self.has_events.store(true, Ordering::Release);
        is_first
    }

    /// Whether an event may wait to be handled.
    pub(crate) fn has_events(&self) -> bool {
        self.has_events.load(Ordering::Relaxed)
    }

    /// The next event that has not been handled.
    pub(crate) fn next(&self) -> Option<FailureEvent> {
        // Looking first: a swap would cost a worker that takes many turns more than the turn
        // itself.
        if !self.has_events() || !self.has_events.swap(false, Ordering::Acquire) {
            return None;
        }
        let event = self.events.pop();
        if !self.events.is_empty() {
            self.has_events.store(true, Ordering::Relaxed);
        }
        event
    }

    /// Sets the running detector.
    pub fn set_detector(&self, detector: Box<dyn FailureDetector>) {
        *self.detector.lock() = Some(detector);
    }

    /// Whether there is a detector: else all PEs are threads of one process.
    pub(crate) fn has_detector(&self) -> bool {
        self.detector.lock().is_some()
    }

    /// Has the detector check a PE. Returns whether there is a detector.
    pub(crate) fn suspect(&self, pe: Pe) -> bool {
        let detector = self.detector.lock();
        detector.iter().for_each(|detector| detector.suspect(pe));
        detector.is_some()
    }

    /// Has the detector ask whether the job ends here. Returns whether there is a detector.
    pub(crate) fn ask_end(&self) -> bool {
        let detector = self.detector.lock();
        detector.iter().for_each(|detector| detector.ask_end());
        detector.is_some()
    }

    /// The connections of the detector.
    pub(crate) fn connections(&self) -> Connections {
        self.detector.lock().as_ref().map(|detector| detector.connections()).unwrap_or_default()
    }

    /// Ends the detector: with a goodbye, or as if this PE had died.
    pub(crate) fn end(&self, in_order: bool) {
        match self.detector.lock().take() {
            Some(detector) if in_order => detector.goodbye(),
            other => drop(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_there_until_one_dies_or_the_first_has_long_left() {
        let (soon, long) = (Duration::ZERO, Duration::MAX);
        let liveness = Liveness::new(3);
        assert!(liveness.are_others_there(soon));
        assert!(!liveness.note(FailureEvent::JobOver { by: Pe::ROOT }));
        assert!(liveness.are_others_there(long) && !liveness.are_others_there(soon));
        assert!(liveness.note(FailureEvent::Dead(vec![Pe::new(2)])));
        assert!(!liveness.are_others_there(long));
    }

    #[test]
    fn the_dead_are_those_that_were_reported() {
        let liveness = Liveness::new(130);
        assert!(!liveness.is_dead(Pe::new(1)) && liveness.dead().next().is_none());
        let memory = allocation_counter::measure(|| drop(Liveness::new(100_000)));
        assert!(memory.bytes_max < 1000, "{} bytes", memory.bytes_max);
        let dead = [1, 63, 64, 129].map(Pe::new);
        // A number that the job does not have is ignored.
        liveness.note(FailureEvent::Dead(dead.into_iter().chain([Pe::new(131)]).collect()));
        assert_eq!(liveness.dead().collect::<Vec<_>>(), dead);
        for pe in (0..300).map(Pe::new) {
            assert_eq!(liveness.is_dead(pe), dead.contains(&pe));
        }
    }

    #[test]
    fn a_pe_is_alone_once_all_others_are_dead() {
        let liveness = Liveness::new(3);
        assert!(
            !liveness.is_alone() && !liveness.has_failures() && liveness.last_death().is_none()
        );
        liveness.note(FailureEvent::Dead(vec![Pe::new(1)]));
        assert!(!liveness.is_alone() && liveness.has_failures() && liveness.last_death().is_some());
        assert!(!liveness.note(FailureEvent::Dead(vec![Pe::new(2)])), "the first has come");
        assert!(liveness.is_alone());
        assert!(Liveness::new(1).is_alone());
    }

    #[test]
    fn events_are_handled_in_order_each_once() {
        let liveness = Liveness::new(3);
        assert!(!liveness.has_events() && liveness.next().is_none());
        let over = || FailureEvent::JobOver { by: Pe::new(1) };
        let all = [over, || FailureEvent::EndAgreed, || FailureEvent::Dead(vec![Pe::new(2)])];
        let is_first = all.map(|event| liveness.note(event()));
        assert_eq!(is_first, [false, false, true], "of those that are failures");
        for event in all {
            assert!(liveness.has_events());
            assert_eq!(liveness.next(), Some(event()));
        }
        assert!(!liveness.has_events() && liveness.next().is_none());
    }

    #[test]
    fn a_successor_is_the_root() {
        let liveness = Liveness::new(3);
        assert_eq!((liveness.root(), liveness.successions()), (Pe::ROOT, 0));
        for judge in [2, 1].map(Pe::new) {
            liveness.note(FailureEvent::Succession { judge });
        }
        assert_eq!((liveness.root(), liveness.successions()), (Pe::new(1), 2));
    }

    /// What a detector was asked to do.
    type Asked = std::sync::Arc<Lock<Vec<String>>>;

    struct Noting(Asked);

    impl Noting {
        fn note(&self, what: &str) {
            self.0.lock().push(what.to_owned());
        }
    }

    impl FailureDetector for Noting {
        fn suspect(&self, pe: Pe) {
            self.note(&format!("suspect {pe}"));
        }
        fn ask_end(&self) {
            self.note("ask for the end");
        }
        fn connections(&self) -> Connections {
            Connections { opened: 3, accepted: 4 }
        }
        fn goodbye(self: Box<Self>) {
            self.note("goodbye");
        }
    }

    #[test]
    fn the_detector_is_asked_as_long_as_there_is_one() {
        for (in_order, last) in [(true, Some("goodbye")), (false, None)] {
            let (asked, liveness) = (Asked::default(), Liveness::new(3));
            assert!(!liveness.suspect(Pe::new(1)) && !liveness.ask_end());
            assert_eq!(liveness.connections().opened, 0);
            liveness.set_detector(Box::new(Noting(asked.clone())));
            assert!(liveness.suspect(Pe::new(1)) && liveness.ask_end());
            assert_eq!(liveness.connections().opened, 3);
            liveness.end(in_order);
            assert!(!liveness.suspect(Pe::new(1)) && !liveness.ask_end());
            let expected = ["suspect PE 1", "ask for the end"].into_iter().chain(last);
            assert!(asked.lock().iter().eq(expected), "{asked:?}");
        }
    }
}
