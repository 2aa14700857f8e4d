//! The backlog of a task: parts of a problem that wait while the task solves other parts.
//!
//! A part that can be stolen must be a task, which costs an allocation and a place in a shared
//! queue: about 70 ns. Most parts are never stolen, because a thief takes the oldest one, which is
//! the largest. So a part waits in a plain queue, which costs almost nothing, and only the oldest
//! are *offered* as tasks: the first [`OFFERED_MIN`], and some more at each beat at which a thief
//! finds too little (heartbeat scheduling: Acar, Charguéraud, Guatto, Rainey and Sieczkowski, 2018;
//! before it, the lazy tasks of Mohr, Kranz and Halstead, 1991). A *beat* is when the worker [polls
//! the runtime](ultramarine_runtime::executor::Context::poll_runtime).

use std::collections::VecDeque;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Fork};
use ultramarine_topology::Distance;

/// A task has this number of parts on offer, if there are any; and it offers this number at once.
/// So thieves find something though the task computes for long between two beats. (Few parts become
/// tasks for that: the fewer are on offer, the larger are the next ones.)
const OFFERED_MIN: usize = 4;

/// A part that another thread may solve, and the future of its solution if it does.
pub(super) type Offered<'pe, P, R> = Fork<'pe, P, Result<R, TaskError>>;

/// The parts that wait.
pub(super) struct Backlog<'pe, P, R> {
    /// The oldest parts, the oldest first. Some may have been stolen.
    offered: Vec<Offered<'pe, P, R>>,
    /// All younger ones, the oldest first.
    hidden: VecDeque<P>,
    /// [`OFFERED_MIN`], or none if this is the only worker of the job.
    offered_min: usize,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
}

impl<'pe, P, R> Backlog<'pe, P, R> {
    pub(super) fn new(cx: &Context) -> Self {
        let is_only_worker = cx.threads() == 1;
        let offered_min = if is_only_worker && cx.pes() == 1 { 0 } else { OFFERED_MIN };
        Backlog { offered: Vec::new(), hidden: VecDeque::new(), offered_min, is_only_worker }
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

    /// Whether parts should be offered though no thief asks.
    #[inline]
    pub(super) fn offers_too_little(&self) -> bool {
        self.offered.len() < self.offered_min
    }

    /// Offers the oldest parts, each within its radius.
    pub(super) fn offer(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(Distance, P) -> Offered<'pe, P, R>,
    ) {
        for _ in 0..self.offered_min {
            let Some(radius) = self.hidden.front().map(&radius) else { return };
            if radius == Distance::ZERO && self.is_only_worker {
                // No other worker may take it, nor what comes behind it, which is smaller.
                return;
            }
            self.offered.extend(self.hidden.pop_front().map(|part| fork(radius, part)));
        }
    }

    /// Makes all parts tasks.
    pub(super) fn fork_all(&mut self, fork: impl FnMut(P) -> Offered<'pe, P, R>) {
        self.offered.extend(self.hidden.drain(..).map(fork));
    }
}
