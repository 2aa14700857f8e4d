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
//! A task that is added at the same time is not left behind: see [`closing`](crate::closing).

use std::collections::HashSet;

use crate::closing::Attempt;
use crate::mapped::error::{Error, Result};
use crate::mapped::set::{CONTINUATION, SetRef};
use crate::mapped::task::TaskRef;
use crate::mapped::worker::Worker;
use crate::mapped::worker::life::Life;
use crate::state::{State, Status};

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
        if set.end.is_finished() {
            // The worker that ended it may have died before it told the continuation.
            return match set.task(CONTINUATION)? {
                Some(continuation) => Ok(usize::from(self.mend(continuation, others)?)),
                None => Ok(0),
            };
        }
        let end = &set.end.task.state;
        let Some(attempt) = Attempt::begin(end) else { return Ok(0) };
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
        if open > 0 {
            attempt.give_up(end);
        } else if attempt.finish(end) {
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
            Status::Waiting(_) => task.look_at_each(|awaited| {
                if awaited.set() != task.set() {
                    others.push(awaited.set());
                }
            })?,
        };
        if is_ready {
            self.enqueue(task.offset)?;
        }
        Ok(is_ready)
    }
}

impl SetRef<'_> {
    /// Whether all of its tasks have finished, and its continuation.
    pub(crate) fn has_finished(self) -> Result<bool> {
        if !self.end.is_finished() {
            return Ok(false);
        }
        Ok(self.task(CONTINUATION)?.is_none_or(TaskRef::is_finished))
    }
}
