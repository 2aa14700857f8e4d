//! The threads of a PE that run tasks, and how they are called.
//!
//! A worker is *active* from the moment that it is called until it has found nothing to do. So at
//! most as many are active as there are workers, and those that MPI keeps for ever (`lost`, in
//! what follows). Some of the active ones have been *called* and have not come yet; some are
//! *idle*: they look for work.
//!
//! **No work is left behind.** A thread that brings work pushes it and then [calls](Crew::call) a
//! worker, unless all are active. A worker that finds no work first [rests](Crew::rest), then looks
//! into the queues once more. There is a fence before the look at `active`; `active` itself, and
//! the look into the queues, are sequentially consistent. All these have one order: either the
//! thread sees that the worker rests, and calls one, or the worker sees the pushed work.
//!
//! **Calls may be declined.** Rayon gives a call to any of its threads, also to one that waits in a
//! `join` inside a task and must start no other. That thread cannot come. It has all workers
//! called, of which those come that have nothing to do. If even that fails, the driver calls again
//! in a while: it sees that a call [was declined](Crew::take_declined), or asks a worker that only
//! waits to [help](Crew::call_for_help).
//!
//! The other counts and flags are relaxed: they save calls that would find nothing to do, and the
//! driver makes up for one that was missed.

use crate::executor::schedule::standby::Standby;
use crate::lock::Lock;
use crate::protocol::Need;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

