//! What a worker thread does.
//!
//! A rayon thread becomes a worker by running [`work`], which returns to rayon when nothing is left
//! to do. Then rayon puts the thread to sleep; a thread that brings new work sends another such
//! job. So rayon's own jobs (`join`, `par_iter` inside tasks) run on the same threads.
//!
//! Between two tasks the worker may take a turn at the engine. A turn costs as much as a small
//! task, so one is taken about every [`TURN_EVERY`]: after each long task, but only after many
//! short ones.

use super::crew::is_idle;
use super::processor::{Processor, Task};
use crate::executor::engine::mpi_gate::Caller;
use crate::executor::schedule::nesting::is_nested;
use crate::executor::schedule::queues::{Ready, Work};
use crate::executor::schedule::standby::not_urgently;
use crate::executor::task::activity::{current_function, enter_function};
use crate::executor::task::caught::discard_with;
use crate::executor::task::future::not_stopping;
use crate::executor::task::travel::not_travelling;
use crate::forked::end_if_forked;
use crate::trace;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two turns of a worker with short tasks, while messages arrive.
const TURN_EVERY: Duration = Duration::from_micros(4);

/// The same while none arrive: a turn takes 0.2 to 0.4 µs, which would be a tenth of the time.
const QUIET_TURN_EVERY: Duration = Duration::from_micros(16);

/// It takes at least this many times as long as a turn in which nothing arrives...
const QUIET_TURN_FACTOR: u32 = 8;

/// ... but no longer than this. MPI may give the core away in each turn, to other processes that
/// compute: then turns at every 16 µs take a third of the time.
const TURN_EVERY_MAX: Duration = Duration::from_millis(1);

/// To hand a task to another PE of the host, and to get its result, takes longer than this.
const SHORT_TASK: Duration = Duration::from_nanos(500);

/// A worker looks at the clock after this number of tasks at the latest.
const TASKS_BETWEEN_TURNS_MAX: u32 = 4096;

/// A worker without work polls without a pause for this long. After that it lets other threads of
/// the machine go first between two polls.
const POLITE_AFTER: Duration = Duration::from_micros(10);

/// A worker that places tasks on other PEs takes a turn at the engine after this number of them.
const PLACED_BETWEEN_TURNS: u32 = 256;

thread_local! {
    /// Whether the thread is inside [`work_on`].
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// Whether it is between two tasks, and lets rayon run a job.
    static IS_YIELDING: Cell<bool> = const { Cell::new(false) };
    /// Whether it was called meanwhile, and declined.
    static HAS_DECLINED: Cell<bool> = const { Cell::new(false) };
    /// Whether it resumes a task while another one waits for it.
    static IS_HELPING: Cell<bool> = const { Cell::new(false) };
    /// The number of tasks it has placed elsewhere since its last turn for that reason.
    static PLACED: Cell<u32> = const { Cell::new(0) };
    /// The number of tasks until its next turn at the engine.
    static TASKS_LEFT: Cell<u32> = const { Cell::new(0) };
    /// How that number was computed.
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
    /// See [`has_short_tasks`].
    static HAS_SHORT_TASKS: Cell<bool> = const { Cell::new(false) };
}

/// Works until there is nothing left to do.
pub(crate) fn work(pe: &Arc<Processor>) {
    let is_inside = is_nested();
    pe.crew.answer_call();
    if is_inside || AT_WORK.get() {
        pe.crew.rest();
        decline_call(pe);
    } else {
        work_on(pe);
    }
}

/// The same for a call to all workers: only an idle one comes.
pub(crate) fn work_if_idle(pe: &Arc<Processor>) {
    let is_inside = is_nested();
    pe.crew.answer_call_to_all();
    if is_inside || AT_WORK.get() {
        pe.crew.decline();
    } else if !pe.is_ending() && !pe.queues.is_empty() && pe.try_add_active() {
        work_on(pe);
    }
}

/// The same for a worker that may only wait for another: it resumes a task that can go on.
pub(crate) fn help(pe: &Arc<Processor>) {
    let is_inside = is_nested();
    pe.crew.answer_call_for_help();
    if is_inside || AT_WORK.get() {
        resume_one(pe);
    } else if !pe.is_ending() && !pe.queues.is_empty() && pe.try_add_active() {
        work_on(pe);
    }
}

/// What a worker does while it waits for a result, in rayon's `join` for example. It starts no
/// task, since the result would have to wait for the task's end. It does resume a task: that may be
/// the main task. But it resumes only one at a time, or such waits would pile up. Returns false if
/// it is inside another such wait.
fn resume_one(pe: &Arc<Processor>) -> bool {
    let is_first = !IS_HELPING.replace(true);
    if is_first {
        if let Some(work) = pe.queues.next_to_resume() {
            let function = enter_function(None);
            // What the thread has noted of the task that waits does not hold for this one.
            not_stopping(|| not_travelling(|| not_urgently(|| run(pe, work))));
            enter_function(function);
        }
        IS_HELPING.set(false);
    }
    is_first
}

