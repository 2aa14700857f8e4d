//! The backlog of a task: parts of a problem that wait while the task solves other parts.
//!
//! A part that can be stolen must be a task, which costs an allocation and a place in a shared
//! queue: about 70 ns. Most parts are never stolen, because a thief takes the oldest one, which is
//! the largest. So a part waits in a plain queue, which costs almost nothing, and only the oldest
//! are *offered* as tasks: those of the first [`LEVELS_OFFERED`] levels, and at each beat a few
//! more, if the worker has few waiting tasks left (heartbeat scheduling: Acar, Charguéraud, Guatto,
//! Rainey and Sieczkowski, 2018; before it, the lazy tasks of Mohr, Kranz and Halstead, 1991). A
//! *beat* is when the worker [polls the runtime](Context::poll_runtime).

use std::collections::VecDeque;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Fork};
use ultramarine_topology::Distance;

/// The number of levels below a task's own problem on which all parts are offered. If problems are
/// divided in two, these are 127 parts, so that many thieves find work at once.
pub(super) const LEVELS_OFFERED: u32 = 7;

/// A worker with fewer waiting tasks than this offers more. So thieves find tasks, and its own PE
/// does not fish for tasks because of a pool that only looks empty.
const OFFERED_MIN: usize = 4;

/// The number of parts that it then offers.
const OFFERED_AT_ONCE: usize = 4;

/// A part that another thread may solve, and the future of its solution if it does.
pub(super) type Offered<'pe, P, R> = Fork<'pe, P, Result<R, TaskError>>;

/// The parts that wait.
pub(super) struct Backlog<'pe, P, R> {
    /// The oldest parts, the oldest first.
    offered: Vec<Offered<'pe, P, R>>,
    /// All younger ones, the oldest first.
    hidden: VecDeque<P>,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
    /// Whether it is the only worker of the job.
    is_alone: bool,
}

impl<'pe, P, R> Backlog<'pe, P, R> {
    pub(super) fn new(cx: &Context) -> Self {
        let is_only_worker = cx.threads() == 1;
        let is_alone = is_only_worker && cx.pes() == 1;
        Backlog { offered: Vec::new(), hidden: VecDeque::new(), is_only_worker, is_alone }
    }

    /// Adds a part.
    #[inline]
    pub(super) fn push(&mut self, part: P) {
        self.hidden.push_back(part);
    }

    /// Takes the youngest part, unless it is [on offer](Self::pop_offered).
    #[inline]
    pub(super) fn pop(&mut self) -> Option<P> {
        self.hidden.pop_back()
    }

    /// Takes the youngest part that is on offer.
    pub(super) fn pop_offered(&mut self) -> Offered<'pe, P, R> {
        let Some(part) = self.offered.pop() else { unreachable!("each part is pushed once") };
        part
    }

    /// Makes all parts tasks.
    pub(super) fn fork_all(&mut self, fork: impl FnMut(P) -> Offered<'pe, P, R>) {
        self.offered.extend(self.hidden.drain(..).map(fork));
    }

    /// Offers parts as needed, after a problem on this level was divided.
    pub(super) fn keep_on_offer(
        &mut self,
        cx: &Context,
        level: u32,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(P) -> Offered<'pe, P, R>,
    ) {
        let mut count = match level {
            _ if self.is_alone => 0,
            ..LEVELS_OFFERED => usize::MAX,
            _ if cx.offered() < OFFERED_MIN => OFFERED_AT_ONCE,
            _ => 0,
        };
        while count > 0 && let Some(part) = self.hidden.pop_front() {
            if self.is_only_worker && radius(&part) == Distance::ZERO {
                // No other worker may take it.
                self.hidden.push_front(part);
                return;
            }
            self.offered.push(fork(part));
            count -= 1;
        }
    }
}
