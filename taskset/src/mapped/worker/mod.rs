//! A worker: a slot in the arena, with a queue, and what this process knows beside it.
//!
//! | file | question it answers |
//! |---|---|
//! | `life` | who has a slot? |
//! | `watch` | who has died? |
//! | `takeover` | what becomes of what a dead worker had? |
//! | here | where does a task wait, and where does the next one come from? |
//!
//! A task is named by the running slot before it leaves a queue, so at every instant it is in one
//! or the other. What is lost nevertheless (a task is ready, and its worker dies before it is in a
//! queue) a [sweep](crate::mapped::sweep) finds.

pub(crate) mod life;
mod takeover;
mod watch;

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use crate::mapped::arena::{Slot, Space};
use crate::mapped::blocks::Blocks;
use crate::mapped::error::{Error, Result};
use crate::queue::{Full, Steal};
use crate::state::Runner;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use life::Life;
pub(crate) use takeover::take_over_all;
pub(crate) use watch::{Own, Watch};

/// Entries of a queue's first ring; each next one is twice as long.
const RING_LENGTH: u64 = 256;

/// How many times a thief tries one victim that others rob at the same time.
const TRIES: u32 = 16;

/// A worker in an arena: adds tasks, and runs them. Dropped, it leaves; what is in its queue stays,
/// for the others.
///
/// It belongs to one thread. [`Arena::join`](crate::Arena::join) makes it.
#[derive(Debug)]
pub struct Worker<'a> {
    pub(crate) space: &'a Space,
    pub(crate) slot: &'a Slot,
    pub(crate) blocks: Blocks<'a>,
    pub(crate) runner: Runner,
    life: Life,
    watch: &'a Mutex<Watch>,
    victims: RefCell<Victims>,
    pub(crate) is_running: Cell<bool>,
}

impl<'a> Worker<'a> {
    pub(crate) fn join(space: &'a Space, watch: &'a Mutex<Watch>) -> Result<Self> {
        let own = Own::get();
        let workers = space.layout().workers as usize;
        let begin = |worker: &usize| {
            let word = &space.slot(*worker).life;
            // Before the slot is taken: others look for dead ones up to here.
            space.header().workers_used.fetch_max(*worker as u64 + 1, AcqRel);
            Life::load(word).begin(word, own.process)
        };
        let take = || (0..workers).find_map(|worker| Some((worker, begin(&worker)?)));
        let taken = take().or_else(|| {
            takeover::make_room(space, watch);
            take()
        });
        let (number, life) = taken.ok_or(Error::NoSlot(workers))?;
        let slot = space.slot(number);
        slot.born.store(own.born, Release);
        // Last: until then its process is not looked for.
        slot.home.store(own.home, Release);
        let runner = Runner { worker: number as u16, incarnation: life.incarnation };
        let this = Self {
            space,
            slot,
            blocks: Blocks::new(space, runner.worker),
            runner,
            life,
            watch,
            victims: RefCell::default(),
            is_running: Cell::new(false),
        };
        slot.queue.adopt();
        match this.rings() {
            0 => this.grow()?,
            // The last worker may have died before its queue had the ring.
            rings => this.use_ring(rings - 1)?,
        }
        Ok(this)
    }

    /// Its number in the arena. Numbers of workers that have left are given again.
    pub fn number(&self) -> usize {
        self.runner.worker.into()
    }

    /// Has this worker look for work with these others first, the nearest first. It looks with all
    /// others after them, also with those that have died.
    pub fn set_victims(&self, nearest_first: &[usize]) {
        *self.victims.borrow_mut() = Victims { near: nearest_first.to_vec(), ..Victims::default() };
    }

    /// Whether the others hold this worker for alive.
    pub(crate) fn is_alive(&self) -> bool {
        Life::load(&self.slot.life) == self.life
    }

    fn rings(&self) -> usize {
        self.slot.rings.iter().take_while(|ring| ring.load(Acquire) != 0).count()
    }

    /// Makes the next ring of the queue, and has it used.
    fn grow(&self) -> Result<()> {
        let next = self.rings();
        let word =
            self.slot.rings.get(next).ok_or(Error::Crowded("tasks in the queue of a worker"))?;
        self.blocks.take((8 * RING_LENGTH) << next)?.link_once(word);
        self.use_ring(next)
    }

