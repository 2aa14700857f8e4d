//! What the engine does when a PE has died: it leaves MPI for the fallback lane.

use super::failure::JobError;
use super::host::EngineHost;
use super::site::EngineSite;
use super::turn::Engine;
use crate::detector::FailureEvent;
use crate::protocol::Phase;
use crate::trace;
use crate::transport::{Connections, Lane, LaneError, Sleeper};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Ball, Pe};
use ultramarine_trace::DIED;

/// How often a PE looks whether others have gone over to the fallback lane.
const CHECK_FALLBACK_EVERY: Duration = Duration::from_millis(100);

impl<S: EngineSite> Engine<S> {
    /// Handles what the failure detector has reported.
    pub(crate) fn handle_failures(&mut self, pe: &Arc<S>, now: Duration) -> Result<(), JobError> {
        let me = self.state.me;
        while let Some(event) = pe.liveness().next() {
            match event {
                FailureEvent::Dead(dead) => self.forget_dead(pe, &dead),
                // The root was needed only until it said that the job is over, and so was this PE.
                FailureEvent::Expelled
                | FailureEvent::Broken { .. }
                | FailureEvent::RootLost { .. }
                    if self.node.phase() != Phase::Running =>
                {
                    self.leave_unanswered(pe);
                }
                FailureEvent::Expelled => return Err(JobError::Expelled { me }),
                FailureEvent::Broken { reason } => {
                    let doing = "watching the other PEs".to_owned();
                    let error = LaneError::Io { doing, source: std::io::Error::other(reason) };
                    return Err(JobError::Link { me, source: error.into() });
                }
                FailureEvent::RootLost { reason } => return Err(JobError::RootLost { me, reason }),
                FailureEvent::Succession { judge } => self.follow(pe, judge)?,
                FailureEvent::EndAgreed => pe.note_agreement(),
                // The job is over when the root says so. No other PE may say goodbye before. (But
                // a root that has died since may have said so to some.)
                FailureEvent::JobOver { by } if me == Pe::ROOT && me == pe.liveness().root() => {
                    if self.node.phase() == Phase::Running {
                        tracing::error!("{by} has left before the job was over");
                    }
                }
                FailureEvent::JobOver { by } => {
                    tracing::debug!(pe = me.number(), "the job is over, as {by} has left");
                    self.leaving.hear_goodbye(now);
                    self.node.end(&mut EngineHost { state: &mut self.state, pe });
                }
            }
        }
        Ok(())
    }

    /// These PEs have died.
    fn forget_dead(&mut self, pe: &Arc<S>, dead: &[Pe]) {
        let me = self.state.me.number();
        self.fail_over(pe);
        for dead in dead.iter().copied() {
            if pe.is_ending() {
                // It may have left in order, and its goodbye may have been lost.
                tracing::debug!(pe = me, "{dead} has gone");
            } else {
                tracing::info!(pe = me, "{dead} has died");
                trace::note_event(self.state.me, || format!("{dead} {DIED}"));
            }
            self.port.close(dead);
            pe.forget_dead(dead);
        }
        self.node.mark_dead(dead, &mut EngineHost { state: &mut self.state, pe });
    }

    /// Another PE is the root now, since the old one has died.
    fn follow(&mut self, pe: &Arc<S>, root: Pe) -> Result<(), JobError> {
        let me = self.state.me;
        self.node.set_root(root);
        if self.node.phase() != Phase::Running {
            self.leave_unanswered(pe);
        } else if pe.accept_root(root) {
            tracing::info!(pe = me.number(), "{root} is the root now");
            trace::note_event(me, || format!("{root} is the root now"));
        } else {
            let reason = format!("{root} has its place, but the job does not go on there");
            return Err(JobError::RootLost { me, reason });
        }
        Ok(())
    }

    /// Goes over to the fallback lane. Frames that have not arrived are sent again there.
    pub(crate) fn fail_over(&mut self, pe: &S) {
        if let Some(fallback) = self.fallback.take() {
            pe.leave_lane(&fallback.sleeper());
            self.port.switch_lane(fallback);
            tracing::info!(pe = self.state.me.number(), "goes on over {}", self.port.lane_name());
        }
    }

    /// Goes over to the fallback lane because the lane has failed. Returns whether there was one.
    pub(crate) fn try_fail_over(&mut self, pe: &S, error: &LaneError) -> bool {
        if self.fallback.is_none() {
            return false;
        }
        tracing::warn!(pe = self.state.me.number(), "{error}");
        self.fail_over(pe);
        true
    }

    /// Looks whether others have gone over to the fallback lane: they may have heard of the death
    /// earlier, or have found the lane broken.
    pub(crate) fn check_fallback(&mut self, pe: &S, now: Duration) {
        let Some(fallback) = &mut self.fallback else { return };
        if now < self.check_fallback_at {
            return;
        }
        self.check_fallback_at = now + CHECK_FALLBACK_EVERY;
        let mut early = Vec::new();
        // An error of this lane shows when the lane is needed.
        let _ = fallback.poll(&mut |from, frame| early.push((from, frame.to_vec())));
        if !early.is_empty() {
            let lane = self.fallback.take();
            self.fallback = lane.map(|lane| Box::new(Prefetched { lane, early }) as Box<dyn Lane>);
            self.fail_over(pe);
        }
    }
}

/// A lane from which some frames have been received already.
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

    fn shorter_frames(&self) -> Option<(Ball, usize)> {
        self.lane.shorter_frames()
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
