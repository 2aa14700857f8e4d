//! What programs call: sets by their names, tasks and results by their numbers.

use crate::closing::keep_open;
use crate::mapped::cell::CellRef;
use crate::mapped::error::{Error, Result};
use crate::mapped::run::Call;
use crate::mapped::set::{self, CONTINUATION, END, SetRef};
use crate::mapped::task::{Code, Plan, TaskRef};
use crate::mapped::worker::Worker;
use crate::state::Status;

/// A task or a set that a new task can await.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited(u64);

/// A set of tasks, as a worker sees it.
#[derive(Clone, Copy, Debug)]
pub struct TaskSet<'w> {
    worker: &'w Worker<'w>,
    set: SetRef<'w>,
}

/// Data of a set that its tasks may change; see [`TaskSet::cell`].
#[derive(Clone, Copy, Debug)]
pub struct Cell<'w> {
    worker: &'w Worker<'w>,
    cell: CellRef<'w>,
}

impl Worker<'_> {
    /// The set with this name, of 1 to 128 bytes. It is made if there is none.
    ///
    /// # Errors
    /// The name is too long, or there is no room for the set.
    pub fn set(&self, name: &str) -> Result<TaskSet<'_>> {
        Ok(TaskSet { worker: self, set: SetRef::named(self.space, &self.blocks, name)? })
    }

    /// The names of all sets in the arena.
    pub fn set_names(&self) -> Vec<String> {
        let sets =
            set::table(self.space).objects().filter_map(|at| SetRef::open(self.space, at).ok());
        sets.filter(|set| set.is_kept())
            .map(|set| String::from_utf8_lossy(&set.name()).into_owned())
            .collect()
    }
}

impl<'a> Call<'a> {
    /// The set of the task: not always the one that the worker runs.
    ///
    /// # Errors
    /// It is damaged.
    pub fn set(&self) -> Result<TaskSet<'a>> {
        let set = SetRef::open(self.worker.space, self.task.set())?;
        Ok(TaskSet { worker: self.worker, set })
    }
}

impl<'w> TaskSet<'w> {
    /// Adds a task, which can run at once. If the set has a task with this number, and with this
    /// code, that is it: `false`.
    ///
    /// # Errors
    /// There is no room, the number is another task's, or the set has ended without this task.
    pub fn add(&self, number: u64, code: Code, argument: &[u8]) -> Result<bool> {
        self.after(&[], number, code, argument)
    }

    /// Adds a task that can run when all of these have finished, as [`add`](Self::add) does.
    ///
    /// A set that waits for the end of one that waits for the end of it never ends.
    ///
    /// # Errors
    /// As above.
    pub fn after(
        &self,
        awaited: &[Awaited],
        number: u64,
        code: Code,
        argument: &[u8],
    ) -> Result<bool> {
        if [END, CONTINUATION].contains(&number) {
            return Err(Error::Number(number));
        }
        if !awaited.is_empty() {
            let end = [self.set.offset(), self.end()?.0];
            if awaited.iter().any(|task| end.contains(&task.0)) {
                return Err(Error::Circle(number));
            }
        }
        let awaited: Vec<_> = awaited.iter().map(|awaited| awaited.0).collect();
        self.put(number, code, argument, &awaited)
    }

    /// Says which task follows when all others of the set have finished: its *continuation*. One
    /// worker runs it; if that dies, another. The set has finished when the continuation has.
    ///
    /// Call it before the set is run. If the set ends at the same time, its workers may have left,
    /// and the next that calls [`run`](Self::run) runs the continuation.
    ///
    /// # Errors
    /// As of [`add`](Self::add).
    pub fn then(&self, code: Code, argument: &[u8]) -> Result<bool> {
        self.put(CONTINUATION, code, argument, &[self.set.offset()])
    }

    fn put(&self, number: u64, code: Code, argument: &[u8], awaited: &[u64]) -> Result<bool> {
        let plan = Plan { set: self.set.offset(), number, code, argument, awaited };
        if self.set.end.is_finished() {
            let task = self.set.task(number)?.ok_or(Error::Finished(number))?;
            return self.found(task, &plan);
        }
        let (task, is_new) = self.set.add(&self.worker.blocks, &plan)?;
        if !is_new {
            return self.found(task, &plan);
        }
        if number != CONTINUATION && !keep_open(&self.set.end.task.state) {
            return Err(Error::Finished(number));
        }
        if task.state().status == Status::Ready || task.enlist()? {
            self.worker.enqueue(task.offset)?;
        }
        Ok(true)
    }