    fn use_ring(&self, ring: usize) -> Result<()> {
        let offset = self.slot.rings[ring].load(Acquire);
        let used = self.slot.queue.grow(self.space, offset, RING_LENGTH << ring);
        used.map_err(|_| Error::Damaged { what: "ring", offset })
    }

    /// Puts a task that is ready into the queue, or gives it to a worker that has none.
    pub(crate) fn enqueue(&self, task: u64) -> Result<()> {
        if self.give(task) {
            return Ok(());
        }
        while let Err(Full) = self.slot.queue.push(self.space, task) {
            self.grow()?;
        }
        Ok(())
    }

    /// Gives a task to a worker that waits for one, if this one has others.
    fn give(&self, task: u64) -> bool {
        let idle = self.space.header().idle.iter().map(|word| word.load(Relaxed));
        let Some((at, bits)) = idle.enumerate().find(|(_, bits)| *bits != 0) else { return false };
        let other = at * 64 + bits.trailing_zeros() as usize;
        if other == self.number() || !self.space.workers().contains(&other) {
            return false;
        }
        if self.slot.queue.is_empty() {
            return false;
        }
        // The next task is for another.
        self.set_idle(other, false);
        let given = &self.space.slot(other).inbox.given;
        given.compare_exchange(0, task, AcqRel, Relaxed).is_ok()
    }

    /// Says whether a worker waits for tasks.
    pub(crate) fn set_idle(&self, worker: usize, is_idle: bool) {
        let (word, bit) = (&self.space.header().idle[worker / 64], 1 << (worker % 64));
        if is_idle != (word.load(Relaxed) & bit != 0) {
            if is_idle {
                word.fetch_or(bit, Relaxed)
            } else {
                word.fetch_and(!bit, Relaxed)
            };
        }
    }

    /// The next task to run: the youngest of its own, one that was given to it, or the oldest of
    /// another. The running slot names it.
    pub(crate) fn next(&self) -> Option<u64> {
        let running = &self.slot.running;
        let own = self.slot.queue.pop_into(self.space, running);
        own.or_else(|| self.take_given(self.number())).or_else(|| self.steal())
    }

    fn take_given(&self, of: usize) -> Option<u64> {
        let given = &self.space.slot(of).inbox.given;
        let task = given.load(Acquire);
        if task == 0 {
            return None;
        }
        self.slot.running.store(task, Release);
        given.compare_exchange(task, 0, AcqRel, Relaxed).ok()
    }

    fn steal(&self) -> Option<u64> {
        let mut victims = self.victims.borrow_mut();
        victims.all(self.number(), self.space.workers().end).iter().find_map(|victim| {
            let queue = &self.space.slot(*victim).queue;
            for _ in 0..TRIES {
                match queue.steal_into(self.space, &self.slot.running) {
                    Steal::Taken(task) => return Some(task),
                    Steal::Empty => return self.take_given(*victim),
                    Steal::Retry => {}
                }
            }
            None
        })
    }

    /// Whether there seems to be a task in some queue, or given to this worker.
    pub(crate) fn sees_work(&self) -> bool {
        let mut slots = self.space.workers().map(|worker| self.space.slot(worker));
        slots.any(|slot| !slot.queue.is_empty() || slot.inbox.given.load(Relaxed) != 0)
    }
}

/// In which order a thief looks at the others.
#[derive(Debug, Default)]
struct Victims {
    near: Vec<usize>,
    all: Vec<usize>,
    /// How many workers there were when `all` was made.
    used: usize,
}

impl Victims {
    /// All others, the nearest first.
    fn all(&mut self, me: usize, used: usize) -> &[usize] {
        if self.used != used {
            let Self { near, all, .. } = self;
            all.clear();
            let behind = (1..used).map(|step| (me + step) % used);
            for other in near.iter().copied().chain(behind) {
                if other != me && other < used && !all.contains(&other) {
                    all.push(other);
                }
            }
            self.used = used;
        }
        &self.all
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // As for a dead one, by itself: a task that panicked is run by another.
        if self.is_alive() {
            self.set_idle(self.number(), false);
            takeover::recover(self.space, self.runner, true, |task| {
                let _ = self.enqueue(task);
            });
            takeover::set_free(self.slot, self.life);
        }
    }
}
