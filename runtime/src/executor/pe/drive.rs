//! The driver's loop: it drives the PE until the job has ended, and then leaves.

use super::leave::{Leave, Parting};
use super::processor::Processor;
use crate::executor::engine::failure::JobError;
use crate::executor::engine::liveness::{DetectorStart, EventHandler};
use crate::executor::engine::turn::Engine;
use crate::executor::schedule::blocked::BlockedCheck;
use crate::executor::schedule::threads::STACK_BYTES;
use crate::executor::schedule::threads::workers;
use crate::executor::task::activity::{Activity, MAIN_TASK};
use crate::executor::task::caught::caught_own;
use crate::settings::STRAGGLERS_MAX;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The driver's shortest pause between two polls, while tasks and results arrive, on a lane that
/// cannot wake it or while workers are busy. The pause then grows.
const POLL_INTERVAL_MIN: Duration = Duration::from_micros(50);

/// The longest pause while the whole PE rests: half a percent of a core. On the root also while its
/// workers are busy, since the main task may wait for a message.
const RESTING_INTERVAL_MAX: Duration = Duration::from_millis(2);

/// How long the driver sleeps when nothing is due and the lane will wake it.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// How long a job inside one process waits for its PEs once one of them has failed, which may
/// answer nothing any more.
const FAILED_GRACE: Duration = Duration::from_millis(500);

/// The longest pause of a PE that leaves, on a lane that wakes it when something arrives.
const LEAVING_INTERVAL_MAX: Duration = Duration::from_millis(50);

impl Processor {
    /// Has a thread drive this PE, and waits until the PE has left. Returns the error that ended
    /// it, if any, and how it left.
    pub(crate) fn run_to_the_end(self: &Arc<Self>) -> (Option<JobError>, Leave) {
        self.change_driver();
        self.wait_for_end()
    }

    /// Waits until the PE has left. Returns the error that ended it, if any, and how it left.
    pub(crate) fn wait_for_end(&self) -> (Option<JobError>, Leave) {
        let leave = self.driver.wait_for_end();
        (self.take_failure(), leave)
    }

    /// Has another thread drive this PE. If there can be none, the PE leaves.
    fn change_driver(self: &Arc<Self>) {
        if let Err(error) = self.start_driver() {
            self.fail(error);
            self.driver.end(Leave::Hasty);
        }
    }