thread_local! {
    /// Whether the thread is counted among the idle workers.
    static IS_IDLE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is an idle worker.
pub(super) fn is_idle() -> bool {
    IS_IDLE.get()
}

/// The workers of a PE, and the standby that steps in for them.
#[derive(Default)]
pub(crate) struct Crew {
    /// The number of workers.
    threads: usize,
    /// Workers that work or have been called.
    active: AtomicUsize,
    /// Of these, workers that were called and have not come yet.
    called: AtomicUsize,
    /// Of these, workers that look for work.
    idle: AtomicUsize,
    /// Workers that were called all at once and have not answered yet.
    called_all: AtomicUsize,
    /// Whether an active worker, which may only wait for another, has been asked to help and has
    /// not answered yet.
    is_help_called: AtomicBool,
    /// Whether a called worker could not come, and work was left.
    was_declined: AtomicBool,
    /// `None` once the PE has left, so that the threads end even if a forgotten future still holds
    /// the PE.
    pool: Lock<Option<rayon::ThreadPool>>,
    /// What must not wait for a worker.
    pub(super) standby: Standby,
}

impl Crew {
    pub(super) fn new(threads: usize, pool: rayon::ThreadPool) -> Self {
        Crew { threads, pool: Lock::new(Some(pool)), ..Crew::default() }
    }

    /// The number of active workers.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    /// Counts one more worker as active. Returns false if all are.
    pub(crate) fn try_add_active(&self, lost: usize) -> bool {
        let most = self.threads + lost;
        let more = |active| (active < most).then_some(active + 1);
        self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// An active worker has found nothing to do, or could not come. It looks into the queues after
    /// this, or has another one do so.
    pub(crate) fn rest(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// Calls a worker for what the calling thread has pushed: it will do what `job` makes. Returns
    /// false if all are active.
    pub(super) fn call<J>(&self, lost: usize, job: impl FnOnce() -> J) -> bool
    where
        J: FnOnce() + Send + 'static,
    {
        fence(Ordering::SeqCst);
        let is_wanted = self.try_add_active(lost);
        if is_wanted {
            self.called.fetch_add(1, Ordering::Relaxed);
            if !self.spawn(job()) {
                self.answer_call();
                self.rest();
            }
        }
        is_wanted
    }

    /// A called worker has come, or declines.
    pub(super) fn answer_call(&self) {
        self.called.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a worker was called and has not come yet.
    pub(crate) fn is_calling(&self) -> bool {
        self.called.load(Ordering::Relaxed) > 0
    }

    /// Calls all workers to do this job.
    pub(super) fn call_all(&self, job: impl Fn() + Send + Sync + 'static) {
        self.with_pool(|pool| {
            self.called_all.fetch_add(pool.current_num_threads(), Ordering::Relaxed);
            pool.spawn_broadcast(move |_| job());
        });
    }

    /// One of the workers has come, or declines.
    pub(super) fn answer_call_to_all(&self) {
        self.called_all.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a call to all has not been answered by all yet.
    pub(crate) fn is_calling_all(&self) -> bool {
        self.called_all.load(Ordering::Relaxed) > 0
    }

    /// Calls an active worker, which may only wait for another, to do what `job` makes; not again
    /// before it has answered.
    pub(super) fn call_for_help<J>(&self, job: impl FnOnce() -> J)
    where
        J: FnOnce() + Send + 'static,
    {
        if !self.is_help_called.swap(true, Ordering::Relaxed) {
            self.spawn(job());
        }
    }

    /// The worker has come.
    pub(super) fn answer_call_for_help(&self) {
        self.is_help_called.store(false, Ordering::Relaxed);
    }

    /// The calling worker cannot come, and work may be left: the driver is to call others.
    pub(crate) fn decline(&self) {
        self.was_declined.store(true, Ordering::Relaxed);
    }

    /// Whether a worker has declined since this was last asked.
    pub(crate) fn take_declined(&self) -> bool {
        self.was_declined.swap(false, Ordering::Relaxed)
    }

    /// Whether a worker is not active.
    pub(super) fn has_resting(&self, lost: usize) -> bool {
        self.active.load(Ordering::Relaxed) < self.threads + lost
    }

    /// Counts the calling worker as idle while it looks for work.
    pub(super) fn while_idle<R>(&self, look: impl FnOnce() -> R) -> R {
        self.idle.fetch_add(1, Ordering::Relaxed);
        IS_IDLE.set(true);
        let result = look();
        IS_IDLE.set(false);
        self.idle.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// How many workers look for work.
    pub(super) fn idle(&self) -> usize {
        self.idle.load(Ordering::Relaxed)
    }

    /// How many workers there are.
    pub(super) fn workers(&self) -> usize {
        self.threads
    }

    /// How many of them are inside tasks.
    pub(super) fn busy(&self) -> usize {
        self.active.load(Ordering::Relaxed).saturating_sub(self.idle()).min(self.threads)
    }

    /// Whether a worker looks for work, apart from `stuck` ones that are counted as idle.
    pub(super) fn has_idle(&self, stuck: usize) -> bool {
        self.idle() > stuck
    }

    /// How much the PE needs work. Of its lost workers, `lost_busy` are not counted as idle.
    pub(super) fn need(&self, lost_busy: usize) -> Need {
        let active = self.active.load(Ordering::Relaxed).saturating_sub(lost_busy);
        match active.saturating_sub(self.idle.load(Ordering::Relaxed)) {
            0 => Need::Idle,
            busy if busy < self.threads => Need::Starving,
            _ => Need::Ahead,
        }
    }

    /// Runs `act` on the worker pool. Returns whether there is one: not once the PE has left.
    pub(crate) fn with_pool(&self, act: impl FnOnce(&rayon::ThreadPool)) -> bool {
        self.pool.lock().as_ref().map(act).is_some()
    }

    /// Has one of the workers run this job. Returns whether there are any: not once the PE has
    /// left.
    pub(crate) fn spawn(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.with_pool(|pool| pool.spawn(job))
    }

    /// Makes other threads the workers.
    pub(super) fn replace(&self, pool: rayon::ThreadPool) {
        if let Some(old) = &mut *self.pool.lock() {
            *old = pool;
        }
    }

    /// Ends the threads when they have nothing to do.
    pub(super) fn close(&self) {
        let pool = self.pool.lock().take();
        drop(pool);
    }
}
