//! What workers have done, and what they leave to others.

use super::futures::LocalTask;
use ultramarine_runtime::protocol::Fish;

/// What is to be done elsewhere.
#[derive(Debug)]
pub(crate) enum WorkerEffect {
    /// Another thread packs a task for the thief that sent this FISH.
    Pack(Fish, LocalTask),
    /// A worker, or the main task's standby thread, will have computed for this time, in
    /// nanoseconds.
    Compute(u64, u64),
    /// The main task has ended. The others are asked whether its value counts.
    AskEnd,
    /// The main task has ended with this value, which counts.
    MainEnded(u64),
    /// A task sleeps for this time, in nanoseconds.
    Sleep(u64, u64),
    /// The time and the counters are noted.
    Mark,
    /// This has happened once more.
    Note(&'static str),
    /// The process ends at once.
    Die,
    /// Something is not as it must be.
    Fault(String),
}

/// What a PE's workers have done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerCounts {
    /// The tasks that they started.
    pub(crate) started: u64,
    /// How long they computed, all together, in nanoseconds.
    pub(crate) computed_ns: u64,
    /// The tasks that they dropped because their homes had died.
    pub(crate) orphans: u64,
    /// The poison tasks that were given up.
    pub(crate) given_up: u32,
    /// The other tasks that were, by mistake.
    pub(crate) wronged: u32,
    /// How often the main task was started anew.
    pub(crate) restarts: u32,
}