/// What a called worker does that cannot come.
fn decline_call(pe: &Arc<Processor>) {
    if IS_YIELDING.get() {
        // Mostly it looks for work, and will pass the call on. But the job that rayon gave it may
        // be long.
        if HAS_DECLINED.replace(true) {
            pe.crew.decline();
            resume_one(pe);
        }
        return;
    }
    if resume_one(pe) && pe.queues.can_resume() {
        pe.wake_worker();
        return;
    }
    if pe.queues.is_empty() {
        return;
    }
    // Rayon has called a worker that cannot come, while others may sleep. All are called at once,
    // if such a call is not under way already; otherwise the driver calls them in a while.
    if pe.crew.is_calling_all() {
        pe.crew.decline();
    } else {
        pe.wake_all_workers();
    }
    if pe.crew.active() == 0 {
        pe.nudge();
    }
}

/// Lets rayon run a user's job, if there is one. It begins now, or, if that is `None`, when the
/// last task here ended. Returns whether it ran one, or a call of ours.
fn yield_to_rayon(pe: &Arc<Processor>, now: Option<Instant>) -> bool {
    enter_function(None);
    let was_yielding = IS_YIELDING.replace(true);
    let mut has_run = false;
    trace::note_rayon(now, || {
        has_run = rayon::yield_now() == Some(rayon::Yield::Executed);
        has_run && !HAS_DECLINED.get()
    });
    IS_YIELDING.set(was_yielding);
    if HAS_DECLINED.take() && !pe.queues.is_empty() {
        pe.wake_worker();
    }
    has_run
}

/// Works until nothing is left, as an active worker.
fn work_on(pe: &Arc<Processor>) {
    AT_WORK.set(true);
    loop {
        while !pe.is_ending()
            && let Some(work) = pe.queues.next()
        {
            run(pe, work);
            if turn_between_tasks_if_due(pe) && !pe.crew.is_calling() {
                // Jobs that tasks gave to `rayon::spawn` must not wait until our own queues are
                // empty. (Not while a job of ours lies there, meant for a worker that still has to
                // wake up.)
                yield_to_rayon(pe, None);
            }
        }
        if !pe.is_ending() && look_for_work(pe) {
            continue;
        }
        // Either this worker sees a task pushed before this, or the thread that pushed it sees that
        // the worker is gone.
        pe.crew.rest();
        if pe.is_ending() || pe.queues.is_empty() || !pe.try_add_active() {
            break;
        }
    }
    AT_WORK.set(false);
    if pe.crew.active() == 0 {
        // From now on the driver handles the messages.
        pe.nudge();
    }
}

fn run(pe: &Arc<Processor>, work: Work<Task>) {
    let begun = trace::begin_run();
    // The task's own panics are caught, and end its future. This is for what is dropped after that.
    discard_with(|| match work {
        Work::Start(task) => task.start(pe),
        Work::Resume(Ready::Task(runnable)) => drop(runnable.run()),
        Work::Resume(Ready::Main) => pe.run_announced_main(),
    });
    end_if_forked();
    if let Some(begun) = begun {
        trace::note_run(current_function(), begun);
    }
}

/// The kind of the calling thread, on its way into MPI.
pub(crate) fn caller(pe: &Processor) -> Caller {
    match (pe.queues.is_worker(), is_idle()) {
        (false, _) => Caller::Driver,
        (true, false) => Caller::Worker,
        (true, true) => Caller::IdleWorker,
    }
}

