//! Hearing of deaths, and leaving the lane that cannot be trusted after one.

use super::engine::Engine;
use super::failure::JobError;
use super::processor::Processor;
use super::station::Station;
use crate::detector::{Detector, Verdict};
use crate::protocol::Phase;
use crate::transport::{Connections, Lane, LaneError, Sleeper};
use crossbeam_queue::SegQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How often a PE looks whether others have gone over to the lifeboat already.
const LOOK_OUT_EVERY: Duration = Duration::from_millis(100);

/// Takes what the watch finds out, on the watch's own thread.
pub type Report = Box<dyn Fn(Verdict) + Send>;

/// How a PE hears that others have died, and how it goes on then.
pub struct Watch {
    /// The lane to go over to when somebody has died; `None` if the job's lane can be trusted even
    /// then.
    pub lifeboat: Option<Box<dyn Lane>>,
    /// Begins the watch.
    pub begin: Box<dyn FnOnce(Report) -> Beginning + Send>,
}

/// The watchman, or why there is none.
pub type Beginning = Result<Box<dyn Watchman>, LaneError>;

/// Who keeps the watch. When it is dropped without a goodbye, others take this PE for dead.
pub trait Watchman: Send + Sync {
    /// This PE seems silent: the watch is to look at it.
    fn suspect(&self, pe: Pe);
    /// How many connections the watch has taken so far.
    fn connections(&self) -> Connections {
        Connections::default()
    }
    /// Tells the others that this PE leaves in order.
    fn goodbye(self: Box<Self>);
}

impl Watchman for Detector {
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
pub(super) struct Vigil {
    watchman: Mutex<Option<Box<dyn Watchman>>>,
    verdicts: SegQueue<Verdict>,
    has_verdicts: AtomicBool,
    is_bereaved: AtomicBool,
    dead: Box<[AtomicBool]>,
    /// When the first of the others was heard to leave in order.
    over_since: OnceLock<Instant>,
}

impl Vigil {
    pub(super) fn new(pes: u32) -> Self {
        Vigil {
            watchman: Mutex::new(None),
            verdicts: SegQueue::new(),
            has_verdicts: AtomicBool::new(false),
            is_bereaved: AtomicBool::new(false),
            dead: (0..pes).map(|_| AtomicBool::new(false)).collect(),
            over_since: OnceLock::new(),
        }
    }

    pub(super) fn is_dead(&self, pe: Pe) -> bool {
        self.is_bereaved() && self.dead.get(pe.index()).is_some_and(|d| d.load(Ordering::Relaxed))
    }

    /// Whether anybody has died, or this PE must leave.
    pub(super) fn is_bereaved(&self) -> bool {
        self.is_bereaved.load(Ordering::Acquire)
    }

    /// Whether nobody has died, and the first to leave in order did so less than this ago.
    pub(super) fn are_others_there(&self, patience: Duration) -> bool {
        !self.is_bereaved() && self.over_since.get().is_none_or(|over| over.elapsed() < patience)
    }

    /// Takes note of a verdict. Whether it is the first of a death.
    fn note(&self, verdict: Verdict) -> bool {
        if let Verdict::Dead(dead) = &verdict {
            dead.iter().filter_map(|pe| self.dead.get(pe.index())).for_each(|dead| {
                dead.store(true, Ordering::Relaxed);
            });
        }
        let is_over = matches!(verdict, Verdict::JobOver { .. });
        if is_over {
            self.over_since.get_or_init(Instant::now);
        }
        let is_first = !is_over && !self.is_bereaved.swap(true, Ordering::AcqRel);
        self.verdicts.push(verdict);
        self.has_verdicts.store(true, Ordering::Release);
        is_first
    }

    /// The next verdict that has not been heeded.
    fn next(&self) -> Option<Verdict> {
        // Looking first, since swapping costs a worker that takes many turns more than the turn.
        if !self.has_verdicts.load(Ordering::Relaxed)
            || !self.has_verdicts.swap(false, Ordering::Acquire)
        {
            return None;
        }
        let verdict = self.verdicts.pop();
        if !self.verdicts.is_empty() {
            self.has_verdicts.store(true, Ordering::Relaxed);
        }
        verdict
    }

