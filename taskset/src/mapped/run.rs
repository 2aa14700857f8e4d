//! What a worker does: it takes tasks, runs them, and meets the others when there are none.
//!
//! The running slot names a task before it leaves its queue; the claim is one compare-and-swap, and
//! so is the end. A worker that dies between them leaves a task that is RUNNING by a dead one,
//! which another makes READY. So a task is run again only if its worker has died within, and each
//! result counts once. Tasks must be *idempotent*: what a dead worker has done of one is done
//! again. One that is not (adds to a sum in a file, say) has that effect twice.
//!
//! Workers that find no task wait at the set's barrier. The last one to come sweeps the set, and
//! either ends it or finds tasks; if it dies meanwhile, the others are released again, by its
//! removal.

use std::time::{Duration, Instant};
use std::{mem, thread};

use crate::barrier::{self, Member, Outcome};
use crate::mapped::error::{Error, Result};
use crate::mapped::set::SetRef;
use crate::mapped::sweep::Swept;
use crate::mapped::task::{Code, TaskRef};
use crate::mapped::worker::Worker;
use crate::state::{State, Status};
use crate::sync::Ordering::{Relaxed, Release};

/// A task that runs, as the function sees it that runs the tasks of a set.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(crate) worker: &'a Worker<'a>,
    pub(crate) task: TaskRef<'a>,
    deaths: u16,
}

impl Call<'_> {
    /// Its number in its set. The set's continuation has the highest number but one.
    pub fn number(&self) -> u64 {
        self.task.number()
    }

    /// What it does.
    pub fn code(&self) -> Code {
        self.task.code()
    }

    /// Its argument, copied from the arena.
    ///
    /// # Errors
    /// The task is damaged.
    pub fn argument(&self) -> Result<Vec<u8>> {
        self.task.argument()
    }

    /// How many workers have died while they ran it. A task that kills its workers should not be
    /// run for ever: return a result that says so.
    pub fn deaths(&self) -> u16 {
        self.deaths
    }
}

/// Pauses of a worker that waits, before it looks for dead ones: these are short at first.
const SHORT_PAUSES: u32 = 16;

/// A sweep that has found nothing is repeated after this multiple of the time it took.
const PATIENCE: u32 = 4;
const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_millis(100);

impl<'a> Worker<'a> {
    /// Runs tasks, of this set and of others, until the set has finished.
    pub(crate) fn run<R: AsRef<[u8]>, E: From<Error>>(
        &self,
        set: SetRef<'a>,
        mut function: impl FnMut(&Call<'_>) -> Result<R, E>,
    ) -> Result<(), E> {
        if self.is_running.replace(true) {
            return Err(Error::Nested.into());
        }
        let mut meeting = Meeting::join(self, set)?;
        while !set.has_finished()? {
            while let Some(task) = self.next() {
                self.execute(task, &mut function)?;
                if set.end.is_finished() {
                    break;
                }
            }
            if !self.is_alive() {
                return Err(Error::Expelled.into());
            }
            if let Outcome::Released { leader: true } = meeting.wait()? {
                let begun = Instant::now();
                self.look_for_dead();
                if self.sweep(set)? == Swept::Nothing {
                    self.rest(begun.elapsed());
                }
            }
        }
        Ok(())
    }

    /// Runs the task, if it is still ready. A damaged one is left out.
    #[inline]
    pub(crate) fn execute<R: AsRef<[u8]>, E: From<Error>>(
        &self,
        offset: u64,
        function: &mut impl FnMut(&Call<'_>) -> Result<R, E>,
    ) -> Result<(), E> {
        let Ok(task) = TaskRef::open(self.space, offset) else { return Ok(()) };
        let Some(claimed) = State::claim(&task.task.state, self.runner) else { return Ok(()) };
        let call = Call { worker: self, task, deaths: claimed.deaths };
        let unwinding = Unwinding { worker: self, task };
        let result = function(&call);
        mem::forget(unwinding);
        let finished =
            result.and_then(|result| Ok(task.finish(&self.blocks, claimed, result.as_ref())?));
        match finished {
            Ok(true) => Ok(self.tell(task).map(drop)?),
            Ok(false) => Ok(()),
            Err(error) => {
                // Another worker, or a later job, may have what this one lacks: room, say.
                if claimed.become_in(&task.task.state, Status::Ready) {
                    let _ = self.enqueue(offset);
                }
                Err(error)
            }
        }
    }

    /// Waits before the next sweep, unless there is work.
    fn rest(&self, swept_for: Duration) {
        let begun = Instant::now();
        let limit = (swept_for * PATIENCE).clamp(REST_MIN, REST_MAX);
        while begun.elapsed() < limit && !self.sees_work() {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Dropped when the function panics: the task can run again, also by this worker if the program
/// goes on with it.
struct Unwinding<'w, 'a> {
    worker: &'w Worker<'a>,
    task: TaskRef<'a>,
}

impl Drop for Unwinding<'_, '_> {
    fn drop(&mut self) {
        if State::release(&self.task.task.state, self.worker.runner) {
            // If there is no room, a sweep finds it.
            let _ = self.worker.enqueue(self.task.offset);
        }
    }
}

/// A worker at the barrier of a set, until it is dropped.
struct Meeting<'w, 'a> {
    worker: &'w Worker<'a>,
    set: SetRef<'a>,
    member: Option<Member>,
}

impl<'w, 'a> Meeting<'w, 'a> {
    fn join(worker: &'w Worker<'a>, set: SetRef<'a>) -> Result<Self> {
        // A worker that takes over this one must know before where it is, and as whom.
        let slot = worker.slot;
        let incarnation = slot.meetings.load(Relaxed) + 1;
        slot.meetings.store(incarnation, Release);
        slot.meeting.store(set.offset(), Release);
        let mut meeting = Self { worker, set, member: None };
        let joined = set.set.barrier.join(worker.number(), incarnation as u32)?;
        meeting.member = Some(joined);
        Ok(meeting)
    }

    /// Waits until all others wait, too, or there may be something to do.
    fn wait(&mut self) -> Result<Outcome> {
        let Self { worker, set, member } = self;
        let Some(member) = member else { return Err(Error::Expelled) };
        let outcome = set.set.barrier.wait(member, |round| {
            worker.set_idle(worker.number(), true);
            let is_long = round >= SHORT_PAUSES;
            if worker.sees_work() || (is_long && worker.look_for_dead()) {
                set.set.barrier.recall();
            } else {
                barrier::pause(round);
            }
        });
        worker.set_idle(worker.number(), false);
        Ok(outcome?)
    }
}

impl Drop for Meeting<'_, '_> {
    fn drop(&mut self) {
        self.worker.is_running.set(false);
        if let Some(member) = self.member.take() {
            self.set.set.barrier.leave(member);
        }
        self.worker.slot.meeting.store(0, Release);
    }
}
