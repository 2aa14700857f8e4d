//! A simulated PE.

use super::lane::LaneEnd;
use super::site::SimulatedSite;
use super::workers::Effect;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::executor::engine::{Effort, Engine, EngineSite};
use ultramarine_runtime::protocol::{Membership, MembershipStatus};
use ultramarine_topology::Pe;

/// A PE, as long as it is there.
pub(super) struct SimulatedPe {
    pub(super) engine: Engine<SimulatedSite>,
    pub(super) site: Arc<SimulatedSite>,
    pub(super) membership: Membership,
    /// The first lane, and the fallback.
    pub(super) lanes: [LaneEnd; 2],
    /// How many of the dead the membership has told the engine.
    pub(super) reported: usize,
    pub(super) is_settled: bool,
    /// When its next turn is due, in nanoseconds.
    pub(super) turn_due: u64,
    pub(super) is_ending: bool,
    /// It does nothing before this moment, in nanoseconds.
    pub(super) stopped_until: u64,
}

impl SimulatedPe {
    pub(super) fn new(
        engine: Engine<SimulatedSite>,
        site: Arc<SimulatedSite>,
        membership: Membership,
        lanes: [LaneEnd; 2],
    ) -> Self {
        SimulatedPe {
            engine,
            site,
            membership,
            lanes,
            reported: 0,
            is_settled: false,
            turn_due: u64::MAX,
            is_ending: false,
            stopped_until: 0,
        }
    }

    /// Lets this PE do what there is to do now. Returns when there is more, and what is to be done
    /// about it elsewhere.
    pub(super) fn turn(
        &mut self,
        now: Duration,
    ) -> Result<(Option<Duration>, Vec<Effect>), JobError> {
        let SimulatedPe { engine, site, .. } = self;
        let mut effects = Vec::new();
        loop {
            let need = site.workers().need();
            let turn = engine.turn(site, now, need, Effort::Brief)?;
            for (future, outcome) in engine.take_results(Vec::new()) {
                future.fill(outcome);
            }
            drop(engine.take_discarded());
            let mut workers = site.workers();
            workers.dispatch(|pe| site.liveness.is_dead(pe));
            let done = std::mem::take(&mut workers.effects);
            drop(workers);
            let has_ended = done.iter().any(|effect| matches!(effect, Effect::MainEnded(_)));
            effects.extend(done);
            if has_ended {
                engine.end(site);
            } else if site.outbox().is_empty() {
                return Ok((turn.due, effects));
            }
        }
    }

    /// The PE's neighbours in the ring in which PEs watch each other, as it sees it.
    pub(super) fn neighbours(&self, me: Pe) -> BTreeSet<Pe> {
        if self.membership.status() != MembershipStatus::Member {
            return BTreeSet::new();
        }
        let living: Vec<Pe> = self.membership.living().iter().collect();
        let place = living.iter().position(|pe| *pe == me);
        let around = place.map(|place| [place + 1, place + living.len() - 1]);
        let around = around.into_iter().flatten().map(|place| living[place % living.len()]);
        around.filter(|pe| *pe != me).collect()
    }
}
