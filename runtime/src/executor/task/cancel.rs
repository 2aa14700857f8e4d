//! Cancelling tasks whose results are not wanted any more.
//!
//! - A task that has not started: its argument is dropped, and the empty shell is thrown away when
//!   a worker comes to it.
//! - A task that waits for something is stopped there, together with the tasks that only it waits
//!   for.
//! - A task on another PE: its home sends a message to the PE where it knows the task to be.
//! - A running task hears of it if it [asks](crate::executor::Context::is_cancelled), and is
//!   stopped where it awaits something next.

use super::caught::discard;
use crate::lock::Lock;
use crate::protocol::{CANCELLED_AT_ONCE, TaskId};
use async_task::Task;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use ultramarine_topology::Pe;

/// A PE, as far as cancelling needs it.
pub(crate) trait Canceller: Send + Sync {
    /// Which PE this is.
    fn me(&self) -> Pe;
    /// The cancelled tasks that this PE knows of.
    fn cancelled(&self) -> &Cancelled;
    /// Cancels tasks of this PE that are on other PEs, by the numbers of their futures.
    fn cancel_away(&self, futures: Vec<u64>);
}

/// The PEs of this process, by slot. So a task need not hold a reference to its PE.
static SITES: Lock<Vec<Weak<dyn Canceller>>> = Lock::new(Vec::new());

/// The upper bits of a [`Mark`], and of the number of a task that runs at home, are the PE's slot.
const SLOT_SHIFT: u32 = 48;
const SLOT_MASK: u64 = (1 << 14) - 1;

/// Set in the numbers of tasks that run at home. Tasks on other PEs have the numbers of their
/// futures.
const AT_HOME: u64 = 1 << 63;

/// Set in a [`Mark`]: the task is cancelled, wherever it goes.
const UNWANTED: u64 = 1 << 62;

/// Where a started task is: running at home, or on another PE. 0 if it has not started.
#[derive(Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    /// The task starts to run here, under this name.
    pub(crate) fn runs_as(&self, task: TaskId) {
        self.0.store(task.future, Ordering::Relaxed);
    }

    /// The task leaves the PE of this slot; its future has this number there. Returns whether it is
    /// still wanted.
    pub(crate) fn note_departure(&self, slot: u64, future: u64) -> bool {
        let mark = (slot << SLOT_SHIFT) | future;
        self.0.swap(mark, Ordering::AcqRel) & UNWANTED == 0
    }

    /// The name of the task that runs here.
    pub(crate) fn task(&self, home: Pe) -> TaskId {
        TaskId { home, future: self.0.load(Ordering::Relaxed) & !UNWANTED }
    }

    /// Cancels the task. `waiting` is the task itself if it waits here for something.
    pub(crate) fn cancel(&self, waiting: Option<Task<()>>, batch: &mut Batch) {
        let mark = self.0.fetch_or(UNWANTED, Ordering::AcqRel);
        batch.tasks.extend(waiting);
        if mark != 0 && mark & UNWANTED == 0 {
            batch.add(mark);
        }
    }

    /// The task that ran at home has ended. If it was cancelled meanwhile, that is forgotten.
    pub(crate) fn note_end(&self) {
        let mark = self.0.load(Ordering::Acquire);
        if mark & AT_HOME != 0
            && mark & UNWANTED != 0
            && let Some(pe) = site(slot_of(mark))
        {
            pe.cancelled().take(TaskId { home: pe.me(), future: mark & !UNWANTED });
        }
    }
}

/// Tasks that are cancelled together.
#[derive(Default)]
pub(crate) struct Batch {
    marks: Vec<u64>,
    /// Tasks that wait here for something.
    tasks: Vec<Task<()>>,
}

impl Batch {
    /// Adds a task. A full batch is sent at once: others can work on it while more are added.
    fn add(&mut self, mark: u64) {
        self.marks.push(mark);
        if self.marks.len() == CANCELLED_AT_ONCE {
            self.send();
        }
    }

    /// Cancels the tasks, wherever they are.
    pub(crate) fn send(&mut self) {
        let marks = &mut self.marks;
        marks.sort_unstable_by_key(|mark| (slot_of(*mark), mark & AT_HOME != 0));
        for group in marks.chunk_by(|a, b| (slot_of(*a), a & AT_HOME) == (slot_of(*b), b & AT_HOME))
        {
            let Some(pe) = site(slot_of(group[0])) else { continue };
            if group[0] & AT_HOME == 0 {
                let futures = group.iter().map(|mark| mark & !(SLOT_MASK << SLOT_SHIFT)).collect();
                pe.cancel_away(futures);
            } else {
                pe.cancelled().insert(pe.me(), group);
            }
        }
        marks.clear();
        // Only now, when they are known as cancelled: their ends remove the entries.
        self.tasks.drain(..).for_each(discard);
    }
}