    fn watchman(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Watchman>>> {
        self.watchman.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on a suspicion. Whether there is anybody to hand it to.
    pub(super) fn suspect(&self, pe: Pe) -> bool {
        let watchman = self.watchman();
        watchman.iter().for_each(|watchman| watchman.suspect(pe));
        watchman.is_some()
    }

    /// The connections of the watch.
    pub(super) fn connections(&self) -> Connections {
        self.watchman().as_ref().map(|watchman| watchman.connections()).unwrap_or_default()
    }

    /// Ends the watch: with a goodbye, or as if this PE had died.
    pub(super) fn end(&self, in_order: bool) {
        match self.watchman().take() {
            Some(watchman) if in_order => watchman.goodbye(),
            other => drop(other),
        }
    }
}

impl Processor {
    /// Begins to watch.
    pub(super) fn begin_watch(
        self: &Arc<Self>,
        begin: impl FnOnce(Report) -> Beginning,
    ) -> Result<(), JobError> {
        let (pe, vigil) = (Arc::downgrade(self), self.vigil.clone());
        let report = move |verdict| {
            let is_first = vigil.note(verdict);
            if let Some(pe) = pe.upgrade() {
                if is_first {
                    pe.cast_off();
                }
                pe.nudge();
            }
        };
        let watchman = begin(Box::new(report));
        let watchman = watchman.map_err(|source| JobError::Watch { me: self.me(), source })?;
        *self.vigil.watchman() = Some(watchman);
        Ok(())
    }

    /// Whether this PE is known to have died.
    pub(super) fn is_dead(&self, pe: Pe) -> bool {
        self.vigil.is_dead(pe)
    }

    /// Somebody has died: the thread that drives this PE may be inside a call that will not return,
    /// so another takes over.
    pub(super) fn cast_off(self: &Arc<Self>) {
        if self.airlock.has_pump() {
            self.airlock.seal();
            self.change_driver();
        }
    }

    /// If a worker has gone into a call and will not return, others take its place.
    pub(super) fn replace_stuck_worker(&self) {
        if !self.airlock.gives_up_a_worker() {
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
    pub(super) fn heed_verdicts(&mut self, pe: &Arc<Processor>) -> Result<(), JobError> {
        let me = pe.me();
        while let Some(verdict) = pe.vigil.next() {
            match verdict {
                Verdict::Dead(dead) => {
                    self.board(pe);
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
                        self.node.bury(dead, &mut Station { desk: &mut self.desk, pe });
                    }
                }
                // The root was needed until it said that the job is over, and so was this PE.
                Verdict::Expelled | Verdict::RootLost { .. }
                    if self.node.phase() != Phase::Running =>
                {
                    self.let_go(pe);
                }
                Verdict::Expelled => return Err(JobError::Expelled { me }),
                Verdict::RootLost { reason } => return Err(JobError::RootLost { me, reason }),
                // The job is over when the root says so. Others have no business saying goodbye
                // before.
                Verdict::JobOver { by } if me == Pe::ROOT => {
                    if self.node.phase() == Phase::Running {
                        tracing::error!("{by} has left before the job was over");
                    }
                }
                Verdict::JobOver { by } => {
                    tracing::debug!(pe = me.number(), "the job is over, as {by} has left");
                    self.node.end(&mut Station { desk: &mut self.desk, pe });
                }
            }
        }
        Ok(())
    }

    /// Goes over to the lifeboat. What has not arrived is sent again there.
    pub(super) fn board(&mut self, pe: &Processor) {
        if let Some(lifeboat) = self.lifeboat.take() {
            pe.airlock.seal();
            pe.sleep_in(&lifeboat.sleeper());
            self.port.switch_lane(lifeboat);
            tracing::info!(pe = pe.me().number(), "goes on over {}", self.port.lane_name());
        }
    }

    /// What to do when the lane has failed: to go over to the lifeboat, while there is one.
    pub(super) fn survive(&mut self, pe: &Processor, error: &LaneError) -> bool {
        if self.lifeboat.is_none() {
            return false;
        }
        tracing::warn!(pe = pe.me().number(), "{error}");
        self.board(pe);
        true
    }

    /// Looks whether others have gone over to the lifeboat: they may have heard earlier, or have
    /// found the lane broken.
    pub(super) fn look_out(&mut self, pe: &Processor, now: Duration) {
        let Some(lifeboat) = &mut self.lifeboat else { return };
        if now < self.look_out_at {
            return;
        }
        self.look_out_at = now + LOOK_OUT_EVERY;
        let mut early = Vec::new();
        // What is wrong with it shows when it is needed.
        let _ = lifeboat.poll(&mut |from, frame| early.push((from, frame.to_vec())));
        if !early.is_empty() {
            let lane = self.lifeboat.take();
            self.lifeboat = lane.map(|lane| Box::new(Afloat { lane, early }) as Box<dyn Lane>);
            self.board(pe);
        }
    }
}

/// A lane from which some frames have been taken already.
struct Afloat {
    lane: Box<dyn Lane>,
    early: Vec<(Pe, Vec<u8>)>,
}

impl Lane for Afloat {
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
        let vigil = Vigil::new(3);
        assert!(vigil.are_others_there(soon));
        assert!(!vigil.note(Verdict::JobOver { by: Pe::ROOT }));
        assert!(vigil.are_others_there(long) && !vigil.are_others_there(soon));
        assert!(vigil.note(Verdict::Dead(vec![Pe::new(2)])));
        assert!(!vigil.are_others_there(long));
    }
}
