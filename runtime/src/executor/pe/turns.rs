//! The engine of a PE, and what passes between it and the threads outside its lock.
//!
//! Threads leave messages and tasks for the next turn to send. A turn leaves results to be filled
//! in after it, and tasks that take long to pack.

use crate::error::TaskError;
use crate::executor::engine::host::Results;
use crate::executor::engine::mpi_gate::MpiGate;
use crate::executor::engine::site::{EngineSite, Outgoing};
use crate::executor::engine::turn::Engine;
use crate::executor::schedule::serial::Serial;
use crate::lock::Lock;
use crate::protocol::Fish;
use crossbeam_queue::SegQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use ultramarine_taskset::board::{OwnBoard, Signal};
use ultramarine_topology::Pe;

/// What turns need and leave behind. `S` is the PE.
pub(crate) struct Turns<S: EngineSite> {
    /// What threads leave for the next turn to send.
    outbox: SegQueue<Outgoing>,
    /// `None` once the PE has left: then the lane must not be used any more.
    engine: Lock<Option<Engine<S>>>,
    /// The gate to MPI calls, which may not return.
    pub(super) mpi_gate: MpiGate,
    /// How many of its futures had their tasks on other PEs, after the last turn.
    away: AtomicUsize,
    /// Results that arrived in turns amid tasks.
    unsettled: Lock<Results>,
    has_unsettled: AtomicBool,
    /// Until when something was said to come, on the clock of the turns.
    expected_until_ns: AtomicU64,
    /// The board of this PE, and how many PEs its host has.
    own_board: Option<(Arc<OwnBoard>, u32)>,
    /// Stolen tasks that take long to pack, for the packer thread.
    pub(super) packer: Serial<(Fish, S::Task)>,
    /// Whether a worker has taken a turn since the driver's last one.
    is_shared: AtomicBool,
    /// When the clock of the turns began.
    started: Instant,
    /// When a trace is next told what this PE has counted.
    sample_at_ns: AtomicU64,
}

impl<S: EngineSite> Turns<S> {
    pub(super) fn new(
        engine: Engine<S>,
        mpi_gate: MpiGate,
        own_board: Option<(Arc<OwnBoard>, u32)>,
    ) -> Self {
        Turns {
            outbox: SegQueue::new(),
            engine: Lock::new(Some(engine)),
            mpi_gate,
            own_board,
            away: AtomicUsize::new(0),
            unsettled: Lock::default(),
            has_unsettled: AtomicBool::new(false),
            expected_until_ns: AtomicU64::new(0),
            packer: Serial::default(),
            is_shared: AtomicBool::new(false),
            started: Instant::now(),
            sample_at_ns: AtomicU64::new(0),
        }
    }

    /// Whether another PE has posted tasks for this one.
    pub(super) fn has_posters(&self) -> bool {
        let board = self.own_board.as_ref();
        board.is_some_and(|(own, pes)| own.board().is_raised(Signal::Posted, *pes as usize))
    }

    /// The time on the clock of the turns.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something will come within this time.
    pub(super) fn expect(&self, within: Duration) {
        let until = self.now() + within;
        self.expected_until_ns.store(until.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Whether it is before the time by which something was to come.
    pub(super) fn are_expecting(&self, now: Instant) -> bool {
        let until = self.expected_until_ns.load(Ordering::Relaxed);
        until > 0 && now < self.at(Duration::from_nanos(until))
    }

    /// Whether this much time has passed since the last call that returned `true`, or it is the
    /// first.
    pub(super) fn may_sample(&self, now: Duration, every: Duration) -> bool {
        let is_due = now.as_nanos() as u64 >= self.sample_at_ns.load(Ordering::Relaxed);
        if is_due {
            self.sample_at_ns.store((now + every).as_nanos() as u64, Ordering::Relaxed);
        }
        is_due
    }

    /// How long it is until this time; zero if that has passed.
    pub(super) fn until(&self, time: Duration) -> Duration {
        time.saturating_sub(self.now())
    }

    /// When it is this time.
    pub(super) fn at(&self, time: Duration) -> Instant {
        self.started + time
    }

    /// The engine, if it is free.
    pub(super) fn try_engine(&self) -> Option<MutexGuard<'_, Option<Engine<S>>>> {
        self.engine.try_lock()
    }

    /// The engine, as soon as it is free.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Option<Engine<S>>> {
        // A panic under this lock is a defect of ours; the job ends by other means then.
        self.engine.lock()
    }

    /// A worker takes a turn.
    pub(super) fn share(&self) {
        if !self.is_shared.load(Ordering::Relaxed) {
            self.is_shared.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a worker has taken a turn since the last call.
    pub(super) fn were_shared(&self) -> bool {
        self.is_shared.swap(false, Ordering::Relaxed)
    }

    /// What waits for the next turn.
    pub(crate) fn outbox(&self) -> &SegQueue<Outgoing> {
        &self.outbox
    }

    /// Ends the tasks that were left for a turn, of which there is none any more.
    pub(super) fn end_outbox(&self) {
        while let Some(outgoing) = self.outbox.pop() {
            let future = outgoing.into_future();
            future.into_iter().for_each(|future| future.fill(Err(TaskError::ShuttingDown)));
        }
    }

    /// How many futures had their tasks on other PEs, after the last turn.
    pub(crate) fn away(&self) -> usize {
        self.away.load(Ordering::Relaxed)
    }

    pub(super) fn note_away(&self, futures: usize) {
        self.away.store(futures, Ordering::Relaxed);
    }

    /// Leaves results to the next turn.
    pub(super) fn add_unsettled(&self, results: &mut Results) {
        self.unsettled.lock().append(results);
        self.has_unsettled.store(true, Ordering::Release);
    }

    /// Whether any are left to the next turn.
    pub(super) fn has_unsettled(&self) -> bool {
        self.has_unsettled.load(Ordering::Relaxed)
    }

    /// The results that were left to this turn.
    pub(super) fn take_unsettled(&self) -> Results {
        // Mostly there are none, and looking is cheaper than the lock.
        if !self.has_unsettled.load(Ordering::Acquire) {
            return Results::new();
        }
        self.has_unsettled.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.unsettled.lock())
    }

    /// The PE `me` leaves: ends the engine, and all futures whose tasks were to leave or are away.
    pub(super) fn close(&self, me: Pe) {
        self.mpi_gate.seal();
        let engine = self.engine().take();
        if let Some(link) = engine.as_ref().map(Engine::link_counters) {
            tracing::debug!(pe = me.number(), ?link, "the port is closed");
            if link.corrupt > 0 {
                tracing::warn!(pe = me.number(), "{} damaged frames came", link.corrupt);
            }
        }
        self.end_outbox();
        let futures = engine.into_iter().flat_map(Engine::into_futures);
        futures.for_each(|future| future.fill(Err(TaskError::ShuttingDown)));
    }
}
