//! Tasks whose results are not wanted any more.
//!
//! One that waits here is taken out of its future, and the empty shell is thrown away when its turn
//! comes. One that waits for something is stopped there, and with it what only it waits for. One
//! that is away is cancelled by a message to where its home knows it to be. One that runs hears of
//! it if it [asks](crate::executor::Context::is_cancelled), and is stopped where it awaits
//! something next.

use super::caught::discard;
use crate::protocol::{CANCELLED_AT_ONCE, TaskId};
use async_task::Task;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use ultramarine_topology::Pe;

/// A PE whose tasks are cancelled.
pub(crate) trait Canceller: Send + Sync {
    /// Which PE this is.
    fn me(&self) -> Pe;
    /// Its tasks that are not wanted any more.
    fn cancelled(&self) -> &Cancelled;
    /// Cancels tasks that are on other PEs, by the numbers of their futures.
    fn cancel_away(&self, futures: Vec<u64>);
}

/// The PEs of this process, by number: so that a task need not hold its own.
static SITES: Mutex<Vec<Weak<dyn Canceller>>> = Mutex::new(Vec::new());

/// The first bits of a [`Mark`] or of a task that runs at home are the PE's number here.
const SLOT_SHIFT: u32 = 48;
const SLOT_MASK: u64 = (1 << 14) - 1;

/// Set in the numbers of tasks that run at home; those that are away have their futures' numbers.
const AT_HOME: u64 = 1 << 63;

/// Set in a [`Mark`]: the task is not wanted, wherever it goes.
const UNWANTED: u64 = 1 << 62;

/// Where a task is that has left its future: 0 if it has not.
#[derive(Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    /// It runs here, and is called this.
    pub(crate) fn runs_as(&self, task: TaskId) {
        self.0.store(task.future, Ordering::Relaxed);
    }

    /// It leaves the PE of this slot, with this number for that PE's engine. Whether it is still
    /// wanted.
    pub(crate) fn leaves(&self, slot: u64, future: u64) -> bool {
        let mark = (slot << SLOT_SHIFT) | future;
        self.0.swap(mark, Ordering::AcqRel) & UNWANTED == 0
    }

    /// The task that runs here.
    pub(crate) fn task(&self, home: Pe) -> TaskId {
        TaskId { home, future: self.0.load(Ordering::Relaxed) & !UNWANTED }
    }

    /// It is not wanted any more. If it waits here for something, it is there to be stopped.
    pub(crate) fn cancel(&self, waiting: Option<Task<()>>, batch: &mut Batch) {
        let mark = self.0.fetch_or(UNWANTED, Ordering::AcqRel);
        batch.tasks.extend(waiting);
        if mark != 0 && mark & UNWANTED == 0 {
            batch.add(mark);
        }
    }

    /// The task has ended that ran at home: if it was cancelled meanwhile, that is forgotten.
    pub(crate) fn ends(&self) {
        let mark = self.0.load(Ordering::Acquire);
        if mark & AT_HOME != 0
            && mark & UNWANTED != 0
            && let Some(pe) = site(slot_of(mark))
        {
            pe.cancelled().take(TaskId { home: pe.me(), future: mark & !UNWANTED });
        }
    }
}

/// Tasks to be cancelled together.
#[derive(Default)]
pub(crate) struct Batch {
    marks: Vec<u64>,
    /// Those that wait here for something.
    tasks: Vec<Task<()>>,
}

impl Batch {
    /// Adds one. A full batch is sent at once: others work on it while more are added.
    fn add(&mut self, mark: u64) {
        self.marks.push(mark);
        if self.marks.len() == CANCELLED_AT_ONCE {
            self.send();
        }
    }

    /// Cancels them, wherever they are.
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
        // After they are known as cancelled: then their ends let go of that.
        self.tasks.drain(..).for_each(discard);
    }
}

fn slot_of(mark: u64) -> u64 {
    (mark >> SLOT_SHIFT) & SLOT_MASK
}

fn sites() -> MutexGuard<'static, Vec<Weak<dyn Canceller>>> {
    SITES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn site(slot: u64) -> Option<Arc<dyn Canceller>> {
    sites().get(slot as usize)?.upgrade()
}

/// Tasks that are here, or were, and are not wanted any more.
#[derive(Default)]
pub(crate) struct Cancelled {
    is_any: AtomicBool,
    /// By home and number: those of 64 numbers that follow each other are bits of one word, since
    /// mostly many are cancelled together.
    words: Mutex<HashMap<(Pe, u64), u64>>,
}

impl Cancelled {
    fn words(&self) -> MutexGuard<'_, HashMap<(Pe, u64), u64>> {
        // No code of the user's runs under the lock.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, home: Pe, futures: &[u64]) {
        let mut words = self.words();
        for future in futures {
            let (word, bit) = place(TaskId { home, future: *future });
            *words.entry(word).or_default() |= bit;
        }
        self.is_any.store(true, Ordering::Release);
    }

    /// Whether there is any: mostly there is none.
    #[inline]
    fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    pub(crate) fn contains(&self, task: TaskId) -> bool {
        let (word, bit) = place(task);
        self.is_any() && self.words().get(&word).is_some_and(|there| there & bit != 0)
    }

    /// Whether it was one, for who would start it. It comes only once.
    #[inline]
    pub(crate) fn take(&self, task: TaskId) -> bool {
        self.is_any() && self.take_of_some(task)
    }

    #[cold]
    fn take_of_some(&self, task: TaskId) -> bool {
        let (word, bit) = place(task);
        let mut words = self.words();
        let Entry::Occupied(mut there) = words.entry(word) else { return false };
        let was = *there.get();
        match was & !bit {
            0 => _ = there.remove(),
            left => *there.get_mut() = left,
        }
        was & bit != 0
    }

    /// Forgets all: no task is here.
    pub(crate) fn clear(&self) {
        if self.is_any.swap(false, Ordering::AcqRel) {
            *self.words() = HashMap::new();
        }
    }
}

/// The word and the bit of a task.
fn place(task: TaskId) -> ((Pe, u64), u64) {
    ((task.home, task.future / 64), 1 << (task.future % 64))
}

thread_local! {
    /// The number of the last task that the thread has begun.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// How many of the lower bits count the tasks of one thread.
const COUNT_BITS: u32 = 32;

/// Gives a PE its number among those of this process.
pub(crate) fn enlist(pe: Weak<dyn Canceller>) -> u64 {
    let mut all = sites();
    let free = all.iter().position(|pe| pe.strong_count() == 0).unwrap_or(all.len());
    match all.get_mut(free) {
        Some(slot) => *slot = pe,
        None => all.push(pe),
    }
    // More are never there at a time, each with a thread at least.
    free as u64 & SLOT_MASK
}

/// What a task is called that runs on the PE of this slot, and was spawned there.
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
