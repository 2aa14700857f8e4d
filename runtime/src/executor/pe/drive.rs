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
use crate::large_blocks::give_back_unused;
use crate::os_memory::give_back_freed;
use crate::settings::STRAGGLERS_MAX;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The driver's shortest pause between two polls, while tasks and results arrive, on a lane that
/// cannot wake it or while workers are busy. Each pause is longer than the one before. Where they
/// arrive more seldom, the first pause is an eighth of the time between the last two.
const POLL_INTERVAL_MIN: Duration = Duration::from_micros(50);

/// The same while workers take turns themselves, since they look for work or their tasks are short:
/// they would wait for those of the driver, and for their core. (Two cores of a virtual machine,
/// steps of 30 µs: each time that the driver woke, a step took twice as long.)
const POLL_INTERVAL_BESIDE: Duration = Duration::from_micros(400);

/// The longest pause while the whole PE rests: half a percent of a core. On the root also while its
/// workers are busy and take no turns, since the main task may wait for a message.
const RESTING_INTERVAL_MAX: Duration = Duration::from_millis(2);

/// How long the driver sleeps when nothing is due and the lane will wake it.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// How long a job inside one process waits for its PEs once one of them has failed, which may
/// answer nothing any more.
const FAILED_GRACE: Duration = Duration::from_millis(500);

