//! The life of a PE: it starts, is driven by the thread that started it, and takes leave.

use super::body::{CatchPanic, panicked};
use super::context::Context;
use super::engine::JobError;
use super::processor::{Job, Processor};
use crate::error::TaskError;
use crate::protocol::Phase;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// The starting thread looks for messages so often while tasks and results come, on a lane that
/// cannot wake it or while workers are busy; then less and less often.
const POLL_INTERVAL_MIN: Duration = Duration::from_micros(50);

/// The longest it waits while the whole PE rests: half a percent of a core.
const RESTING_INTERVAL_MAX: Duration = Duration::from_millis(2);

/// How long it sleeps when nothing is due and the lane will wake it.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// How a PE left the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// All PEs took leave of each other, and all messages arrived.
    Orderly,
    /// Some PE did not answer within `shutdown_grace`: collective operations are out of the
    /// question.
    Hasty,
}

/// Runs the root PE: `main` is the job's main task, and when it ends, so does the job. Blocks
/// until all PEs have left.
pub fn lead<F, T>(job: Job, main: F) -> (Result<T::Output, JobError>, Leave)
where
    F: FnOnce(Context) -> T,
    T: std::future::Future + Send + 'static,
    T::Output: Send + 'static,
{
    let pe = match Processor::start(job) {
        Ok(pe) => pe,
        Err(error) => return (Err(error), Leave::Hasty),
    };
    let outcome = Arc::new(Mutex::new(None));
    let (result, home) = (outcome.clone(), pe.clone());
    // Nothing may keep this thread from driving the PE: the others would wait for it.
    let future = catch_unwind(AssertUnwindSafe(|| main(Context::of(&pe))));
    pe.run_async(async move {
        let ended = match future {
            Ok(future) => CatchPanic { pe: home.me(), future }.await,
            Err(payload) => Err(panicked(home.me(), payload.as_ref())),
        };
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        home.main_ended.store(true, Ordering::SeqCst);
        home.nudge();
    });
    let (failure, leave) = pe.drive();
    let ended = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let result = match (failure, ended) {
        (_, Some(Ok(value))) => Ok(value),
        (Some(failure), _) => Err(failure),
        (None, Some(Err(TaskError::Panicked { message, .. }))) => {
            Err(JobError::MainPanicked(message))
        }
        (None, _) => Err(JobError::MainPanicked("it ended without a result".to_owned())),
    };
    (result, leave)
}

/// Runs any other PE, until the root's main task has ended.
pub fn serve(job: Job) -> (Result<(), JobError>, Leave) {
    match Processor::start(job) {
        Err(error) => (Err(error), Leave::Hasty),
        Ok(pe) => {
            let (failure, leave) = pe.drive();
            (failure.map_or(Ok(()), Err), leave)
        }
    }
}

impl Processor {
    /// Looks after messages and timers until the job has ended, on the thread that started it.
    fn drive(self: &Arc<Self>) -> (Option<JobError>, Leave) {
        let mut interval = POLL_INTERVAL_MIN;
        while !self.main_ended.load(Ordering::SeqCst) && !self.is_ending() {
            let turn = self.turn(self.engine());
            let timer = self.timers.fire(Instant::now());
            if !self.queues.is_empty() {
                self.summon();
            }
            if turn.work_came {
                interval = POLL_INTERVAL_MIN;
            }
            let due = turn.due.map(|due| due.saturating_sub(self.started.elapsed()));
            let due = [due, timer].into_iter().flatten().min().unwrap_or(LONG_SLEEP);
            let busy = self.active.load(Ordering::SeqCst) > 0;
            let sleeper = self.sleeper.upgrade().filter(|sleeper| sleeper.wakes_on_traffic());
            if let (false, Some(sleeper)) = (busy, sleeper) {
                sleeper.sleep(due);
                continue;
            }
            // Busy workers take turns between tasks; this is for when their tasks are long.
            let longest = self.settings.poll_interval_max;
            let longest = if busy { longest } else { longest.min(RESTING_INTERVAL_MAX) };
            interval = (interval * 2).min(longest);
            std::thread::park_timeout(interval.min(due));
        }
        let leave = self.leave();
        (self.take_failure(), leave)
    }

    /// Takes leave of the other PEs.
    fn leave(self: &Arc<Self>) -> Leave {
        let deadline = Instant::now() + self.settings.shutdown_grace;
        if let (Pe::ROOT, Some(engine)) = (self.me(), &mut *self.engine()) {
            engine.end(self);
        }
        self.start_ending();
        let leave = loop {
            self.turn(self.engine());
            let released = self
                .engine()
                .as_mut()
                .is_none_or(|engine| engine.phase() == Phase::Released && engine.is_flushed());
            if released {
                break Leave::Orderly;
            }
            if Instant::now() >= deadline {
                break Leave::Hasty;
            }
            std::thread::park_timeout(POLL_INTERVAL_MIN);
        };
        while self.active.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            std::thread::park_timeout(POLL_INTERVAL_MIN);
        }
        if self.active.load(Ordering::SeqCst) > 0 {
            tracing::warn!(pe = self.me().number(), "tasks that still run are left behind");
        }
        self.close();
        leave
    }
}
