//! Hearing of deaths, and leaving the lane that cannot be trusted after one.

use super::engine::Engine;
use super::engine_host::EngineHost;
use super::failure::JobError;
use super::processor::Processor;
use crate::detector::{Detector, FailureEvent};
use crate::protocol::Phase;
use crate::transport::{Connections, Lane, LaneError, Sleeper};
use crossbeam_queue::SegQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How often a PE looks whether others have gone over to the fallback lane already.
const CHECK_FALLBACK_EVERY: Duration = Duration::from_millis(100);

/// Takes what the watch finds out, on the watch's own thread.
pub type EventHandler = Box<dyn Fn(FailureEvent) + Send>;

/// How a PE hears that others have died, and how it goes on then.
pub struct DetectorSetup {
    /// The lane to go over to when somebody has died; `None` if the job's lane can be trusted even
    /// then.
    pub fallback: Option<Box<dyn Lane>>,
    /// Begins the watch.
    pub begin: Box<dyn FnOnce(EventHandler) -> DetectorStart + Send>,
}

/// The detector, or why there is none.
pub type DetectorStart = Result<Box<dyn FailureDetector>, LaneError>;

/// Who keeps the watch. When it is dropped without a goodbye, others take this PE for dead.
pub trait FailureDetector: Send + Sync {
    /// This PE seems silent: the watch is to look at it.
    fn suspect(&self, pe: Pe);
    /// How many connections the watch has taken so far.
    fn connections(&self) -> Connections {
        Connections::default()
    }
    /// Tells the others that this PE leaves in order.
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
        tracing::debug!(?counters, "the watch has ended");
    }
}

/// What a PE knows from its watch.
pub(super) struct Liveness {
    detector: Mutex<Option<Box<dyn FailureDetector>>>,
    events: SegQueue<FailureEvent>,
    has_events: AtomicBool,
    has_failures: AtomicBool,
    dead: Box<[AtomicBool]>,
    /// When the first of the others was heard to leave in order.
    over_since: OnceLock<Instant>,
}

impl Liveness {
    pub(super) fn new(pes: u32) -> Self {
        Liveness {
            detector: Mutex::new(None),
            events: SegQueue::new(),
            has_events: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            dead: (0..pes).map(|_| AtomicBool::new(false)).collect(),
            over_since: OnceLock::new(),
        }
    }

    pub(super) fn is_dead(&self, pe: Pe) -> bool {
        self.has_failures() && self.dead.get(pe.index()).is_some_and(|d| d.load(Ordering::Relaxed))
    }

    /// Whether anybody has died, or this PE must leave.
    pub(super) fn has_failures(&self) -> bool {
        self.has_failures.load(Ordering::Acquire)
    }

    /// Whether nobody has died, and the first to leave in order did so less than this ago.
    pub(super) fn are_others_there(&self, patience: Duration) -> bool {
        !self.has_failures() && self.over_since.get().is_none_or(|over| over.elapsed() < patience)
    }