/// How long freed memory is kept by a PE that rests.
const FREED_KEPT_FOR: Duration = Duration::from_secs(2);

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
        (self.ending.failure().take(), leave)
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

    /// Whether any worker is active, apart from one that is stuck.
    fn are_working(&self) -> bool {
        self.crew.active() > self.lost_workers()
    }

    pub(crate) fn parting(&self, leave: Leave) -> Parting {
        Parting { leave, liveness: Some(self.liveness.clone()) }
    }

    /// Handles messages and timers until the job has ended, then leaves. Returns `None` if another
    /// driver has taken over.
    pub(crate) fn drive(self: &Arc<Self>, generation: u64) -> Option<Leave> {
        let mut interval = POLL_INTERVAL_MIN;
        let (mut was_busy, mut streamed_at) = (false, None);
        let (mut came_at, mut worked_at) = (Instant::now(), None);
        let mut blocked = BlockedCheck::new(self.settings.threads);
        while !self.ending.has_main_ended() && !self.is_ending() {
            let turn = self.turn();
            if !self.driver.is_current(generation) {
                return None;
            }
            self.replace_stuck_worker();
            let timer = self.kept.timers.fire(Instant::now());
            self.wake_workers_if_needed();
            self.call_standby_if_late();
            let limit = self.settings.blocked_after;
            let activities = self.queues.activities().chain(self.crew.standby.activity());
            blocked.look(limit, activities, |index, activity, waited| {
                report(self, index, activity, waited);
            });
            if turn.is_streaming {
                streamed_at = Some(Instant::now());
            }
            let are_shared = self.turns.were_shared() || self.crew.has_idle(self.lost_workers());
            if turn.work_came || turn.is_streaming {
                let shortest = if are_shared { POLL_INTERVAL_BESIDE } else { POLL_INTERVAL_MIN };
                let came_before = std::mem::replace(&mut came_at, Instant::now());
                interval = shortest.max((came_at - came_before) / 8);
            }
            let due = turn.due.map(|due| self.turns.until(due));
            // Of what the standby does no worker is busy: the driver looks at it all the same.
            let look = self.crew.standby.is_at_work().then(|| BlockedCheck::interval(limit));
            let due = [due, timer, look].into_iter().flatten().min().unwrap_or(LONG_SLEEP);
            if due.is_zero() {
                std::thread::yield_now();
                continue;
            }
            // Workers that were called may be inside rayon, and not come at once.
            let busy = self.are_working() || !self.queues.is_empty();
            if std::mem::replace(&mut was_busy, busy) && !busy {
                // While workers were busy the pauses have grown: they begin anew.
                interval = POLL_INTERVAL_MIN;
            }
            let sleeper = self.driver.sleeper().filter(|sleeper| sleeper.wakes_on_traffic());
            let is_streaming = |at: Instant| at.elapsed() < self.settings.spin;
            if !busy && sleeper.is_none() && streamed_at.is_some_and(is_streaming) {
                // Pauses cost long messages two thirds of their rate (over MPI, without single
                // copy, two PEs of a host: 1.6 GB/s instead of 4.5). No worker wants the core.
                std::thread::yield_now();
                continue;
            }
            if busy {
                worked_at = Some(Instant::now());
            } else {
                self.guests.tidy();
                give_back_unused();
                if worked_at.take_if(|at| at.elapsed() > FREED_KEPT_FOR).is_some() {
                    give_back_freed();
                }
            }
            if let (false, Some(sleeper)) = (busy, sleeper) {
                sleeper.sleep(due);
                continue;
            }
            // Busy workers take turns between tasks; this is for when their tasks are long.
            let mut longest = self.settings.poll_interval_max;
            if !busy || self.is_root() && !are_shared {
                longest = longest.min(RESTING_INTERVAL_MAX);
            }
            std::thread::park_timeout(interval.min(longest).min(due));
            // At rest a message waits for about an eighth of the time that it took to arrive. (With
            // a doubled pause each time, large results over MPI came at a third lower rate.)
            interval = (interval + if busy { interval } else { interval / 8 }).min(longest);
        }
        self.leave(generation)
    }

    /// Leaves the job, unless another driver does.
    fn leave(self: &Arc<Self>, generation: u64) -> Option<Leave> {
        let has_failed = self.ending.failure().is_some();
        let grace = self.settings.shutdown_grace;
        let grace = if has_failed && self.is_inside() { grace.min(FAILED_GRACE) } else { grace };
        let deadline = Instant::now() + grace;
        let ends_the_job = self.is_root() && !self.leaves_silently();
        if let (true, Some(engine)) = (ends_the_job, &mut *self.turns.engine()) {
            engine.end(self);
        }
        self.start_ending();
        let leave = self.take_leave(generation, deadline, has_failed)?;
        self.wait_for_stragglers(leave, deadline);
        self.close();
        let gate = &self.turns.mpi_gate;
        if leave == Leave::Orderly && !gate.ends_within(self.settings.shutdown_grace) {
            return Some(Leave::Hasty);
        }
        Some(leave)
    }

    /// Whether all PEs are inside one process, without a failure detector.
    fn is_inside(&self) -> bool {
        !self.liveness.has_detector()
    }

    /// Whether this PE leaves without telling the others. Without a detector, only the root can
    /// tell them that it has failed.
    fn leaves_silently(&self) -> bool {
        let failure = self.ending.failure();
        failure.as_ref().is_some_and(JobError::leaves_silently)
            && !(self.is_inside() && self.is_root())
    }

    /// Takes turns until this PE may leave, or until the deadline. Returns `None` if another driver
    /// has taken over.
    fn take_leave(
        self: &Arc<Self>,
        generation: u64,
        deadline: Instant,
        has_failed: bool,
    ) -> Option<Leave> {
        let mut interval = POLL_INTERVAL_MIN;
        loop {
            if !self.driver.is_current(generation) {
                return None;
            }
            if self.leaves_silently() {
                return Some(Leave::AfterFailures);
            }
            let turn = self.turn();
            let may = |engine: &mut Engine<Self>| (engine.may_leave(), engine.leaves_unanswered());
            let (may_leave, is_unanswered) =
                self.turns.engine().as_mut().map_or((true, false), may);
            let is_late = Instant::now() >= deadline;
            if (may_leave || is_late) && self.liveness.has_failures() {
                return Some(Leave::AfterFailures);
            }
            if may_leave && !is_unanswered {
                return Some(Leave::Orderly);
            }
            if is_late && !has_failed {
                let silent = self.turns.engine().as_ref().map(Engine::unanswered);
                let (pe, grace) = (self.me().number(), self.settings.shutdown_grace);
                tracing::warn!(pe, ?silent, "the job ends, but not all PEs have within {grace:?}");
            }
            if may_leave || is_late {
                return Some(Leave::Hasty);
            }
            interval = if turn.something_happened { POLL_INTERVAL_MIN } else { interval * 2 };
            let due = turn.due.map_or(interval, |due| self.turns.until(due));
            // A lane that has failed lets no thread sleep.
            let sleeper = self.driver.sleeper();
            let sleeper = sleeper.filter(|lane| !has_failed && lane.wakes_on_traffic());
            // Thousands of PEs in one process would take all its cores with polling.
            let longest = sleeper.as_ref().map_or(RESTING_INTERVAL_MAX, |_| LEAVING_INTERVAL_MAX);
            interval = interval.min(longest);
            match sleeper {
                Some(sleeper) => sleeper.sleep(interval.min(due)),
                None => std::thread::park_timeout(interval.min(due)),
            }
        }
    }

    /// Waits for tasks that still run, for a while. No one waits for the messages of those that are
    /// left: they end with the process.
    fn wait_for_stragglers(&self, leave: Leave, deadline: Instant) {
        let patience = if leave == Leave::AfterFailures { Duration::ZERO } else { STRAGGLERS_MAX };
        let deadline = deadline.min(Instant::now() + patience);
        let is_any_left = || self.are_working() || self.crew.standby.is_at_work();
        while is_any_left() && Instant::now() < deadline {
            std::thread::park_timeout(POLL_INTERVAL_MIN);
        }
        if is_any_left() && leave != Leave::AfterFailures {
            tracing::warn!(pe = self.me().number(), "tasks that still run are left behind");
        }
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
        if self.turns.mpi_gate.has_pump() {
            self.turns.mpi_gate.seal();
            self.change_driver();
        }
    }

    /// Replaces the workers if one of them is inside a call and is not expected back.
    pub(crate) fn replace_stuck_worker(&self) {
        if !self.turns.mpi_gate.give_up_worker() {
            return;
        }
        if self.turns.mpi_gate.has_lost_task() {
            return self.fail(JobError::Stuck { me: self.me() });
        }
        tracing::warn!(pe = self.me().number(), "a call into MPI does not return: left behind");
        let seats = self.queues.clone();
        let (me, threads) = (self.me(), self.settings.threads);
        match workers(me, threads, "substitute", Box::new(move |_| seats.seat_substitute())) {
            // The other workers of the old pool end when they have nothing to do.
            Ok(workers) => self.crew.replace(workers),
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
