//! Tasks that await others.
//!
//! A task has a bit for each task that it awaits, and an entry, which is in the list of those that
//! await that one. The worker that finishes a task walks its list and sets the bits; the one that
//! finds all bits of a task set makes that ready. All of it can be done twice with the same effect.
//!
//! | dead after | then |
//! |---|---|
//! | a task is finished, before all bits are set | a [sweep](crate::mapped::sweep) sets them |
//! | the task is in the table, before its entries are in their lists | as above |
//! | all bits are set, before it is ready | as above |
//! | it is ready, before it is in a queue | the sweep puts it into one |
//!
//! A task can only await what is in the arena already, so there are no circles.

use crate::mapped::arena::Space;
use crate::mapped::error::Result;
use crate::mapped::shared::{Offset, shared};
use crate::mapped::task::TaskRef;
use crate::state::Status;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::fill;

shared! {
    /// That one task awaits another.
    pub(crate) struct Wait {
        /// The next in the list; written before this one is in it, and never after.
        next: AtomicU64,
        /// The offset of the task that waits.
        task: AtomicU64,
        /// The offset of the task that it awaits.
        on: AtomicU64,
    }
}

const WAIT_BYTES: u64 = size_of::<Wait>() as u64;

impl<'a> TaskRef<'a> {
    /// The bits of what it awaits.
    fn bits(self) -> Result<&'a [AtomicU64]> {
        self.behind(self.argument_bytes().div_ceil(8), self.awaited().div_ceil(64))
    }

    /// The offset of the entry for what it awaits, counted from 0.
    fn entry_at(self, index: usize) -> u64 {
        let skip = self.argument_bytes().div_ceil(8) + self.awaited().div_ceil(64);
        self.offset + (size_of_val(self.task) + 8 * skip) as u64 + index as u64 * WAIT_BYTES
    }

    fn entry(self, index: usize) -> Result<&'a Wait> {
        self.space.get(Offset::new(self.entry_at(index)))
    }

    /// Writes the bits and entries of a task that no word names yet.
    pub(crate) fn write_entries(self, awaited: &[u64]) -> Result<()> {
        self.bits()?.iter().for_each(|word| fill(word, 0));
        for (index, on) in awaited.iter().enumerate() {
            let entry = self.entry(index)?;
            fill(&entry.task, self.offset);
            fill(&entry.on, *on);
        }
        Ok(())
    }

    /// Puts the entries into their lists, once, after a word names the task; `true` if it is ready
    /// now, and the caller has to see to it.
    pub(crate) fn enlist(self) -> Result<bool> {
        for index in 0..self.awaited() {
            let entry = self.entry(index)?;
            let on = TaskRef::open(self.space, entry.on.load(Relaxed))?;
            let mut head = on.first_dependent();
            loop {
                entry.next.store(head, Relaxed);
                let at = self.entry_at(index);
                match on.task.dependents.compare_exchange(head, at, SeqCst, SeqCst) {
                    Ok(_) => break,
                    Err(newer) => head = newer,
                }
            }
        }
        self.look()
    }

    /// Sets the bits of what has finished meanwhile; `true` if this made the task ready.
    pub(crate) fn look(self) -> Result<bool> {
        self.look_at_each(|_| ())
    }

    /// As [`look`](Self::look); calls `open` with what it still awaits.
    pub(crate) fn look_at_each(self, mut open: impl FnMut(Self)) -> Result<bool> {
        for index in 0..self.awaited() {
            let bit = 1 << (index % 64);
            let bits = &self.bits()?[index / 64];
            // What has finished may have been removed since.
            if bits.load(SeqCst) & bit != 0 {
                continue;
            }
            let awaited = TaskRef::open(self.space, self.entry(index)?.on.load(Relaxed))?;
            if awaited.is_finished() {
                bits.fetch_or(bit, SeqCst);
            } else {
                open(awaited);
            }
        }
        self.make_ready()
    }

    fn make_ready(self) -> Result<bool> {
        let state = self.state();
        if !matches!(state.status, Status::Waiting(_)) {
            return Ok(false);
        }
        let mut left = self.awaited();
        for bits in self.bits()? {
            let own = left.min(64);
            left -= own;
            if bits.load(SeqCst).count_ones() as usize != own {
                return Ok(false);
            }
        }
        Ok(state.become_in(&self.task.state, Status::Ready))
    }

    /// Tells those that await this task, which has finished; calls `ready` with each that is ready
    /// by that. What is damaged is left out.
    pub(crate) fn tell(self, mut ready: impl FnMut(Self)) {
        let mut at = self.first_dependent();
        // A damaged list may be a circle.
        let limit = self.space.committed() * crate::mapped::arena::PAGE_BYTES / WAIT_BYTES;
        for _ in 0..limit {
            let Some((next, task)) = meet(self.space, at) else { return };
            if let Some(task) = task {
                ready(task);
            }
            at = next;
        }
    }
}

/// Sets the bit of the entry at this offset. Returns the next entry, and the task if it is ready by
/// this.
fn meet(space: &Space, at: u64) -> Option<(u64, Option<TaskRef<'_>>)> {
    if at == 0 {
        return None;
    }
    let entry: &Wait = space.get(Offset::new(at)).ok()?;
    let next = entry.next.load(Relaxed);
    let is_ready = || -> Result<Option<TaskRef<'_>>> {
        let task = TaskRef::open(space, entry.task.load(Relaxed))?;
        let index = (at.wrapping_sub(task.entry_at(0)) / WAIT_BYTES) as usize;
        if index >= task.awaited() {
            return Ok(None);
        }
        task.bits()?[index / 64].fetch_or(1 << (index % 64), SeqCst);
        Ok(task.make_ready()?.then_some(task))
    };
    Some((next, is_ready().ok().flatten()))
}