    /// Starts a new driver, in place of the old one if there is one.
    pub(crate) fn start_driver(self: &Arc<Self>) -> Result<(), JobError> {
        let pe = self.clone();
        let started = self.driver.replace(|generation| {
            let name = format!("pe{}-driver", pe.me().number());
            let drive = move || {
                // Nothing else would notice a panic, and the starting thread would wait for ever.
                let left = caught_own(|| pe.drive(generation)).unwrap_or_else(|message| {
                    pe.fail(JobError::DriverPanicked { me: pe.me(), message });
                    Some(Leave::Hasty)
                });
                if let Some(leave) = left {
                    pe.driver.end(leave);
                }
            };
            // Results are decoded here, and may be as large inline as arguments.
            let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES);
            let thread = thread.spawn(drive)?;
            Ok::<_, std::io::Error>(thread.thread().clone())
        });
        started.map_err(|error| JobError::Threads { me: self.me(), reason: error.to_string() })
    }

    /// Whether this PE runs the main task.
    fn is_root(&self) -> bool {
        self.me() == self.liveness.root()
    }

    /// Whether any worker is active, apart from one that is stuck.
    fn are_working(&self) -> bool {
        self.active.load(Ordering::SeqCst) > self.mpi_gate.lost_workers()
    }

    pub(crate) fn parting(&self, leave: Leave) -> Parting {
        Parting { leave, liveness: Some(self.liveness.clone()) }
    }

    /// Handles messages and timers until the job has ended, then leaves. Returns `None` if another
    /// driver has taken over.
    pub(crate) fn drive(self: &Arc<Self>, generation: u64) -> Option<Leave> {
        let mut interval = POLL_INTERVAL_MIN;
        let mut was_busy = false;
        let mut blocked = BlockedCheck::new(self.settings.threads);
        while !self.main_ended.load(Ordering::SeqCst) && !self.is_ending() {
            let turn = self.turn();
            if !self.driver.is_current(generation) {
                return None;
            }
            self.replace_stuck_worker();
            let timer = self.timers.fire(Instant::now());
            self.wake_workers_if_needed();
            self.call_standby_if_late();
            let limit = self.settings.blocked_after;
            let activities = self.queues.activities().chain(self.standby.activity());
            blocked.look(limit, activities, |index, activity, waited| {
                report(self, index, activity, waited);
            });
            if turn.work_came || turn.is_streaming {
                interval = POLL_INTERVAL_MIN;
            }
            let due = turn.due.map(|due| due.saturating_sub(self.started.elapsed()));
            // Of what the standby does no worker is busy: the driver looks at it all the same.
            let look = self.standby.is_at_work().then(|| BlockedCheck::interval(limit));
            let due = [due, timer, look].into_iter().flatten().min().unwrap_or(LONG_SLEEP);
            if due.is_zero() {
                std::thread::yield_now();
                continue;
            }
            // Workers that were called may be inside rayon, and not come at once.
            let busy = self.are_working() || !self.queues.is_empty();
            if !busy {
                self.tidy_guests();
            }
            if std::mem::replace(&mut was_busy, busy) && !busy {
                // While workers were busy the pauses have grown: they begin anew.
                interval = POLL_INTERVAL_MIN;
            }
            let sleeper = self.sleeper().filter(|sleeper| sleeper.wakes_on_traffic());
            if let (false, Some(sleeper)) = (busy, sleeper) {
                sleeper.sleep(due);
                continue;
            }
            // Busy workers take turns between tasks; this is for when their tasks are long.
            let mut longest = self.settings.poll_interval_max;
            if !busy || self.is_root() {
                longest = longest.min(RESTING_INTERVAL_MAX);
            }
            interval = if busy {
                (interval * 2).min(longest)
            } else {
                // A message then waits for about an eighth of the time that it took to arrive.
                // (With a doubled pause each time, large results over MPI came at a third lower
                // rate.)
                (interval + interval / 8).min(longest)
            };
            std::thread::park_timeout(interval.min(due));
        }
        self.leave(generation)
    }

    /// Leaves the job, unless another driver does.
    fn leave(self: &Arc<Self>, generation: u64) -> Option<Leave> {
        // Without a detector, only the root can tell the others that it has failed.
        let is_inside = !self.liveness.has_detector();
        let leaves_silently = || self.leaves_silently() && !(is_inside && self.is_root());
        let has_failed = self.has_failed();
        let grace = self.settings.shutdown_grace;
        let grace = if has_failed && is_inside { grace.min(FAILED_GRACE) } else { grace };
        let deadline = Instant::now() + grace;
        let ends_the_job = self.is_root() && !leaves_silently();
        if let (true, Some(engine)) = (ends_the_job, &mut *self.engine()) {
            engine.end(self);
        }
        self.start_ending();
        let mut interval = POLL_INTERVAL_MIN;
        let leave = loop {
            if !self.driver.is_current(generation) {
                return None;
            }
            if leaves_silently() {
                break Leave::AfterFailures;
            }
            let turn = self.turn();
            let may_leave = self.engine().as_mut().is_none_or(Engine::may_leave);
            let is_late = Instant::now() >= deadline;
            if (may_leave || is_late) && self.liveness.has_failures() {
                break Leave::AfterFailures;
            }
            let leaves_unanswered = self.engine().as_ref().is_some_and(Engine::leaves_unanswered);
            if may_leave {
                break if leaves_unanswered { Leave::Hasty } else { Leave::Orderly };
            }
            if is_late {
                break Leave::Hasty;
            }
            interval = if turn.something_happened { POLL_INTERVAL_MIN } else { interval * 2 };
            let due = turn.due.map_or(interval, |due| due.saturating_sub(self.started.elapsed()));
            // A lane that has failed lets no thread sleep.
            let sleeper = self.sleeper().filter(|lane| !has_failed && lane.wakes_on_traffic());
            // Thousands of PEs in one process would take all its cores with polling.
            let longest = sleeper.as_ref().map_or(RESTING_INTERVAL_MAX, |_| LEAVING_INTERVAL_MAX);
            interval = interval.min(longest);
            match sleeper {
                Some(sleeper) => sleeper.sleep(interval.min(due)),
                None => std::thread::park_timeout(interval.min(due)),
            }
        };
        // No one waits for the messages of tasks that still run. These end with the process.
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
        if leave == Leave::Orderly && !self.mpi_gate.ends_within(self.settings.shutdown_grace) {
            return Some(Leave::Hasty);
        }
        Some(leave)
    }

    /// Starts the failure detector.
    pub(crate) fn start_detector(
        self: &Arc<Self>,
        begin: impl FnOnce(EventHandler) -> DetectorStart,
    ) -> Result<(), JobError> {
        let (pe, liveness) = (Arc::downgrade(self), self.liveness.clone());
        let report = move |event| {
            let is_first = liveness.note(event);
            if let Some(pe) = pe.upgrade() {
                if is_first {
                    pe.abandon_mpi();
                }
                pe.nudge();
            }
        };
        let detector = begin(Box::new(report));
        let detector = detector.map_err(|source| JobError::Detector { me: self.me(), source })?;
        self.liveness.set_detector(detector);
        Ok(())
    }

    /// A PE has died. The thread that drives this PE may be inside a call that will not return, so
    /// another takes over.
    pub(crate) fn abandon_mpi(self: &Arc<Self>) {
        if self.mpi_gate.has_pump() {
            self.mpi_gate.seal();
            self.change_driver();
        }
    }

    /// Replaces the workers if one of them is inside a call and is not expected back.
    pub(crate) fn replace_stuck_worker(&self) {
        if !self.mpi_gate.give_up_worker() {
            return;
        }
        tracing::warn!(pe = self.me().number(), "a call into MPI does not return: left behind");
        let seats = self.queues.clone();
        let (me, threads) = (self.me(), self.settings.threads);
        match workers(me, threads, "substitute", Box::new(move |_| seats.seat_substitute())) {
            // The other workers of the old pool end when they have nothing to do.
            Ok(workers) => self.replace_workers(workers),
            Err(error) => tracing::error!(pe = me.number(), "{error}"),
        }
    }
}

