//! A simulated PE: the runtime's own engine, and what stands for the rest. (Its failure detector is
//! in `world/detection`.)
//!
//! | file | what it stands for |
//! |---|---|
//! | `workers` | the worker threads, and the tasks and messages that they run |
//! | `shelf`, `futures` | the queues of tasks, and the futures |
//! | `pace` | which thread takes the next turn at the engine, and when |
//! | `lane` | what carries the frames of the PE's port |
//! | `site` | the PE as its engine sees it |

pub(crate) mod effects;
pub(crate) mod futures;
pub(crate) mod lane;
pub(crate) mod pace;
pub(crate) mod shelf;
pub(crate) mod site;
pub(crate) mod workers;

use crate::transit::Transit;
use effects::WorkerEffect;
use lane::LaneEnd;
use pace::Pace;
use site::SimulatedSite;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::executor::engine::{Effort, Engine, EngineSite, Turn};

/// Locks what parts of a PE share. All PEs of a simulation run on one thread, so nothing waits.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A PE, as long as it is there.
pub(crate) struct SimulatedPe {
    pub(crate) engine: Engine<SimulatedSite>,
    pub(crate) site: Arc<SimulatedSite>,
    /// The first lane, and the fallback.
    pub(crate) lanes: [LaneEnd; 2],
    /// What it has sent that has not arrived.
    pub(crate) transit: Transit,
    pub(crate) pace: Pace,
    /// When its next turn is due, in nanoseconds.
    pub(crate) turn_at: u64,
    /// When the first event comes that lets it take a turn, if that is due then.
    pub(crate) turn_scheduled: u64,
    pub(crate) is_ending: bool,
    /// It does nothing before this moment, in nanoseconds.
    pub(crate) stopped_until: u64,
}

impl SimulatedPe {
    /// Lets this PE do what there is to do now. Returns what the turn did, and what is to be done
    /// elsewhere.
    pub(crate) fn turn(&mut self, now: Duration) -> Result<(Turn, Vec<WorkerEffect>), JobError> {
        let SimulatedPe { engine, site, pace, .. } = self;
        let (mut all, mut ran_dry) = (Turn::default(), false);
        loop {
            let need = site.workers().need();
            let turn = engine.turn(site, now, need, Effort::Brief)?;
            for (future, outcome) in engine.take_results(Vec::new()) {
                future.fill(outcome);
            }
            drop(engine.take_discarded());
            let mut workers = site.workers();
            let has_taken = workers.dispatch(|pe| site.liveness.is_dead(pe));
            // What it has taken has ended at once: it takes a turn before it looks for more.
            let is_between = has_taken && workers.is_between_tasks();
            let polls = !has_taken && workers.take_ran_dry();
            let has_ended =
                workers.effects.iter().any(|effect| matches!(effect, WorkerEffect::MainEnded(_)));
            all.something_happened |= turn.something_happened;
            all.is_streaming |= turn.is_streaming;
            all.work_came |= turn.work_came;
            ran_dry |= polls;
            if has_ended && !workers.is_ending {
                drop(workers);
                engine.end(site);
            } else if site.outbox().is_empty() && !polls && !is_between {
                let effects = std::mem::take(&mut workers.effects);
                pace.note_root(workers.is_root());
                let turn = Turn { due: turn.due, ..all };
                pace.note_turn(now.as_nanos() as u64, &turn, workers.need(), ran_dry);
                return Ok((turn, effects));
            }
        }
    }
}
