//! The backlog of a task: parts of a problem that wait while the task solves other parts.
//!
//! A part that can be stolen must be a task, which costs an allocation and a place in a shared
//! queue: about 70 ns. Most parts are never stolen, because a thief takes the oldest one, which is
//! the largest. So most parts wait in a plain stack, which costs almost nothing. A part is
//! *offered* as a task if it is on one of the first [`LEVELS_OFFERED`] levels, or if it is among
//! the oldest when the worker has few waiting tasks left (like the lazy tasks of Mohr, Kranz and
//! Halstead, 1991, and the private deques of Acar, Charguéraud and Rainey, 2013).

use std::mem;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Fork};
use ultramarine_topology::Distance;

/// The number of levels below a task's own problem on which all parts are offered. If problems are
/// divided in two, these are 127 parts, so that many thieves find work at once.
const LEVELS_OFFERED: u32 = 7;

/// A worker with fewer waiting tasks than this offers more. So thieves find tasks, and its own PE
/// does not fish for tasks because of a pool that only looks empty.
const OFFERED_MIN: usize = 4;

/// The number of parts that it then offers.
const OFFERED_AT_ONCE: usize = 4;

/// A part that waits in the backlog.
pub(super) enum BacklogPart<'pe, P, R> {
    /// It is on the plain stack. If it is offered, PEs within this radius may steal it.
    Hidden(P, Distance),
    Offered(Fork<'pe, P, Result<R, TaskError>>),
    /// A placeholder while it is moved.
    Taken,
}

/// The parts that wait, the oldest first.
pub(super) struct Backlog<'pe, P, R> {
    parts: Vec<BacklogPart<'pe, P, R>>,
    /// The number of parts, from the first, that are offered or need not be.
    offered: usize,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
    /// Whether it is the only worker of the job.
    is_alone: bool,
}

impl<'pe, P, R> Backlog<'pe, P, R> {
    pub(super) fn new(cx: &Context) -> Self {
        let is_only_worker = cx.threads() == 1;
        let is_alone = is_only_worker && cx.pes() == 1;
        Backlog { parts: Vec::new(), offered: 0, is_only_worker, is_alone }
    }

    /// Adds a part, which PEs within this radius may steal once it is offered.
    pub(super) fn push(&mut self, part: P, radius: Distance) {
        self.parts.push(BacklogPart::Hidden(part, radius));
    }

    /// Takes the youngest part.
    pub(super) fn pop(&mut self) -> BacklogPart<'pe, P, R> {
        let Some(part) = self.parts.pop() else { unreachable!("each part is pushed once") };
        self.offered = self.offered.min(self.parts.len());
        part
    }

    /// Offers all hidden parts.
    pub(super) fn offer_all(
        &mut self,
        fork: impl FnMut(Distance, P) -> Fork<'pe, P, Result<R, TaskError>>,
    ) {
        self.offer(usize::MAX, fork);
    }

    /// Offers parts as needed, after a problem on this level was divided.
    pub(super) fn keep_on_offer(
        &mut self,
        cx: &Context,
        level: u32,
        fork: impl FnMut(Distance, P) -> Fork<'pe, P, Result<R, TaskError>>,
    ) {
        if level < LEVELS_OFFERED {
            self.offer(usize::MAX, fork);
        } else if !self.is_alone && cx.offered() < OFFERED_MIN {
            self.offer(OFFERED_AT_ONCE, fork);
        }
    }

    /// Offers the oldest `count` hidden parts.
    fn offer(
        &mut self,
        count: usize,
        mut fork: impl FnMut(Distance, P) -> Fork<'pe, P, Result<R, TaskError>>,
    ) {
        if self.is_alone {
            return;
        }
        let end = self.offered.saturating_add(count).min(self.parts.len());
        for part in &mut self.parts[self.offered..end] {
            *part = match mem::replace(part, BacklogPart::Taken) {
                // No other worker may take it.
                BacklogPart::Hidden(part, Distance::ZERO) if self.is_only_worker => {
                    BacklogPart::Hidden(part, Distance::ZERO)
                }
                BacklogPart::Hidden(part, radius) => BacklogPart::Offered(fork(radius, part)),
                other => other,
            };
        }
        self.offered = end;
    }
}
