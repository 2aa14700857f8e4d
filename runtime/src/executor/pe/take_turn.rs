//! Turns at the engine, taken by any thread that finds it free.

use super::processor::Processor;
use super::settle;
use super::worker::caller;
use crate::array::Array;
use crate::array::held::take_left;
use crate::executor::engine::host::Results;
use crate::executor::engine::mpi_gate::Caller;
use crate::executor::engine::turn::{Engine, Turn};
use crate::executor::task::caught::discard;
use crate::executor::task::start::Effort;
use crate::forked::end_if_forked;
use crate::protocol::Need;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// A worker without work takes a turn after this time even if nothing has happened.
const IDLE_TURN_EVERY: Duration = Duration::from_micros(20);

/// Drops the values whose arrays have been sent. User code may run then.
pub(super) fn drop_left() {
    take_left().into_iter().for_each(discard);
}

/// A turn in which nothing happened.
pub(crate) struct QuietTurn {
    need: Need,
    /// When the next turn is due, whatever happens.
    until: Instant,
}

impl Processor {
    /// Takes a turn at the engine if no other thread is at it. Returns whether something happened.
    pub(crate) fn try_turn(self: &Arc<Self>) -> bool {
        let is_first_to_send = self.has_to_send();
        let moved = !is_first_to_send && self.pump();
        moved | self.turn_and_send(is_first_to_send).is_some_and(|turn| turn.something_happened)
    }

    /// Whether something waits to be sent. That comes before what has arrived.
    fn has_to_send(&self) -> bool {
        !self.turns.outbox().is_empty()
    }

    /// Takes a turn at the engine if it is free. If there was something to send first, no thread
    /// has pumped before: one that sends has pumped then.
    fn turn_and_send(self: &Arc<Self>, is_first_to_send: bool) -> Option<Turn> {
        let turn = self.turn_if_free();
        if is_first_to_send && turn.as_ref().is_none_or(|turn| turn.frames_sent == 0) {
            self.pump();
        }
        turn
    }

    /// The same for a worker that has nothing to do and takes one turn after the other. It leaves
    /// out those that would find nothing: so it sees sooner what arrives. (`quiet` is what the last
    /// call has left; the clock says `now`.)
    pub(crate) fn try_idle_turn(
        self: &Arc<Self>,
        quiet: &mut Option<QuietTurn>,
        now: Instant,
    ) -> bool {
        let is_first_to_send = self.has_to_send();
        let moved = !is_first_to_send && self.pump();
        if !is_first_to_send
            && !moved
            && quiet.as_ref().is_some_and(|quiet| self.is_still_quiet(quiet, now))
        {
            return false;
        }
        self.queues.wanted.set();
        let need = self.need();
        let turn = self.turn_and_send(is_first_to_send);
        let something_happened =
            moved | turn.as_ref().is_some_and(|turn| turn.something_happened | turn.work_came);
        *quiet = turn.filter(|_| !something_happened).map(|turn| {
            let until = now + IDLE_TURN_EVERY;
            QuietTurn { need, until: turn.due.map_or(until, |due| until.min(self.turns.at(due))) }
        });
        something_happened
    }

    /// Whether a turn would find nothing new after this one.
    fn is_still_quiet(&self, quiet: &QuietTurn, now: Instant) -> bool {
        now < quiet.until
            && self.turns.mpi_gate.is_quiet()
            && !self.turns.has_posters()
            && !self.liveness.has_events()
            && self.need() == quiet.need
    }

    /// Takes a turn at the engine if it is free.
    fn turn_if_free(self: &Arc<Self>) -> Option<Turn> {
        let engine = self.turns.try_engine()?;
        self.turns.share();
        let (turn, results, _discarded) = self.turn_at(engine, Effort::Brief);
        self.settle_all(results);
        drop_left();
        Some(turn)
    }

    /// Sends what waits for that, amid a task that will go on.
    pub(crate) fn send_amid_task(self: &Arc<Self>) {
        if !self.turns.outbox().is_empty() {
            self.turn_amid_task();
        }
        self.pump_amid_task();
    }

    /// Takes a turn at the engine if it is free, amid a task that will go on: no user code is run.
    /// Results that arrive are left to the next turn.
    pub(crate) fn try_turn_amid_task(self: &Arc<Self>) {
        self.pump_amid_task();
        self.turn_amid_task();
    }

    fn turn_amid_task(self: &Arc<Self>) {
        let Some(engine) = self.turns.try_engine() else { return };
        let (_, results, _discarded) = self.turn_at(engine, Effort::None);
        self.settle_later(results);
    }

    /// Takes a turn at the engine, as soon as it is free.
    pub(crate) fn turn(self: &Arc<Self>) -> Turn {
        self.pump();
        let (turn, results, _discarded) = self.turn_at(self.turns.engine(), Effort::Brief);
        self.settle_all(results);
        drop_left();
        turn
    }

    /// Makes the lane's MPI calls, if it has any and no other thread is at it.
    fn pump(&self) -> bool {
        end_if_forked();
        self.turns.mpi_gate.pass(|| caller(self))
    }

    /// The same amid a task, which is lost if the call does not return.
    fn pump_amid_task(&self) {
        end_if_forked();
        self.turns.mpi_gate.pass(|| Caller::AmidTask);
    }

    /// Returns what the turn did, the results that arrived, and arrays that only have to be
    /// dropped, after the results.
    fn turn_at(
        self: &Arc<Self>,
        mut guard: MutexGuard<'_, Option<Engine<Processor>>>,
        effort: Effort,
    ) -> (Turn, Results, Vec<Array>) {
        end_if_forked();
        let Some(engine) = &mut *guard else { return Default::default() };
        let need = self.need();
        self.turns.mpi_gate.clear_moved();
        let now = self.turns.now();
        let turn = engine.turn(self, now, need, effort).unwrap_or_else(|error| {
            engine.give_up(self, &error, now);
            self.fail(error);
            Turn::default()
        });
        let mut results = engine.take_results(settle::spare_list());
        let discarded = engine.take_discarded();
        self.sample_if_due(engine, now);
        drop(guard);
        if turn.frames_sent > 0 {
            // Of a call into MPI that does not return nothing is heard again: what this thread has
            // in its hands is left where the next one finds it.
            if !results.is_empty() {
                self.turns.add_unsettled(&mut results);
            }
            if effort == Effort::None {
                self.pump_amid_task();
                if self.turns.has_unsettled() {
                    self.nudge();
                }
            } else {
                self.pump();
            }
        }
        (turn, results, discarded)
    }

    /// How much this PE needs work.
    fn need(&self) -> Need {
        self.crew.need(self.turns.mpi_gate.lost_busy_workers())
    }
}