    fn found(&self, task: TaskRef<'_>, plan: &Plan<'_>) -> Result<bool> {
        if !task.is_like(plan) {
            return Err(Error::OtherTask(plan.number));
        }
        if self.set.end.is_finished() && plan.number != CONTINUATION && !task.is_finished() {
            return Err(Error::Finished(plan.number));
        }
        Ok(false)
    }

    /// The task with this number, for others to await.
    ///
    /// # Errors
    /// There is none.
    pub fn task(&self, number: u64) -> Result<Awaited> {
        self.set.task(number)?.map(|task| Awaited(task.offset)).ok_or(Error::NoTask(number))
    }

    /// The end of the set, or of its continuation if it has one by now, for tasks of other sets to
    /// await.
    ///
    /// # Errors
    /// The set is damaged.
    pub fn end(&self) -> Result<Awaited> {
        Ok(Awaited(self.set.task(CONTINUATION)?.map_or(self.set.offset(), |task| task.offset)))
    }

    /// Runs tasks by this function, of this set and of others, until the set has finished. Each
    /// worker that calls this takes part. Meanwhile tasks may add tasks.
    ///
    /// The function is given a task, and returns its result. What it does must be *idempotent*: if
    /// the worker dies within, another worker runs the task again, and only results and changes of
    /// [cells](Self::cell) are never half done. If it panics, that
    /// counts as a death, and the task is run again: by another worker, or by this one if the
    /// program catches the panic and calls this again.
    ///
    /// # Errors
    /// There is no room for a result, or this worker was taken for dead.
    pub fn run<R: AsRef<[u8]>>(&self, mut function: impl FnMut(&Call<'_>) -> R) -> Result<()> {
        self.try_run(|call| Ok(function(call)))
    }

    /// As [`run`](Self::run), by a function that may fail: then the worker leaves with its error,
    /// and the task can run again.
    ///
    /// # Errors
    /// The function's first, or as above.
    pub fn try_run<R: AsRef<[u8]>, E: From<Error>>(
        &self,
        function: impl FnMut(&Call<'_>) -> Result<R, E>,
    ) -> Result<(), E> {
        self.worker.run(self.set, function)
    }

    /// Whether the set and its continuation have finished.
    ///
    /// # Errors
    /// The set is damaged.
    pub fn is_finished(&self) -> Result<bool> {
        self.set.has_finished()
    }

    /// What the task has come to; `None` if it has not finished.
    ///
    /// # Errors
    /// There is no such task, or it is damaged.
    pub fn result(&self, number: u64) -> Result<Option<Vec<u8>>> {
        self.set.task(number)?.ok_or(Error::NoTask(number))?.result()
    }

    /// The numbers of all tasks that have finished, but for the continuation, in no order; and what
    /// they have come to.
    pub fn results(&self) -> impl Iterator<Item = Result<(u64, Vec<u8>)>> + use<'w> {
        let space = self.worker.space;
        let finished = move |offset| -> Result<_> {
            let task = TaskRef::open(space, offset)?;
            let result = task.result()?.filter(|_| task.number() != CONTINUATION);
            Ok(result.map(|result| (task.number(), result)))
        };
        self.set.tasks().objects().filter_map(move |offset| finished(offset).transpose())
    }

    /// What the continuation has come to; `None` if it has not finished.
    ///
    /// # Errors
    /// There is no continuation, or it is damaged.
    pub fn outcome(&self) -> Result<Option<Vec<u8>>> {
        self.result(CONTINUATION)
    }

    /// The set's data with this number, empty at first.
    ///
    /// # Errors
    /// There is no room for it, or it is damaged.
    pub fn cell(&self, number: u64) -> Result<Cell<'w>> {
        let cell = CellRef::numbered(self.set, &self.worker.blocks, number)?;
        Ok(Cell { worker: self.worker, cell })
    }

    /// Gives up a set that has finished; `false` if it has not. It is not found any more, and its
    /// memory is free when the arena is next opened by a process alone.
    ///
    /// # Errors
    /// The set is damaged.
    pub fn remove(self) -> Result<bool> {
        let has_finished = self.set.has_finished()?;
        if has_finished {
            self.set.remove();
        }
        Ok(has_finished)
    }
}

impl Cell<'_> {
    /// The content, all from one update.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read(&self) -> Result<Vec<u8>> {
        self.cell.read()
    }

    /// Replaces the content by what `change` makes of it, as a whole: after a death it is the old
    /// or the new one. `change` is called again if another worker was quicker.
    ///
    /// A task that is run again does its updates again. So that this has no effect, the content
    /// should say what it has: the numbers of the tasks that have added to a sum, say.
    ///
    /// # Errors
    /// There is no room for the new content, or the old one is damaged.
    pub fn update(&self, change: impl FnMut(&[u8]) -> Vec<u8>) -> Result<()> {
        self.cell.update(&self.worker.blocks, change)
    }
}