fn slot_of(mark: u64) -> u64 {
    (mark >> SLOT_SHIFT) & SLOT_MASK
}

fn sites() -> MutexGuard<'static, Vec<Weak<dyn Canceller>>> {
    SITES.lock()
}

fn site(slot: u64) -> Option<Arc<dyn Canceller>> {
    sites().get(slot as usize)?.upgrade()
}

/// Cancelled tasks that are on this PE, or were.
#[derive(Default)]
pub(crate) struct Cancelled {
    /// The PE's slot, once it is registered.
    slot: AtomicU64,
    is_any: AtomicBool,
    /// By home and number / 64. Each bit of a word is one task, since mostly many with consecutive
    /// numbers are cancelled together.
    words: Lock<HashMap<(Pe, u64), u64>>,
}

impl Cancelled {
    /// The PE's slot among those of this process.
    #[inline]
    pub(crate) fn slot(&self) -> u64 {
        self.slot.load(Ordering::Relaxed)
    }

    pub(crate) fn insert(&self, home: Pe, futures: &[u64]) {
        let mut words = self.words.lock();
        for future in futures {
            let (word, bit) = word_and_bit(TaskId { home, future: *future });
            *words.entry(word).or_default() |= bit;
        }
        self.is_any.store(true, Ordering::Release);
    }

    /// Whether any task is cancelled; mostly none is.
    #[inline]
    fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    pub(crate) fn contains(&self, task: TaskId) -> bool {
        let (word, bit) = word_and_bit(task);
        self.is_any() && self.words.lock().get(&word).is_some_and(|there| there & bit != 0)
    }

    /// Whether the task was cancelled, for a thread that is about to start it. Removes the entry: a
    /// task starts only once.
    #[inline]
    pub(crate) fn take(&self, task: TaskId) -> bool {
        self.is_any() && self.take_if_there(task)
    }

    #[cold]
    fn take_if_there(&self, task: TaskId) -> bool {
        let (word, bit) = word_and_bit(task);
        let mut words = self.words.lock();
        let Entry::Occupied(mut there) = words.entry(word) else { return false };
        let was = *there.get();
        match was & !bit {
            0 => _ = there.remove(),
            left => *there.get_mut() = left,
        }
        was & bit != 0
    }

    /// Forgets all cancelled tasks, when no task is on this PE.
    pub(crate) fn clear(&self) {
        if self.is_any.swap(false, Ordering::AcqRel) {
            *self.words.lock() = HashMap::new();
        }
    }
}

/// Where a task's bit is: the key of its word, and the bit in it.
fn word_and_bit(task: TaskId) -> ((Pe, u64), u64) {
    ((task.home, task.future / 64), 1 << (task.future % 64))
}

thread_local! {
    /// The number of the task that this thread started last.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// The lower bits that count the tasks of one thread.
const COUNT_BITS: u32 = 32;

/// Registers a PE of this process: it gets a slot.
pub(crate) fn register_pe<P: Canceller + 'static>(pe: &Arc<P>) {
    let weak: Weak<dyn Canceller> = Arc::<P>::downgrade(pe);
    let mut all = sites();
    let free = all.iter().position(|pe| pe.strong_count() == 0).unwrap_or(all.len());
    match all.get_mut(free) {
        Some(slot) => *slot = weak,
        None => all.push(weak),
    }
    // There are never more at a time, since each has at least one thread.
    pe.cancelled().slot.store(free as u64 & SLOT_MASK, Ordering::Relaxed);
}

