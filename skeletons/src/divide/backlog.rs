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
use std::mem::take;
use ultramarine_topology::Distance;

/// A task has this number of parts on offer, if there are any; and it offers this number at once.
/// So thieves find something though the task computes for long between two beats. (Few parts become
/// tasks for that: the fewer are on offer, the larger are the next ones.)
const OFFERED_MIN: usize = 4;

/// The parts that wait. `F` is a part that another thread may take. The skeletons and the simulator
/// divide with it; programs need not.
#[derive(Debug)]
pub struct Backlog<P, F> {
    /// The oldest parts, the oldest first. Some may have been stolen.
    offered: Vec<F>,
    /// All younger ones, the oldest first.
    hidden: VecDeque<P>,
    /// The youngest parts, once there is a pause, and nothing is hidden any more.
    waiting: VecDeque<P>,
    /// [`OFFERED_MIN`], or none if this is the only worker of the job.
    offered_min: usize,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
}

impl<P, F> Backlog<P, F> {
    /// The empty backlog of a task on a PE with this number of threads, in a job of this number of
    /// PEs.
    pub fn new(threads: usize, pes: u32) -> Self {
        let is_only_worker = threads == 1;
        let offered_min = if is_only_worker && pes == 1 { 0 } else { OFFERED_MIN };
        let (offered, hidden, waiting) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Backlog { offered, hidden, waiting, offered_min, is_only_worker }
    }

    /// Adds a part.
    #[inline]
    pub fn push(&mut self, part: P) {
        self.hidden.push_back(part);
    }

    /// The youngest part, unless it is on offer.
    #[inline]
    pub fn youngest(&self) -> Option<&P> {
        self.hidden.back()
    }

    /// Takes the youngest part, unless it is [on offer](Self::pop_offered).
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        self.hidden.pop_back()
    }

    /// Takes the youngest part that is on offer.
    pub fn pop_offered(&mut self) -> Option<F> {
        self.offered.pop()
    }

    /// Whether parts should be offered though no thief asks.
    #[inline]
    pub fn offers_too_little(&self) -> bool {
        self.offered.len() < self.offered_min
    }

    /// Offers the oldest parts, each within its radius.
    pub fn offer(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(Distance, P) -> F,
    ) {
        for _ in 0..self.offered_min {
            if !self.offer_oldest(&radius, &mut fork) {
                return;
            }
        }
    }

    /// Offers the oldest part, if another worker may take it.
    fn offer_oldest(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        fork: &mut impl FnMut(Distance, P) -> F,
    ) -> bool {
        let Some(radius) = self.hidden.front().map(radius) else { return false };
        if radius == Distance::ZERO && self.is_only_worker {
            // Nor may any take what comes behind it, which is smaller.
            return false;
        }
        self.offered.extend(self.hidden.pop_front().map(|part| fork(radius, part)));
        true
    }

    /// Offers all parts that another worker may take. The others wait for the end of a pause.
    pub(super) fn pause(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(Distance, P) -> F,
    ) {
        while self.offered_min > 0 && self.offer_oldest(&radius, &mut fork) {}
        self.waiting = take(&mut self.hidden);
    }

    /// Takes the youngest part that waits for the end of a pause.
    pub(super) fn pop_waiting(&mut self) -> Option<P> {
        self.waiting.pop_back()
    }
}
