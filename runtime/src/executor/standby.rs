//! What must not wait until a worker is free: the root's main task, and messages.
//!
//! Workers do these first of all, between two tasks. If all of them are inside long ones, a thread
//! of its own stands in. It is started when it is first needed, and sleeps while it is not.

use super::caught::discard_with;
use super::packing::{Effort, Packed};
use super::processor::Processor;
use super::queues::Ready;
use super::task::Start;
use super::worker::STACK_BYTES;
use crate::code::Name;
use async_task::Runnable;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread, and what it stands in for.
#[derive(Default)]
pub(super) struct Standby {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The main task, if it can go on and no thread runs it.
    main: Option<Runnable>,
    /// Whether a [`Ready::Main`] is in a queue.
    is_main_announced: bool,
    /// Since when the driver has seen something wait each time that it looked.
    waiting_since: Option<Instant>,
    has_thread: bool,
    stage: Stage,
}

/// What the thread does, if it is there.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Sleeps,
    /// It has been called, and comes.
    IsCalled,
    IsAtWork,
    /// It goes for good: the PE has left.
    IsClosed,
}

/// The driver calls the thread when something has waited for this long. Mostly a worker comes to it
/// within microseconds.
const LATE_AFTER: Duration = Duration::from_millis(1);

thread_local! {
    static IS_STANDBY: Cell<bool> = const { Cell::new(false) };
    static IS_URGENT: Cell<bool> = const { Cell::new(false) };
}

/// Does something that must not wait for a worker. What it begins and what then waits for something
/// must not either.
pub(super) fn urgently<R>(act: impl FnOnce() -> R) -> R {
    let was_urgent = IS_URGENT.replace(true);
    let result = act();
    IS_URGENT.set(was_urgent);
    result
}

/// Whether the caller does something urgent.
pub(super) fn is_urgent() -> bool {
    IS_URGENT.get()
}

/// A task that must not wait for a worker.
pub(super) struct Urgent(pub(super) Arc<dyn Start>);

impl Start for Urgent {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.uncounted.fetch_add(1, Ordering::SeqCst);
        urgently(|| discard_with(|| self.0.clone().start(pe)));
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed> {
        unreachable!("it was placed here, and stands on no shelf")
    }

    fn call_off(&self) {
        self.0.call_off();
    }

    fn function(&self) -> Option<Name> {
        self.0.function()
    }
}

/// The same that has waited for something and can go on.
struct GoesOn(Mutex<Option<Runnable>>);

impl Start for GoesOn {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.uncounted.fetch_add(1, Ordering::SeqCst);
        let runnable = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        urgently(|| runnable.into_iter().for_each(run));
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed> {
        unreachable!("it was placed here, and stands on no shelf")
    }

    fn call_off(&self) {}
}

/// Whether the calling thread is the one that stands in.
pub(super) fn is_standby() -> bool {
    IS_STANDBY.get()
}

impl Standby {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code of the user's runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the thread is doing something.
    pub(super) fn is_at_work(&self) -> bool {
        matches!(self.state().stage, Stage::IsCalled | Stage::IsAtWork)
    }

    /// Ends the thread, and drops the main task if it waits.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.stage = Stage::IsClosed;
        let main = state.main.take();
        drop(state);
        self.changed.notify_all();
        discard_with(|| drop(main));
    }

    fn take_main(&self) -> Option<Runnable> {
        self.state().main.take()
    }

    /// Waits until the thread is called. Not so if that is for it to end.
    fn is_called(&self) -> bool {
        let mut state = self.state();
        if state.stage == Stage::IsAtWork {
            state.stage = Stage::Sleeps;
        }
        while state.stage == Stage::Sleeps {
            // Until the PE is closed, which every job is.
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stage == Stage::IsClosed {
            return false;
        }
        state.stage = Stage::IsAtWork;
        true
    }
}

