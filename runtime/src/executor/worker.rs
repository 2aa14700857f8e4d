//! What a worker thread does.
//!
//! A rayon thread becomes a worker by running [`work`], which returns to rayon only when nothing
//! is left to do; then rayon puts the thread to sleep, and whoever brings new work sends another
//! such job. So rayon's own jobs (`join`, `par_iter` inside tasks) run on the same threads.
//!
//! Between two tasks the worker may take a turn at the engine. A turn costs as much as a small
//! task, so it is taken about every [`TURN_EVERY`]: after each long task, but only after many
//! short ones.

use super::airlock::Visitor;
use super::processor::Processor;
use super::queues::{Queues, Work};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a worker with short tasks goes on between two turns at the engine, while messages come.
const TURN_EVERY: Duration = Duration::from_micros(4);

/// The same while none come: a turn takes 0.2 to 0.4 µs, which would be a tenth of the time.
const QUIET_TURN_EVERY: Duration = Duration::from_micros(8);

/// It looks at the clock after at most so many tasks.
const TASKS_BETWEEN_TURNS_MAX: u32 = 128;

/// A worker without work polls without a pause for so long; after that it lets other threads of
/// the machine go first between two polls.
const POLITE_AFTER: Duration = Duration::from_micros(10);

thread_local! {
    /// Whether the thread is inside [`work`].
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// Whether it is counted among the idle workers.
    static IS_IDLE: Cell<bool> = const { Cell::new(false) };
    /// How many more tasks it does before its next turn at the engine.
    static TASKS_LEFT: Cell<u32> = const { Cell::new(0) };
    /// How it came to that number.
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
}

/// Works until there is nothing left to do.
pub(super) fn work(pe: &Arc<Processor>) {
    pe.called.fetch_sub(1, Ordering::Relaxed);
    if AT_WORK.replace(true) {
        // A task of ours waits in rayon's `join`, and rayon gave us this job to pass the time. One
        // task, so that the wait does not last until the pool is empty.
        pe.active.fetch_sub(1, Ordering::SeqCst);
        if let Some(work) = pe.queues.next() {
            run(pe, work);
        }
        if !pe.queues.is_empty() {
            // For whoever relied on this job to come.
            pe.summon();
        }
        return;
    }
    loop {
        while !pe.is_ending()
            && let Some(work) = pe.queues.next()
        {
            run(pe, work);
            if breathe(pe) && pe.called.load(Ordering::Relaxed) == 0 {
                // What tasks have given to `rayon::spawn` is not to wait until our own queues are
                // empty. (Not while a job of ours lies there, meant for a worker that still has to
                // wake up.)
                rayon::yield_now();
            }
        }
        if !pe.is_ending() && look_for_work(pe) {
            continue;
        }
        // Either we see what was pushed before this, or its pusher sees that we are gone.
        pe.active.fetch_sub(1, Ordering::SeqCst);
        if pe.is_ending() || pe.queues.is_empty() || !pe.enlist() {
            break;
        }
    }
    AT_WORK.set(false);
    if pe.active.load(Ordering::SeqCst) == 0 {
        // From now on it is the driver that looks after the messages.
        pe.nudge();
    }
}

fn run(pe: &Arc<Processor>, work: Work) {
    let ran = catch_unwind(AssertUnwindSafe(|| match work {
        Work::Start(task) => task.start(pe),
        Work::Resume(runnable) => drop(runnable.run()),
    }));
    if ran.is_err() {
        // The task's own panics are caught and reported to whoever awaits it. This one came when
        // its argument or result was dropped, and has no one to be told.
        tracing::error!(pe = pe.me().number(), "a value panicked when it was dropped");
    }
}

/// What the calling thread is, on its way into the lane's library.
pub(super) fn visitor(queues: &Queues) -> Visitor {
    match (queues.is_worker(), IS_IDLE.get()) {
        (false, _) => Visitor::Driver,
        (true, false) => Visitor::Worker,
        (true, true) => Visitor::IdleWorker,
    }
}

/// Polls, hard, for as long as the setting `spin` says. Returns whether there is work again.
fn look_for_work(pe: &Arc<Processor>) -> bool {
    let mut since = Instant::now();
    loop {
        pe.idle.fetch_add(1, Ordering::Relaxed);
        IS_IDLE.set(true);
        let mut something_happened = pe.try_turn();
        IS_IDLE.set(false);
        pe.idle.fetch_sub(1, Ordering::Relaxed);
        // What rayon gives us may be long, and then this worker is not idle.
        something_happened |= rayon::yield_now() == Some(rayon::Yield::Executed);
        if !pe.queues.is_empty() {
            break true;
        }
        let now = Instant::now();
        if something_happened {
            since = now;
        }
        let idle_for = now - since;
        if pe.is_ending() || idle_for >= pe.settings.spin {
            break false;
        }
        if idle_for >= POLITE_AFTER {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Takes a turn at the engine if one is due: to be called after each task, or part of one. Whether
/// it was.
#[inline]
pub(super) fn breathe(pe: &Arc<Processor>) -> bool {
    let left = TASKS_LEFT.get();
    if left > 0 {
        TASKS_LEFT.set(left - 1);
        return false;
    }
    take_a_turn(pe);
    true
}

#[cold]
fn take_a_turn(pe: &Arc<Processor>) {
    let is_quiet = !pe.try_turn();
    let pace = PACE.take().unwrap_or_else(Pace::new).after_turn(is_quiet);
    TASKS_LEFT.set(pace.tasks_between - 1);
    PACE.set(Some(pace));
}

/// Spreads turns at the engine evenly over time.
#[derive(Clone, Copy)]
struct Pace {
    /// When the last turn was over.
    last: Instant,
    /// How long a task takes, or has taken lately.
    task: Duration,
    /// How many tasks there are from one turn to the next, at least one.
    tasks_between: u32,
    /// How long that should be.
    interval: Duration,
}

impl Pace {
    fn new() -> Self {
        Pace { last: Instant::now(), task: TURN_EVERY, tasks_between: 1, interval: TURN_EVERY }
    }

    /// As many tasks as have lately fitted into the time between two turns, which grows as long as
    /// nothing happens.
    fn after_turn(self, is_quiet: bool) -> Self {
        let interval = if is_quiet { QUIET_TURN_EVERY.min(self.interval * 2) } else { TURN_EVERY };
        let now = Instant::now();
        let took = (now - self.last) / self.tasks_between;
        // Longer ones count at once, and shorter ones only if there are several: behind a short one, which
        // only waited for a result, there may be long ones.
        let task = took.max((self.task * 3 + took) / 4).max(Duration::from_nanos(1));
        let fitting = (interval.as_nanos() / task.as_nanos()) as u32;
        let tasks_between = fitting.clamp(1, TASKS_BETWEEN_TURNS_MAX);
        Pace { last: now, task, tasks_between, interval }
    }
}