/// What a task is called of whose function the compiler says this. (The future of an asynchronous
/// function is a closure of that.)
fn called(function: &str) -> String {
    let place = function.trim_end_matches("::{{closure}}");
    match function.len() - place.len() {
        _ if function == MAIN_TASK => MAIN_TASK.to_owned(),
        closures if closures > "::{{closure}}".len() => format!("the task of a closure in {place}"),
        _ => format!("the task {place}"),
    }
}

fn report(pe: &Processor, index: usize, activity: &Activity, waited: Duration) {
    let is_worker = index < pe.settings.threads;
    let thread = if is_worker { format!("worker {index}") } else { "the standby".to_owned() };
    let me = pe.me();
    let host = pe.topology.place(me).host().unwrap_or("its host");
    let name = activity.function.get().map_or_else(|| "a task".into(), |name| called(name()));
    tracing::warn!(
        pe = me.number(),
        "{thread} on {host}: {name} has blocked its thread for {} s, and computes \
         nothing: no other task can run there. Have it await what it waits for (`cx.sleep`, a \
         task's future, a channel of the `futures` crate), and leave calls that wait to a \
         `std::thread`",
        waited.as_secs()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_called_by_their_functions() {
        assert_eq!(called(MAIN_TASK), "the main task");
        assert_eq!(called("a::b"), "the task a::b");
        assert_eq!(called("a::b::{{closure}}"), "the task a::b");
        assert_eq!(called("a::b::{{closure}}::{{closure}}"), "the task of a closure in a::b");
    }
}
