//! The life of a PE: it starts, is driven, and takes leave.

use super::blocked::BlockedCheck;
use super::body::CatchPanic;
use super::caught::caught;
use super::context::Context;
use super::engine::Engine;
use super::failure::JobError;
use super::liveness::Liveness;
use super::processor::{Job, Processor};
use crate::error::TaskError;
use crate::settings::STRAGGLERS_MAX;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// The driver looks for messages so often while tasks and results come, on a lane that
/// cannot wake it or while workers are busy; then less and less often.
const POLL_INTERVAL_MIN: Duration = Duration::from_micros(50);

/// The longest it waits while the whole PE rests: half a percent of a core. On the root also while
/// its workers are busy, since the main task may wait for what comes.
const RESTING_INTERVAL_MAX: Duration = Duration::from_millis(2);

/// How long it sleeps when nothing is due and the lane will wake it.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// The longest that a PE waits while it takes leave, on a lane that wakes it when something comes.
const LEAVING_INTERVAL_MAX: Duration = Duration::from_millis(50);

/// After the first goodbye, `MPI_Finalize` is given this long in the other processes. It has ended
/// in all of them at about that time (with a load of 150 on each core, some seconds later); or
/// somebody has died, and went unnoticed by those who wait in it.
const GOODBYES_WITHIN: Duration = Duration::from_secs(15);

/// How a PE left the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// All PEs took leave of each other, and all messages arrived.
    Orderly,
    /// Somebody has died on the way, and the others left as soon as they could: collective
    /// operations are out of the question.
    AfterFailures,
    /// Some PE did not answer in time (`shutdown_grace`), or this one could not go on: collective
    /// operations are out of the question.
    Hasty,
}

/// What is left when a PE has left the job.
#[must_use = "the others take this PE for dead unless it says goodbye"]
pub struct Parting {
    /// How it left.
    pub leave: Leave,
    liveness: Option<Arc<Liveness>>,
}

impl Parting {
    /// Whether the others can be expected to take part in something collective, after an orderly
    /// leave: no PE is known to have died, and it is not more than 15 s ago that
    /// somebody said goodbye, which nobody does before that is done. (Of a death in the very last
    /// moment some may not hear any more.)
    pub fn are_others_there(&self) -> bool {
        self.liveness.as_ref().is_none_or(|liveness| liveness.are_others_there(GOODBYES_WITHIN))
    }

    /// Tells those who watch this PE that it leaves in order, and ends its own watch.
    pub fn goodbye(mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(true));
    }
}

/// Without a goodbye: the others are to hold this PE for dead.
impl Drop for Parting {
    fn drop(&mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(false));
    }
}

/// Runs the root PE: `main` is the job's main task, and when it ends, so does the job. Blocks
/// until all PEs have left. What was begun by then goes on until the [`Parting`]'s goodbye: this
/// PE is watched, and watches.
pub fn lead<F, T>(job: Job, main: F) -> (Result<T::Output, JobError>, Parting)
where
    F: FnOnce(Context) -> T,
    T: std::future::Future + Send + 'static,
    T::Output: Send + 'static,
{
    let pe = match Processor::start(job) {
        Ok(pe) => pe,
        Err(error) => return (Err(error), NOT_STARTED),
    };
    let outcome = Arc::new(Mutex::new(None));
    let (result, home) = (outcome.clone(), pe.clone());
    // Nothing may keep this thread from driving the PE: the others would wait for it.
    let me = pe.me();
    let future = caught(|| CatchPanic::of_main(me, main(Context::of(&pe, pe.own_origin()))));
    pe.run_main(async move {
        let ended = match future {
            Ok(future) => future.await,
            Err(message) => Err(TaskError::Panicked { pe: me, message }),
        };
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        home.main_ended.store(true, Ordering::SeqCst);
        home.nudge();
    });
    let (failure, leave) = pe.run_to_the_end();
    let ended = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let result = match (failure, ended) {
        (_, Some(Ok(value))) => Ok(value),
        (Some(failure), _) => Err(failure),
        (None, Some(Err(TaskError::Panicked { message, .. }))) => {
            Err(JobError::MainPanicked(message))
        }
        (None, _) => Err(JobError::MainPanicked("it ended without a result".to_owned())),
    };
    (result, pe.part(leave))
}

/// Runs any other PE, until the root's main task has ended.
pub fn serve(job: Job) -> (Result<(), JobError>, Parting) {
    match Processor::start(job) {
        Err(error) => (Err(error), NOT_STARTED),
        Ok(pe) => {
            let (failure, leave) = pe.run_to_the_end();
            (failure.map_or(Ok(()), Err), pe.part(leave))
        }
    }
}

const NOT_STARTED: Parting = Parting { leave: Leave::Hasty, liveness: None };

