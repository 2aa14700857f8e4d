//! Futures of tasks: where a value goes when it comes home.

use super::lock;
use super::workers::Workers;
use crate::workload::SpawnMode;
use std::sync::{Mutex, Weak};
use ultramarine_runtime::executor::engine::Fill;
use ultramarine_runtime::protocol::Outcome;
use ultramarine_runtime::protocol::message::Bytes;

/// A future on the PE that spawned its task: which child of which running task it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FutureSlot {
    pub(crate) parent: u64,
    pub(crate) child: u32,
}

/// A task on the PE that spawned it.
#[derive(Clone, Debug)]
pub(crate) struct LocalTask {
    pub(crate) slot: FutureSlot,
    pub(crate) body: Bytes,
    pub(crate) mode: SpawnMode,
}

/// A future whose task is on another PE.
pub(crate) struct SimulatedFuture {
    pub(crate) task: LocalTask,
    pub(crate) workers: Weak<Mutex<Workers>>,
}

impl Fill for SimulatedFuture {
    fn note_departure(&self, _: u64, _: u64) -> bool {
        true
    }

    fn fill(&self, outcome: Outcome) {
        if let Some(workers) = self.workers.upgrade() {
            lock(&workers).settle_away(&self.task, outcome);
        }
    }

    fn is_decoded(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}