/// Polls without sleeping for as long as the setting `spin` says. Returns whether there is work
/// again.
fn look_for_work(pe: &Arc<Processor>) -> bool {
    let begun = trace::begin_run();
    let mut since = Instant::now();
    let (mut now, mut quiet) = (since, None);
    let has_found = loop {
        let mut something_happened = pe.crew.while_idle(|| pe.try_idle_turn(&mut quiet, now));
        // A job that rayon gives us may be long, and then this worker is not idle.
        if !pe.queues.is_empty() {
            break true;
        }
        something_happened |= yield_to_rayon(pe, Some(now));
        if !pe.queues.is_empty() {
            break true;
        }
        now = Instant::now();
        if something_happened {
            since = now;
        }
        let idle_for = now - since;
        if pe.is_ending() || idle_for >= pe.settings.spin && !pe.turns.are_expecting(now) {
            break false;
        }
        if idle_for >= POLITE_AFTER {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    };
    trace::note_search(begun);
    has_found
}

/// Takes a turn at the engine if one is due. Called after each part of a task. Returns whether one
/// was due.
#[inline]
pub(crate) fn turn_if_due(pe: &Arc<Processor>) -> bool {
    let is_due = is_turn_due();
    if is_due {
        take_due_turn(pe);
    }
    is_due
}

/// The same after each task.
#[inline]
fn turn_between_tasks_if_due(pe: &Arc<Processor>) -> bool {
    let is_due = is_turn_due();
    if is_due {
        take_due_turn_between_tasks(pe);
    }
    is_due
}

#[inline]
fn is_turn_due() -> bool {
    let left = TASKS_LEFT.get();
    TASKS_LEFT.set(left.saturating_sub(1));
    left == 0
}

#[cold]
fn take_due_turn_between_tasks(pe: &Arc<Processor>) {
    HAS_SHORT_TASKS.set(PACE.get().is_some_and(|pace| pace.task < SHORT_TASK));
    take_due_turn(pe);
    HAS_SHORT_TASKS.set(false);
}

/// Whether the calling worker takes a turn between two of its tasks, which have lately been shorter
/// than [`SHORT_TASK`]. (Empty tasks: 6.6 million a second, 4.9 million if they are posted.)
pub(crate) fn has_short_tasks() -> bool {
    HAS_SHORT_TASKS.get()
}

/// Sends what the calling thread has left for that.
pub(crate) fn send_now(pe: &Arc<Processor>) {
    if pe.queues.is_worker() {
        pe.send_amid_task();
    } else {
        pe.nudge();
    }
}

/// After what the calling worker does now, no turn is due.
pub(crate) fn leave_out_turn() {
    TASKS_LEFT.set(TASKS_LEFT.get() + 1);
}

/// Takes a turn at the engine now and then while the calling worker places tasks elsewhere. So they
/// leave while there are more to come, and while their bytes are still in the cache.
pub(crate) fn turn_while_placing(pe: &Arc<Processor>) {
    let placed = PLACED.get() + 1;
    PLACED.set(placed % PLACED_BETWEEN_TURNS);
    if placed == PLACED_BETWEEN_TURNS && pe.queues.is_worker() {
        pe.try_turn_amid_task();
    }
}

#[cold]
fn take_due_turn(pe: &Arc<Processor>) {
    let begun = Instant::now();
    let is_quiet = if pe.queues.is_worker() {
        !pe.try_turn()
    } else {
        // The main task runs on a thread beside the workers. An MPI call that does not return must
        // not keep it, so the driver takes the turn.
        pe.nudge();
        true
    };
    let pace = PACE.take().unwrap_or_else(Pace::new);
    let pace = pace.after_turn(begun, Instant::now(), is_quiet);
    TASKS_LEFT.set(pace.tasks_between - 1);
    PACE.set(Some(pace));
}

/// Spreads turns at the engine evenly over time.
#[derive(Clone, Copy)]
struct Pace {
    /// When the last turn ended.
    last: Instant,
    /// How long a task has taken lately.
    task: Duration,
    /// The number of tasks from one turn to the next, at least one.
    tasks_between: u32,
    /// The time that should take.
    interval: Duration,
}

impl Pace {
    fn new() -> Self {
        Pace { last: Instant::now(), task: TURN_EVERY, tasks_between: 1, interval: TURN_EVERY }
    }

    /// Plans the next turn after as many tasks as have lately fitted into the interval, which grows
    /// while nothing happens. The turn itself, which has begun and ended then, is no part of the
    /// tasks' time: where MPI gives the core away, tasks of 0.3 µs would seem to take as long as it
    /// does.
    fn after_turn(self, begun: Instant, ended: Instant, is_quiet: bool) -> Self {
        let interval = if is_quiet {
            let from_turn = ((ended - begun) * QUIET_TURN_FACTOR).min(TURN_EVERY_MAX);
            QUIET_TURN_EVERY.min(self.interval * 2).max(from_turn)
        } else {
            TURN_EVERY
        };
        let took = (begun - self.last) / self.tasks_between;
        // Longer tasks count at once, shorter ones only if there are several: behind a short one,
        // which only waited for a result, there may be long ones.
        let task = took.max((self.task * 3 + took) / 4).max(Duration::from_nanos(1));
        let fitting = (interval.as_nanos() / task.as_nanos()) as u32;
        let tasks_between = fitting.clamp(1, TASKS_BETWEEN_TURNS_MAX);
        Pace { last: ended, task, tasks_between, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks of 1 µs, and turns that take as long as given: how many tasks come between two.
    fn tasks_between_turns_of(turn: Duration, is_quiet: bool) -> u32 {
        let mut pace = Pace::new();
        for _ in 0..100 {
            let begun = pace.last + pace.tasks_between * Duration::from_micros(1);
            pace = pace.after_turn(begun, begun + turn, is_quiet);
        }
        pace.tasks_between
    }

    #[test]
    fn turns_that_find_nothing_take_a_ninth_of_the_time_at_most() {
        let micros = Duration::from_micros;
        assert_eq!(tasks_between_turns_of(micros(1), false), 4);
        assert_eq!(tasks_between_turns_of(micros(1), true), 16);
        assert_eq!(tasks_between_turns_of(micros(20), false), 4);
        assert_eq!(tasks_between_turns_of(micros(20), true), 160);
        assert_eq!(tasks_between_turns_of(micros(1000), true), 1000);
        assert_eq!(tasks_between_turns_of(micros(10_000), true), 1000);
    }
}