impl Processor {
    /// Whether any worker is active, apart from one that is stuck.
    fn are_working(&self) -> bool {
        self.active.load(Ordering::SeqCst) > self.mpi_gate.kept()
    }

    fn part(&self, leave: Leave) -> Parting {
        Parting { leave, liveness: Some(self.liveness.clone()) }
    }

    /// Looks after messages and timers until the job has ended, or until another driver does
    /// (`None`).
    pub(super) fn drive(self: &Arc<Self>, watch: u64) -> Option<Leave> {
        let mut interval = POLL_INTERVAL_MIN;
        let mut blocked_check = BlockedCheck::new(self.settings.threads);
        while !self.main_ended.load(Ordering::SeqCst) && !self.is_ending() {
            let turn = self.turn();
            if !self.driver.is_current(watch) {
                return None;
            }
            self.replace_stuck_worker();
            let timer = self.timers.fire(Instant::now());
            self.remind_workers();
            self.remind_standby();
            blocked_check.look(self);
            if turn.work_came || turn.is_streaming {
                interval = POLL_INTERVAL_MIN;
            }
            let due = turn.due.map(|due| due.saturating_sub(self.started.elapsed()));
            let due = [due, timer].into_iter().flatten().min().unwrap_or(LONG_SLEEP);
            if due.is_zero() {
                std::thread::yield_now();
                continue;
            }
            // Those that are called may be inside rayon, and not come at once.
            let busy = self.are_working() || !self.queues.is_empty();
            if !busy {
                self.tidy_guests();
            }
            let sleeper = self.sleeper().filter(|sleeper| sleeper.wakes_on_traffic());
            if let (false, Some(sleeper)) = (busy, sleeper) {
                sleeper.sleep(due);
                continue;
            }
            // Busy workers take turns between tasks; this is for when their tasks are long.
            let mut longest = self.settings.poll_interval_max;
            if !busy || self.me() == Pe::ROOT {
                longest = longest.min(RESTING_INTERVAL_MAX);
            }
            interval = if busy {
                (interval * 2).min(longest)
            } else {
                // What comes then waits for about an eighth of the time that it took to come.
                // (Twice as long each time took a third of the rate of large results over MPI.)
                (interval + interval / 8).min(longest)
            };
            std::thread::park_timeout(interval.min(due));
        }
        self.leave(watch)
    }

    /// Takes leave of the other PEs, unless another driver does.
    fn leave(self: &Arc<Self>, watch: u64) -> Option<Leave> {
        let deadline = Instant::now() + self.settings.shutdown_grace;
        if let (Pe::ROOT, Some(engine)) = (self.me(), &mut *self.engine()) {
            engine.end(self);
        }
        self.start_ending();
        let mut interval = POLL_INTERVAL_MIN;
        let leave = loop {
            if !self.driver.is_current(watch) {
                return None;
            }
            if self.is_deserting() {
                break Leave::AfterFailures;
            }
            let turn = self.turn();
            let released = self.engine().as_mut().is_none_or(Engine::is_released);
            let is_late = Instant::now() >= deadline;
            if (released || is_late) && self.liveness.has_failures() {
                break Leave::AfterFailures;
            }
            let is_let_go = self.engine().as_ref().is_some_and(Engine::is_let_go);
            if released {
                break if is_let_go { Leave::Hasty } else { Leave::Orderly };
            }
            if is_late {
                break Leave::Hasty;
            }
            interval = if turn.something_happened { POLL_INTERVAL_MIN } else { interval * 2 };
            let due = turn.due.map_or(interval, |due| due.saturating_sub(self.started.elapsed()));
            let sleeper = self.sleeper().filter(|sleeper| sleeper.wakes_on_traffic());
            // Thousands of PEs in one process would take all its cores with looking.
            let longest = sleeper.as_ref().map_or(RESTING_INTERVAL_MAX, |_| LEAVING_INTERVAL_MAX);
            interval = interval.min(longest);
            match sleeper {
                Some(sleeper) => sleeper.sleep(interval.min(due)),
                None => std::thread::park_timeout(interval.min(due)),
            }
        };
        // Nobody waits for what tasks that still run will say. They go with the process.
        let patience = if leave == Leave::AfterFailures { Duration::ZERO } else { STRAGGLERS_MAX };
        let deadline = deadline.min(Instant::now() + patience);
        let is_any_left = || self.are_working() || self.standby.is_at_work();
        while is_any_left() && Instant::now() < deadline {
            std::thread::park_timeout(POLL_INTERVAL_MIN);
        }
        if is_any_left() && leave != Leave::AfterFailures {
            tracing::warn!(pe = self.me().number(), "tasks that still run are left behind");
        }
        self.close();
        if leave == Leave::Orderly && !self.mpi_gate.is_empty_within(self.settings.shutdown_grace) {
            return Some(Leave::Hasty);
        }
        Some(leave)
    }
}
