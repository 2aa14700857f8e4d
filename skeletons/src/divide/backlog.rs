//! The parts of a problem that a task has put by while it solves others.
//!
//! A part that others can steal is a task: an allocation, and a queue that others look into. That
//! takes some 70 ns, and most parts are never stolen, since a thief takes the oldest, which is the
//! largest. So most of them wait in a plain stack, which costs next to nothing. *Offered*, as
//! tasks, are the parts of the first [`LEVELS_OFFERED`] levels; and the oldest of the others
//! whenever the worker has few tasks left that wait (as in Mohr, Kranz and Halstead's lazy tasks,
//! 1991, and in the private deques of Acar, Charguéraud and Rainey, 2013).

use std::mem;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Fork};
use ultramarine_topology::Distance;

/// On how many levels below a task's own problem all parts are offered: of a problem that is
/// divided in two each time, 127 parts, so that many others find work at once.
const LEVELS_OFFERED: u32 = 7;

/// When a worker has fewer tasks than this that wait, it offers more: so that others find some when
/// they ask, and its PE does not ask others because it has little on offer.
const OFFERED_MIN: usize = 4;

/// How many parts are offered then.
const OFFERED_AT_ONCE: usize = 4;

/// A part that its task has not got to yet.
pub(super) enum Part<'pe, P, R> {
    /// Only the task knows of it. Thieves would have to be within this radius.
    Hidden(P, Distance),
    Offered(Fork<'pe, P, Result<R, TaskError>>),
    /// Somebody is just looking after it.
    Taken,
}

/// The parts that a task has not got to yet, the oldest first.
pub(super) struct Backlog<'pe, P, R> {
    parts: Vec<Part<'pe, P, R>>,
    /// How many of them, from the first, have been offered, or need not be.
    offered: usize,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
    /// Whether it is the only one of the job.
    is_alone: bool,
}

impl<'pe, P, R> Backlog<'pe, P, R> {
    pub(super) fn new(cx: &Context) -> Self {
        let is_only_worker = cx.threads() == 1;
        let is_alone = is_only_worker && cx.pes() == 1;
        Backlog { parts: Vec::new(), offered: 0, is_only_worker, is_alone }
    }

    /// Puts a part by, for which thieves would have to be within this radius.
    pub(super) fn push(&mut self, part: P, radius: Distance) {
        self.parts.push(Part::Hidden(part, radius));
    }

    /// The youngest.
    pub(super) fn pop(&mut self) -> Part<'pe, P, R> {
        let Some(part) = self.parts.pop() else { unreachable!("each part is put by once") };
        self.offered = self.offered.min(self.parts.len());
        part
    }

    /// Offers all parts that are hidden.
    pub(super) fn offer_all(
        &mut self,
        fork: impl FnMut(Distance, P) -> Fork<'pe, P, Result<R, TaskError>>,
    ) {
        self.offer(usize::MAX, fork);
    }

    /// Offers what is to be on offer after a problem on this level was divided.
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

    /// Offers the oldest `count` of those that are hidden.
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
            *part = match mem::replace(part, Part::Taken) {
                // No other worker could take it.
                Part::Hidden(part, Distance::ZERO) if self.is_only_worker => {
                    Part::Hidden(part, Distance::ZERO)
                }
                Part::Hidden(part, radius) => Part::Offered(fork(radius, part)),
                other => other,
            };
        }
        self.offered = end;
    }
}