/// A new name for a task that is spawned and runs on the PE of this slot.
pub(crate) fn new_task(home: Pe, slot: u64) -> TaskId {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    let mut last = LAST.get();
    if last == 0 {
        last = (THREADS.fetch_add(1, Ordering::Relaxed) & 0xffff) << COUNT_BITS;
    }
    LAST.set(last + 1);
    let future = AT_HOME | (slot << SLOT_SHIFT) | ((last + 1) & !(SLOT_MASK << SLOT_SHIFT));
    TaskId { home, future }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// A PE that notes what is cancelled on others.
    #[derive(Default)]
    struct Noting {
        cancelled: Cancelled,
        away: Lock<Vec<Vec<u64>>>,
    }

    impl Canceller for Noting {
        fn me(&self) -> Pe {
            Pe::new(7)
        }
        fn cancelled(&self) -> &Cancelled {
            &self.cancelled
        }
        fn cancel_away(&self, mut futures: Vec<u64>) {
            futures.sort_unstable();
            self.away.lock().push(futures);
        }
    }

    /// Two PEs of this process, and their slots.
    fn two() -> [(Arc<Noting>, u64); 2] {
        [(); 2].map(|()| {
            let pe = Arc::new(Noting::default());
            register_pe(&pe);
            let slot = pe.cancelled.slot();
            (pe, slot)
        })
    }

    fn task(future: u64) -> TaskId {
        TaskId { home: Pe::new(3), future }
    }

    #[test]
    fn each_cancelled_task_is_taken_once() {
        let cancelled = Cancelled::default();
        assert!(!cancelled.contains(task(5)) && !cancelled.take(task(5)));
        cancelled.insert(Pe::new(3), &[5, 6, 64, 5]);
        assert!([5, 6, 64].into_iter().all(|future| cancelled.contains(task(future))));
        let others = [task(4), task(69), TaskId { home: Pe::new(4), future: 5 }];
        assert!(
            others.into_iter().all(|other| !cancelled.contains(other) && !cancelled.take(other))
        );
        assert!(cancelled.take(task(5)) && !cancelled.take(task(5)) && cancelled.contains(task(6)));
        assert!(cancelled.take(task(64)) && cancelled.take(task(6)));
        assert_eq!(cancelled.words.lock().len(), 0, "nothing is left");
        cancelled.insert(Pe::new(3), &[1]);
        cancelled.clear();
        assert!(!cancelled.contains(task(1)) && cancelled.words.lock().is_empty());
    }

    #[test]
    fn tasks_go_to_their_pes_once_each_together() {
        let [(first, one), (second, two)] = two();
        let home = first.me();
        let [away, other, twice, unstarted, here, gone] = [(); 6].map(|()| Mark::default());
        assert!(away.note_departure(one, 11) && other.note_departure(two, 12));
        assert!(twice.note_departure(one, 13) && gone.note_departure(SLOT_MASK, 14));
        let name = new_task(home, one);
        here.runs_as(name);
        assert_eq!(here.task(home), name);
        let mut batch = Batch::default();
        for mark in [&away, &here, &other, &twice, &unstarted, &twice, &gone] {
            mark.cancel(None, &mut batch);
        }
        batch.send();
        assert_eq!(*first.away.lock(), [[11, 13]]);
        assert_eq!(*second.away.lock(), [[12]]);
        assert_eq!(here.task(home), name, "it keeps its name");
        assert!(first.cancelled.contains(name) && !second.cancelled.contains(name));
        batch.send();
        assert_eq!(first.away.lock().len(), 1, "all is sent");
        assert!(!away.note_departure(one, 15) && !unstarted.note_departure(one, 16), "unwanted");
        // Its end is no longer of interest.
        here.note_end();
        assert!(!first.cancelled.contains(name));
    }

    #[test]
    fn the_end_of_a_task_that_was_not_cancelled_is_not_looked_up() {
        let [(first, one), _] = two();
        let name = new_task(first.me(), one);
        first.cancelled.insert(first.me(), &[name.future]);
        let mark = Mark::default();
        mark.runs_as(name);
        mark.note_end();
        assert!(first.cancelled.contains(name));
    }

    #[test]
    fn a_full_batch_is_sent_and_what_waits_is_dropped() {
        let [(first, one), _] = two();
        let mut batch = Batch::default();
        let mark = |future| {
            let mark = Mark::default();
            mark.note_departure(one, future);
            mark
        };
        (0..CANCELLED_AT_ONCE as u64).for_each(|n| mark(n + 1).cancel(None, &mut batch));
        assert_eq!(first.away.lock().len(), 1);
        let (runnable, waiting) = async_task::spawn(pending::<()>(), |_| {});
        mark(1).cancel(Some(waiting), &mut batch);
        batch.send();
        assert_eq!(first.away.lock().len(), 2);
        assert!(!runnable.run(), "it is stopped");
    }

    #[test]
    fn the_slot_of_a_pe_that_is_gone_is_used_again() {
        let [(first, one), (_second, two)] = two();
        assert_ne!(one, two);
        assert!(site(one).is_some() && site(two).is_some());
        drop(first);
        assert!(site(one).is_none());
    }

    #[test]
    fn new_tasks_have_names_of_their_own_with_their_slot() {
        let home = Pe::new(3);
        let mut names: Vec<u64> = (0..3).map(|_| new_task(home, 5).future).collect();
        names.extend(std::thread::spawn(move || new_task(home, 5).future).join());
        assert!(names.iter().all(|name| slot_of(*name) == 5 && name & AT_HOME != 0));
        names.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 4);
    }
}