impl Processor {
    /// Runs a future as the main task.
    pub(super) fn run_main<T>(self: &Arc<Self>, future: T)
    where
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        let pe = self.clone();
        let schedule = move |runnable| pe.resume_main(runnable);
        let (runnable, task) = async_task::spawn(future, schedule);
        task.detach();
        self.resume_main(runnable);
    }

    fn resume_main(self: &Arc<Self>, runnable: Runnable) {
        let mut state = self.standby.state();
        if state.stage == Stage::IsClosed {
            // After the lock: this drops the main task.
            drop(state);
            return;
        }
        state.main = Some(runnable);
        state.waiting_since = None;
        let was_announced = std::mem::replace(&mut state.is_main_announced, true);
        drop(state);
        if !was_announced {
            self.queues.push_ready(Ready::Main);
        }
        if !self.is_ending() && !self.summon() && !self.queues.is_worker() {
            self.call_standby();
        }
    }

    /// Has something urgent go on.
    pub(super) fn resume_first(self: &Arc<Self>, runnable: Runnable) {
        if self.is_closed() {
            return;
        }
        self.queues.place_first(Arc::new(GoesOn(Mutex::new(Some(runnable)))));
        if !self.is_ending() && !self.summon() {
            // The driver calls the standby if no worker comes to it.
            self.nudge();
        }
    }

    /// Runs the main task on a worker that has found it in its queue, unless it has run meanwhile.
    pub(super) fn run_announced_main(&self) {
        let mut state = self.standby.state();
        state.is_main_announced = false;
        let main = state.main.take();
        drop(state);
        main.into_iter().for_each(run);
    }

    /// Sees to it now and then that nothing urgent waits for the end of a long task.
    pub(super) fn remind_standby(self: &Arc<Self>) {
        let mut state = self.standby.state();
        let is_waiting = state.main.is_some() || self.queues.has_urgent();
        let now = Instant::now();
        let since = is_waiting.then(|| state.waiting_since.unwrap_or(now));
        state.waiting_since = since;
        drop(state);
        let is_late = since.is_some_and(|since| now - since >= LATE_AFTER);
        if is_late {
            self.call_standby();
        }
    }

    /// Calls the thread, unless some worker has nothing else to do.
    fn call_standby(self: &Arc<Self>) {
        // One that is stuck in the lane is counted as idle for good.
        let stuck = self.mpi_gate.kept() - self.mpi_gate.kept_busy();
        if self.idle.load(Ordering::Relaxed) > stuck {
            return;
        }
        let mut state = self.standby.state();
        match state.stage {
            // It looks again before it sleeps.
            Stage::IsCalled | Stage::IsClosed => return,
            Stage::Sleeps | Stage::IsAtWork => state.stage = Stage::IsCalled,
        }
        let has_thread = std::mem::replace(&mut state.has_thread, true);
        drop(state);
        if has_thread {
            return self.standby.changed.notify_one();
        }
        let pe = self.clone();
        let stand_by = move || {
            IS_STANDBY.set(true);
            while pe.standby.is_called() {
                pe.stand_in();
            }
        };
        let name = format!("pe{}-standby", self.me().number());
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(stand_by);
        if let Err(error) = thread {
            let mut state = self.standby.state();
            (state.has_thread, state.stage) = (false, Stage::Sleeps);
            drop(state);
            tracing::warn!(pe = self.me().number(), "nothing stands in for the workers: {error}");
        }
    }

    /// Does all that is urgent.
    fn stand_in(self: &Arc<Self>) {
        while !self.is_ending() {
            if let Some(main) = self.standby.take_main() {
                run(main);
            } else if let Some(task) = self.queues.next_urgent() {
                discard_with(|| task.start(self));
            } else {
                break;
            }
        }
    }
}

fn run(runnable: Runnable) {
    // The task's own panics are caught. This is for what is dropped after that.
    discard_with(|| {
        runnable.run();
    });
}
