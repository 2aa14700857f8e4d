//! What a PE knows of the other PEs' lives: the failure detector, and what it has reported.

use crate::detector::{Detector, FailureEvent};
use crate::transport::{Connections, Lane, LaneError};
use crossbeam_queue::SegQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
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
    detector: Mutex<Option<Box<dyn FailureDetector>>>,
    events: SegQueue<FailureEvent>,
    has_events: AtomicBool,
    has_failures: AtomicBool,
    dead: Box<[AtomicBool]>,
    /// When the first of the others left in order.
    over_since: OnceLock<Instant>,
}

impl Liveness {
    /// Of a job of this many PEs, all of which live.
    pub fn new(pes: u32) -> Self {
        Liveness {
            detector: Mutex::new(None),
            events: SegQueue::new(),
            has_events: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            dead: (0..pes).map(|_| AtomicBool::new(false)).collect(),
            over_since: OnceLock::new(),
        }
    }

    /// Whether the detector has reported this PE's death.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.has_failures() && self.dead.get(pe.index()).is_some_and(|d| d.load(Ordering::Relaxed))
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
            dead.iter().filter_map(|pe| self.dead.get(pe.index())).for_each(|dead| {
                dead.store(true, Ordering::Relaxed);
            });
        }
        let is_over = matches!(event, FailureEvent::JobOver { .. });
        if is_over {
            self.over_since.get_or_init(Instant::now);
        }
        let is_first = !is_over && !self.has_failures.swap(true, Ordering::AcqRel);
        self.events.push(event);
        self.has_events.store(true, Ordering::Release);
        is_first
    }

    /// The next event that has not been handled.
    pub(crate) fn next(&self) -> Option<FailureEvent> {
        // Looking first: a swap would cost a worker that takes many turns more than the turn
        // itself.
        if !self.has_events.load(Ordering::Relaxed)
            || !self.has_events.swap(false, Ordering::Acquire)
        {
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
        *self.detector() = Some(detector);
    }

    fn detector(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn FailureDetector>>> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the detector check a PE. Returns whether there is a detector.
    pub(crate) fn suspect(&self, pe: Pe) -> bool {
        let detector = self.detector();
        detector.iter().for_each(|detector| detector.suspect(pe));
        detector.is_some()
    }

    /// The connections of the detector.
    pub(crate) fn connections(&self) -> Connections {
        self.detector().as_ref().map(|detector| detector.connections()).unwrap_or_default()
    }

    /// Ends the detector: with a goodbye, or as if this PE had died.
    pub(crate) fn end(&self, in_order: bool) {
        match self.detector().take() {
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
}