    /// Takes note of a event. Whether it is the first of a death.
    fn note(&self, event: FailureEvent) -> bool {
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

    /// The next event that has not been heeded.
    fn next(&self) -> Option<FailureEvent> {
        // Looking first, since swapping costs a worker that takes many turns more than the turn.
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

    fn detector(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn FailureDetector>>> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on a suspicion. Whether there is anybody to hand it to.
    pub(super) fn suspect(&self, pe: Pe) -> bool {
        let detector = self.detector();
        detector.iter().for_each(|detector| detector.suspect(pe));
        detector.is_some()
    }

    /// The connections of the watch.
    pub(super) fn connections(&self) -> Connections {
        self.detector().as_ref().map(|detector| detector.connections()).unwrap_or_default()
    }

    /// Ends the watch: with a goodbye, or as if this PE had died.
    pub(super) fn end(&self, in_order: bool) {
        match self.detector().take() {
            Some(detector) if in_order => detector.goodbye(),
            other => drop(other),
        }
    }
}

impl Processor {
    /// Begins to watch.
    pub(super) fn start_detector(
        self: &Arc<Self>,
        begin: impl FnOnce(EventHandler) -> DetectorStart,
    ) -> Result<(), JobError> {
        let (pe, liveness) = (Arc::downgrade(self), self.liveness.clone());
        let report = move |event| {
            let is_first = liveness.note(event);
            if let Some(pe) = pe.upgrade() {
                if is_first {
                    pe.leave_mpi();
                }
                pe.nudge();
            }
        };
        let detector = begin(Box::new(report));
        let detector =
            detector.map_err(|source| JobError::DetectorSetup { me: self.me(), source })?;
        *self.liveness.detector() = Some(detector);
        Ok(())
    }

    /// Whether this PE is known to have died.
    pub(super) fn is_dead(&self, pe: Pe) -> bool {
        self.liveness.is_dead(pe)
    }

    /// Somebody has died: the thread that drives this PE may be inside a call that will not return,
    /// so another takes over.
    pub(super) fn leave_mpi(self: &Arc<Self>) {
        if self.mpi_gate.has_pump() {
            self.mpi_gate.seal();
            self.change_driver();
        }
    }

    /// If a worker has gone into a call and will not return, others take its place.
    pub(super) fn replace_stuck_worker(&self) {
        if !self.mpi_gate.gives_up_a_worker() {
            return;
        }
        tracing::warn!(pe = self.me().number(), "a call into MPI does not return: left behind");
        let seats = self.queues.clone();
        let (me, threads) = (self.me(), self.settings.threads);
        match super::worker::workers(me, threads, "substitute", Box::new(move |_| seats.stand())) {
            // The other workers of the old pool end when they have nothing to do.
            Ok(workers) => self.replace_workers(workers),
            Err(error) => tracing::error!(pe = me.number(), "{error}"),
        }
    }
}

impl Engine {
    /// Does what the watch demands.
    pub(super) fn handle_failures(&mut self, pe: &Arc<Processor>) -> Result<(), JobError> {
        let me = pe.me();
        while let Some(event) = pe.liveness.next() {
            match event {
                FailureEvent::Dead(dead) => {
                    self.fail_over(pe);
                    for dead in dead {
                        if pe.is_ending() {
                            // It may have left in order, and its goodbye been lost on the way.
                            tracing::debug!(pe = me.number(), "{dead} has gone");
                        } else {
                            tracing::info!(pe = me.number(), "{dead} has died");
                        }
                        self.port.close(dead);
                        pe.store.forget(|key| key.home == dead);
                        pe.values.fade(|key| key.home == dead);
                        pe.announce_death(dead);
                        pe.stop_orphans(dead);
                        self.node.mark_dead(dead, &mut EngineHost { state: &mut self.state, pe });
                    }
                }
                // The root was needed until it said that the job is over, and so was this PE.
                FailureEvent::Expelled | FailureEvent::RootLost { .. }
                    if self.node.phase() != Phase::Running =>
                {
                    self.let_go(pe);
                }
                FailureEvent::Expelled => return Err(JobError::Expelled { me }),
                FailureEvent::RootLost { reason } => return Err(JobError::RootLost { me, reason }),
                // The job is over when the root says so. Others have no business saying goodbye
                // before.
                FailureEvent::JobOver { by } if me == Pe::ROOT => {
                    if self.node.phase() == Phase::Running {
                        tracing::error!("{by} has left before the job was over");
                    }
                }
                FailureEvent::JobOver { by } => {
                    tracing::debug!(pe = me.number(), "the job is over, as {by} has left");
                    self.node.end(&mut EngineHost { state: &mut self.state, pe });
                }
            }
        }
        Ok(())
    }

    /// Goes over to the fallback lane. What has not arrived is sent again there.
    pub(super) fn fail_over(&mut self, pe: &Processor) {
        if let Some(fallback) = self.fallback.take() {
            pe.mpi_gate.seal();
            pe.sleep_in(&fallback.sleeper());
            self.port.switch_lane(fallback);
            tracing::info!(pe = pe.me().number(), "goes on over {}", self.port.lane_name());
        }
    }

    /// What to do when the lane has failed: to go over to the fallback lane, while there is one.
    pub(super) fn try_fail_over(&mut self, pe: &Processor, error: &LaneError) -> bool {
        if self.fallback.is_none() {
            return false;
        }
        tracing::warn!(pe = pe.me().number(), "{error}");
        self.fail_over(pe);
        true
    }

    /// Looks whether others have gone over to the fallback lane: they may have heard earlier, or have
    /// found the lane broken.
    pub(super) fn check_fallback(&mut self, pe: &Processor, now: Duration) {
        let Some(fallback) = &mut self.fallback else { return };
        if now < self.check_fallback_at {
            return;
        }
        self.check_fallback_at = now + CHECK_FALLBACK_EVERY;
        let mut early = Vec::new();
        // What is wrong with it shows when it is needed.
        let _ = fallback.poll(&mut |from, frame| early.push((from, frame.to_vec())));
        if !early.is_empty() {
            let lane = self.fallback.take();
            self.fallback = lane.map(|lane| Box::new(Prefetched { lane, early }) as Box<dyn Lane>);
            self.fail_over(pe);
        }
    }
}

/// A lane from which some frames have been taken already.
struct Prefetched {
    lane: Box<dyn Lane>,
    early: Vec<(Pe, Vec<u8>)>,
}

impl Lane for Prefetched {
    fn name(&self) -> &'static str {
        self.lane.name()
    }

    fn frame_bytes_max(&self) -> usize {
        self.lane.frame_bytes_max()
    }

    fn has_room(&self, to: Pe) -> bool {
        self.lane.has_room(to)
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        self.lane.send(to, frame)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let early = std::mem::take(&mut self.early);
        early.iter().for_each(|(from, frame)| deliver(*from, frame));
        Ok(early.len() + self.lane.poll(deliver)?)
    }

    fn forget(&mut self, pe: Pe) {
        self.lane.forget(pe);
    }

    fn is_flushed(&mut self) -> bool {
        self.lane.is_flushed()
    }

    fn connections(&self) -> Connections {
        self.lane.connections()
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.lane.sleeper()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_are_there_until_one_dies_or_has_long_left() {
        let (soon, long) = (Duration::ZERO, Duration::MAX);
        let liveness = Liveness::new(3);
        assert!(liveness.are_others_there(soon));
        assert!(!liveness.note(FailureEvent::JobOver { by: Pe::ROOT }));
        assert!(liveness.are_others_there(long) && !liveness.are_others_there(soon));
        assert!(liveness.note(FailureEvent::Dead(vec![Pe::new(2)])));
        assert!(!liveness.are_others_there(long));
    }
}
