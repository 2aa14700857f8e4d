//! What is done when a process opens an arena that no other has: all its workers are dead.
//!
//! Their tasks go back to the queues. Then the blocks that some set, queue or cell names are
//! marked, in this process's memory, and all others are freed: those of sets that were removed, and
//! the few that deaths have left behind. Until it is done no other process takes a block, so that a
//! process that dies here is followed by one that does all of it again.

use std::collections::HashSet;

use crate::mapped::arena::Space;
use crate::mapped::blocks::{self, Kind, blocks_of, index_of};
use crate::mapped::cell::CellRef;
use crate::mapped::set::{self, CONTINUATION, SetRef};
use crate::mapped::table::Table;
use crate::mapped::worker::take_over_all;
use crate::state::Status;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Release};

/// Makes an arena whose workers are all dead one that goes on.
pub(crate) fn prepare(space: &Space) {
    let sets = || set::table(space).objects().filter_map(|at| SetRef::open(space, at).ok());
    // While all sets are there: tasks that await those of removed ones have to know.
    for task in sets().filter(|set| set.is_kept()).flat_map(SetRef::all_tasks) {
        let state = task.state();
        match state.status {
            // No worker runs it. No death is counted: the whole job has ended, for any reason.
            Status::Running(_) => _ = state.become_in(&task.task.state, Status::Ready),
            // The list may name tasks of sets that go, and is walked no more.
            Status::Finished(_) => task.task.forget_dependents(),
            Status::Waiting(_) if task.number() != CONTINUATION => _ = task.look(),
            _ => {}
        }
    }
    take_over_all(space);
    set::table(space).retain(|at| SetRef::open(space, at).is_ok_and(SetRef::is_kept));
    let mut marks =
        Marks { space, small: vec![[0; 16]; space.committed() as usize], large: HashSet::new() };
    marks.table(set::table(space));
    for set in sets() {
        set.set.barrier.clear();
        marks.block(set.offset());
        marks.table(set.tasks());
        marks.table(set.cells());
        for task in set.all_tasks() {
            marks.block(task.offset);
            if let Status::Finished(result) = task.state().status {
                marks.block(result);
            }
        }
        for at in set.cells().objects() {
            marks.block(at);
            marks.block(CellRef::open(space, at).map_or(0, CellRef::block));
        }
    }
    for ring in space.workers().flat_map(|worker| &space.slot(worker).rings) {
        marks.block(ring.load(Acquire));
    }
    marks.free_others();
}

/// The blocks that are in use.
struct Marks<'a> {
    space: &'a Space,
    /// By pages: which of its blocks are.
    small: Vec<[u64; 16]>,
    /// The first pages of runs that are.
    large: HashSet<u64>,
}

impl Marks<'_> {
    fn table(&mut self, table: Table<'_>) {
        table.levels().for_each(|level| self.block(level));
    }

    fn block(&mut self, offset: u64) {
        let Some(index) = self.space.page_of(offset) else { return };
        match self.space.page(index).map(Kind::of) {
            Some(Kind::Small { class, .. }) => {
                let block = index_of(self.space, offset, class);
                if block < blocks_of(class) {
                    self.small[index as usize][block as usize / 64] |= 1 << (block % 64);
                }
            }
            Some(Kind::Large { first, .. }) => _ = self.large.insert(first),
            _ => {}
        }
    }

    fn free_others(&self) {
        for (index, marks) in (0..).zip(&self.small) {
            let Some(page) = self.space.page(index) else { return };
            match Kind::of(page) {
                // Also a page whose worker died before it was prepared.
                Kind::Small { .. } | Kind::Raw { .. } if marks.iter().all(|bits| *bits == 0) => {
                    page.kind.store(0, Release);
                }
                Kind::Small { .. } => {
                    let differ = |(bits, marks): &(&AtomicU64, &u64)| bits.load(Acquire) != **marks;
                    let changed = page.bits.iter().zip(marks).filter(differ);
                    changed.for_each(|(bits, marks)| bits.store(*marks, Release));
                }
                Kind::Large { owner, first } if !self.large.contains(&first) => {
                    blocks::free_run(self.space, first, owner);
                    // The end of a run whose beginning is lost.
                    page.kind.store(0, Release);
                }
                _ => {}
            }
        }
        self.space.header().free_hint.store(0, Release);
    }
}

/// Blocks that are in use, as their pages say: for tests.
#[cfg(test)]
pub(crate) fn used(space: &Space) -> (u64, u64) {
    let (mut small, mut large) = (0, 0);
    for page in (0..space.committed()).filter_map(|at| space.page(at)) {
        match Kind::of(page) {
            Kind::Small { .. } => {
                small += page
                    .bits
                    .iter()
                    .map(|bits| u64::from(bits.load(Acquire).count_ones()))
                    .sum::<u64>();
            }
            Kind::Large { .. } => large += 1,
            _ => {}
        }
    }
    (small, large)
}
