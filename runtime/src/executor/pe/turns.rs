//! Turns at the engine, taken by any thread that finds it free.

use super::processor::Processor;
use super::settle;
use super::worker::caller;
use crate::array::Array;
use crate::executor::engine::host::Results;
use crate::executor::engine::turn::{Engine, Turn};
use crate::executor::task::start::Effort;
use crate::protocol::Need;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

impl Processor {
    /// Takes a turn at the engine if no other thread is at it. Returns whether something happened.
    pub(crate) fn try_turn(self: &Arc<Self>) -> bool {
        // What waits to be sent comes first: what has arrived is received after that, for the next
        // turn.
        let is_first_to_send = !self.outbox.is_empty();
        let moved = !is_first_to_send && self.pump();
        let Some(engine) = self.try_engine() else { return moved };
        let (turn, results, _discarded) = self.turn_at(engine, Effort::Brief);
        if is_first_to_send && turn.frames_sent == 0 {
            self.pump();
        }
        self.settle_all(results);
        moved | turn.something_happened
    }

    /// Takes a turn at the engine if it is free, amid a task that will go on: no user code is run.
    /// Results that arrive are left to the next turn.
    pub(crate) fn try_turn_amid_task(self: &Arc<Self>) {
        self.pump();
        let Some(engine) = self.try_engine() else { return };
        let (_, results, _discarded) = self.turn_at(engine, Effort::None);
        self.settle_later(results);
    }

    /// Takes a turn at the engine, as soon as it is free.
    pub(crate) fn turn(self: &Arc<Self>) -> Turn {
        self.pump();
        let (turn, results, _discarded) = self.turn_at(self.engine(), Effort::Brief);
        self.settle_all(results);
        turn
    }

    /// Makes the lane's MPI calls, if it has any and no other thread is at it.
    fn pump(&self) -> bool {
        self.mpi_gate.pass(|| caller(self))
    }

    /// Returns what the turn did, the results that arrived, and arrays that only have to be
    /// dropped, after the results.
    fn turn_at(
        self: &Arc<Self>,
        mut guard: MutexGuard<'_, Option<Engine<Processor>>>,
        effort: Effort,
    ) -> (Turn, Results, Vec<Array>) {
        let Some(engine) = &mut *guard else { return Default::default() };
        let need = self.need();
        let now = self.started.elapsed();
        let turn = engine.turn(self, now, need, effort).unwrap_or_else(|error| {
            engine.give_up(self, &error, now);
            self.fail(error);
            Turn::default()
        });
        let results = engine.take_results(settle::spare_list());
        let discarded = engine.take_discarded();
        drop(guard);
        if turn.frames_sent > 0 {
            self.pump();
        }
        (turn, results, discarded)
    }

    /// How much this PE needs work.
    fn need(&self) -> Need {
        let active =
            self.active.load(Ordering::Relaxed).saturating_sub(self.mpi_gate.lost_busy_workers());
        match active.saturating_sub(self.idle.load(Ordering::Relaxed)) {
            0 => Need::Idle,
            busy if busy < self.settings.threads => Need::Starving,
            _ => Need::Ahead,
        }
    }
}
