//! The sweep over a set's tasks: it decides whether the set has finished, and finds what deaths
//! have lost.
//!
//! This is what the rest relies on. Queues, running slots, lists of dependents and barriers bring
//! tasks to workers quickly, and may lose one to a death at the wrong instant. A set ends only when
//! a sweep has seen each of its tasks FINISHED; others it puts right:
//!
//! | the sweep sees | and does |
//! |---|---|
//! | READY | puts it into a queue: there may be two entries then, and the claim decides |
//! | RUNNING, by a worker that is dead | makes it READY, as above |
//! | WAITING, and all it awaits has finished | makes it READY, as above |
//! | WAITING for another set | sweeps that, too |
//!
//! A task that is added at the same time must not be left behind. Before the sweep the set's end is
//! *closing*, in an attempt with a number of its own. Whoever adds a task puts it into the table and
//! then looks at the end: if it is closing, it opens it again, and the attempt fails.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::set::{CONTINUATION, END, SetRef};
use crate::state::{State, Status};
use crate::task::TaskRef;
use crate::worker::Worker;
use crate::worker::life::Life;

/// What a sweep has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swept {
    /// The set and its continuation have finished.
    Finished,
    /// Tasks that were put into the queue.
    Work,
    /// Tasks run elsewhere, or wait for such.
    Nothing,
}

impl<'a> Worker<'a> {
    /// Sweeps the set, and those that its tasks wait for.
    pub(crate) fn sweep(&self, set: SetRef<'a>) -> Result<Swept> {
        let (mut found, mut to_sweep) = (0, vec![set.offset()]);
        let mut seen = HashSet::new();
        while let Some(offset) = to_sweep.pop() {
            if seen.insert(offset)
                && let Ok(set) = SetRef::open(self.space, offset)
            {
                found += self.close(set, &mut to_sweep)?;
            }
        }
        Ok(match found {
            0 if set.has_finished()? => Swept::Finished,
            0 => Swept::Nothing,
            _ => Swept::Work,
        })
    }

    /// Ends the set if all of its tasks have finished. Returns how many tasks it has made ready.
    fn close(&self, set: SetRef<'a>, others: &mut Vec<u64>) -> Result<usize> {
        let old = set.end.state();
        let Status::Waiting(attempt) = old.status else {
            // It has ended; whoever ended it may have died before it told the continuation.
            return match set.task(CONTINUATION)? {
                Some(continuation) => Ok(usize::from(self.mend(continuation, others)?)),
                None => Ok(0),
            };
        };
        let closing = Status::Waiting(attempt_after(attempt) | CLOSING);
        if !old.become_in(&set.end.task.state, closing) {
            return Ok(0);
        }
        let (mut open, mut found, mut damaged) = (0, 0, None);
        for offset in set.tasks().objects() {
            match TaskRef::open(self.space, offset) {
                Ok(task) if task.set() != set.offset() => damaged = Some(offset),
                Ok(task) if task.number() == CONTINUATION || task.is_finished() => {}
                Ok(task) => {
                    open += 1;
                    found += usize::from(self.mend(task, others)?);
                }
                Err(_) => damaged = Some(offset),
            }
        }
        // A task that cannot be read cannot be finished, and neither can its set.
        if let Some(offset) = damaged.filter(|_| open == 0) {
            return Err(Error::Damaged { what: "task", offset });
        }
        let closed = State { status: closing, ..old };
        if open > 0 {
            closed.become_in(&set.end.task.state, Status::Waiting(attempt_after(attempt)));
        } else if closed.become_in(&set.end.task.state, Status::Finished(0)) {
            found += self.tell(set.end)?;
        }
        Ok(found)
    }

    /// Tells those that await the task that it has finished. Returns how many are ready by that.
    pub(crate) fn tell(&self, task: TaskRef<'a>) -> Result<usize> {
        let (mut count, mut result) = (0, Ok(()));
        task.tell(|ready| {
            count += 1;
            if let Err(error) = self.enqueue(ready.offset) {
                result = Err(error);
            }
        });
        result.map(|()| count)
    }

    /// Puts a task right that has not finished; `true` if it is in the queue by that.
    fn mend(&self, task: TaskRef<'a>, others: &mut Vec<u64>) -> Result<bool> {
        let is_ready = match task.state().status {
            Status::Finished(_) => false,
            Status::Ready => true,
            Status::Running(runner) => {
                let worker = usize::from(runner.worker);
                let is_there = worker < self.space.layout().workers as usize;
                let lives = is_there && Life::load(&self.space.slot(worker).life).has(runner);
                !lives && State::release(&task.task.state, runner)
            }
            Status::Waiting(_) => {
                let is_ready = task.look()?;
                for index in 0..task.awaited() {
                    let awaited = task.awaited_task(index)?;
                    if awaited.set() != task.set() && !awaited.is_finished() {
                        others.push(awaited.set());
                    }
                }
                is_ready
            }
        };
        if is_ready {
            self.enqueue(task.offset)?;
        }
        Ok(is_ready)
    }
}

/// The bit of a set's end that says that it is about to finish; those above it number the attempts.
const CLOSING: u64 = 1;

/// The next attempt, open.
fn attempt_after(attempt: u64) -> u64 {
    (attempt & !CLOSING) + 2
}

impl SetRef<'_> {
    /// Whether all of its tasks have finished, and its continuation.
    pub(crate) fn has_finished(self) -> Result<bool> {
        if !self.end.is_finished() {
            return Ok(false);
        }
        Ok(self.task(CONTINUATION)?.is_none_or(TaskRef::is_finished))
    }

    /// Keeps the set open for a task that is in the table now; `false` if it has ended without it.
    pub(crate) fn keep_open(self) -> bool {
        debug_assert_eq!(self.end.number(), END);
        loop {
            let state = self.end.state();
            match state.status {
                Status::Waiting(attempt) if attempt & CLOSING == 0 => return true,
                Status::Waiting(attempt) => {
                    let open = Status::Waiting(attempt_after(attempt));
                    if state.become_in(&self.end.task.state, open) {
                        return true;
                    }
                }
                _ => return false,
            }
        }
    }
}
