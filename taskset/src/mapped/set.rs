//! A task set in the arena: a name, its tasks by their numbers, and where its workers meet.
//!
//! The set's *end* looks like a task that the set's own tasks precede: it is FINISHED when they
//! are. So whatever can await a task can await a set. The *continuation* is a task of the set that
//! awaits its end.

use xxhash_rust::xxh3::xxh3_64;

use crate::barrier::Barrier;
use crate::limits::{NAME_BYTES_MAX, WORKERS_MAX};
use crate::mapped::arena::Space;
use crate::mapped::blocks::Blocks;
use crate::mapped::error::{Error, Result};
use crate::mapped::shared::{Offset, shared};
use crate::mapped::table::{Inserted, LEVELS, Table};
use crate::mapped::task::{Plan, Task, TaskRef};
use crate::state::Status;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::fill;

/// The number of a set's end.
pub(crate) const END: u64 = u64::MAX;

/// The number of a set's continuation.
pub(crate) const CONTINUATION: u64 = u64::MAX - 1;

shared! {
    /// See the [module](self).
    pub(crate) struct Set {
        /// At the beginning, so that the set and its end have one offset.
        end: Task,
        /// 1 once the set is not to be kept.
        removed: AtomicU64,
        name_bytes: AtomicU64,
        name: [AtomicU64; NAME_BYTES_MAX / 8],
        tasks: [AtomicU64; LEVELS],
        cells: [AtomicU64; LEVELS],
        pub(crate) barrier: Barrier<WORKERS_MAX>,
    }
}

/// A set whose end has the right seal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetRef<'a> {
    pub(crate) set: &'a Set,
    pub(crate) end: TaskRef<'a>,
}

/// All sets, by the hashes of their names.
pub(crate) fn table(space: &Space) -> Table<'_> {
    Table { space, levels: &space.header().sets }
}

impl<'a> SetRef<'a> {
    pub(crate) fn open(space: &'a Space, offset: u64) -> Result<Self> {
        let end = TaskRef::open(space, offset)?;
        if end.number() != END {
            return Err(Error::Damaged { what: "set", offset });
        }
        Ok(Self { set: space.get(Offset::new(offset))?, end })
    }

    /// The set with this name, which is made if there is none.
    pub(crate) fn named(space: &'a Space, blocks: &Blocks<'_>, name: &str) -> Result<Self> {
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            return Err(Error::Name(name.len()));
        }
        let hash = xxh3_64(name.as_bytes());
        let is_it = |offset| {
            Self::open(space, offset)
                .is_ok_and(|set| set.is_kept() && set.name() == name.as_bytes())
        };
        if let Some(offset) = table(space).find(hash, is_it)? {
            return Self::open(space, offset);
        }
        let fresh = blocks.take_zeroed(size_of::<Set>() as u64)?;
        let set: &Set = space.get(Offset::new(fresh.offset))?;
        let plan =
            Plan { set: fresh.offset, number: END, code: [0; 16], argument: &[], awaited: &[] };
        set.end.write(fresh.offset, &plan, Status::Waiting(0));
        fill(&set.name_bytes, name.len() as u64);
        for (word, chunk) in set.name.iter().zip(name.as_bytes().chunks(8)) {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            fill(word, u64::from_le_bytes(value));
        }
        match table(space).insert(blocks, hash, fresh, is_it)? {
            Inserted::New(offset) | Inserted::Old(offset) => Self::open(space, offset),
        }
    }

    pub(crate) fn offset(self) -> u64 {
        self.end.offset
    }

    pub(crate) fn name(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(NAME_BYTES_MAX);
        let words = self.set.name.iter();
        words.for_each(|word| bytes.extend(word.load(Relaxed).to_le_bytes()));
        bytes.truncate(self.set.name_bytes.load(Relaxed) as usize);
        bytes
    }

    pub(crate) fn tasks(self) -> Table<'a> {
        Table { space: self.end.space, levels: &self.set.tasks }
    }

    /// All of its tasks. What is damaged is left out.
    pub(crate) fn all_tasks(self) -> impl Iterator<Item = TaskRef<'a>> {
        let space = self.end.space;
        let tasks = self.tasks().objects().filter_map(move |at| TaskRef::open(space, at).ok());
        tasks.filter(move |task| task.set() == self.offset())
    }

    pub(crate) fn cells(self) -> Table<'a> {
        Table { space: self.end.space, levels: &self.set.cells }
    }

    /// Its task with this number.
    pub(crate) fn task(self, number: u64) -> Result<Option<TaskRef<'a>>> {
        let space = self.end.space;
        let found = self.tasks().find(number, |at| self.is_task(at, number))?;
        found.map(|offset| TaskRef::open(space, offset)).transpose()
    }

    fn is_task(self, offset: u64, number: u64) -> bool {
        let task = TaskRef::open(self.end.space, offset);
        task.is_ok_and(|task| task.number() == number && task.set() == self.offset())
    }

    /// Adds a task, unless there is one with this number; says whether it is new.
    pub(crate) fn add(self, blocks: &Blocks<'_>, plan: &Plan<'_>) -> Result<(TaskRef<'a>, bool)> {
        let space = self.end.space;
        let limit = u32::MAX as usize;
        let longest = plan.argument.len().max(plan.awaited.len());
        if longest > limit {
            return Err(Error::TooLarge(longest));
        }
        let fresh = blocks.take(Task::bytes(plan.argument.len(), plan.awaited.len()))?;
        let task: &Task = space.get(Offset::new(fresh.offset))?;
        let status = if plan.awaited.is_empty() { Status::Ready } else { Status::Waiting(0) };
        task.write(fresh.offset, plan, status);
        let task = TaskRef::open(space, fresh.offset)?;
        task.write_argument(plan.argument)?;
        task.write_entries(plan.awaited)?;
        let number = plan.number;
        match self.tasks().insert(blocks, number, fresh, |at| self.is_task(at, number))? {
            Inserted::New(_) => Ok((task, true)),
            Inserted::Old(offset) => Ok((TaskRef::open(space, offset)?, false)),
        }
    }

    pub(crate) fn is_kept(self) -> bool {
        self.set.removed.load(Acquire) == 0
    }

    /// It is not found any more, and its memory is free when the arena is next opened alone.
    pub(crate) fn remove(self) {
        self.set.removed.store(1, Release);
    }
}
