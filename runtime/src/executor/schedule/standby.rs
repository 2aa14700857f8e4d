//! The state of the *standby*: a thread that runs what must not wait, while all workers are inside
//! long tasks.

use crate::executor::task::activity::Activity;
use crate::lock::Lock;
use async_task::Runnable;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The standby thread, and the main task if that can go on.
#[derive(Default)]
pub(crate) struct Standby {
    state: Lock<State>,
    changed: Condvar,
    /// What the thread does, once there is one.
    activity: OnceLock<Arc<Activity>>,
}

#[derive(Default)]
struct State {
    /// The main task, if it can go on and no thread runs it.
    main: Option<Runnable>,
    /// Whether a [`Ready::Main`](super::queues::Ready::Main) is in a queue.
    is_main_announced: bool,
    /// When the driver first saw something wait; `None` once it has seen nothing wait.
    waiting_since: Option<Instant>,
    has_thread: bool,
    stage: Stage,
}

/// What the thread does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Sleeps,
    /// It has been called, and will come.
    IsCalled,
    IsAtWork,
    /// It ends: the PE has left.
    IsClosed,
}

/// How a call has found the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// It slept, and has been woken.
    Asleep,
    /// It looks again by itself before it sleeps, or the PE has left.
    Awake,
    /// There is none: the caller must start it.
    NoThread,
}

/// The driver calls the thread when something has waited for this long. Mostly a worker comes to it
/// within microseconds.
const CALL_STANDBY_AFTER: Duration = Duration::from_millis(1);

thread_local! {
    static IS_STANDBY: Cell<bool> = const { Cell::new(false) };
    static IS_URGENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `act`, which must not wait for a worker. Tasks that it starts, and that wait for something,
/// are urgent too when they go on.
pub(crate) fn urgently<R>(act: impl FnOnce() -> R) -> R {
    let was_urgent = IS_URGENT.replace(true);
    let result = act();
    IS_URGENT.set(was_urgent);
    result
}

/// Runs another task inside [`urgently`], which need not be urgent. `act` must not panic.
pub(crate) fn not_urgently(act: impl FnOnce()) {
    let was_urgent = IS_URGENT.replace(false);
    act();
    IS_URGENT.set(was_urgent);
}

/// Whether the caller runs inside [`urgently`].
pub(crate) fn is_urgent() -> bool {
    IS_URGENT.get()
}

/// Whether the calling thread is the standby.
pub(crate) fn is_standby() -> bool {
    IS_STANDBY.get()
}

impl Standby {
    /// Whether the thread works, or has been called to work.
    pub(crate) fn is_at_work(&self) -> bool {
        matches!(self.state.lock().stage, Stage::IsCalled | Stage::IsAtWork)
    }

    /// Ends the thread, and drops the main task if it waits.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::IsClosed;
        // Dropped after the lock.
        let _main = state.main.take();
        drop(state);
        self.changed.notify_all();
    }

    /// Keeps the main task, which can go on, for the first thread that takes it. Returns whether it
    /// must be announced in a queue; `None` once the PE has left.
    pub(crate) fn offer_main(&self, main: Runnable) -> Option<bool> {
        let mut state = self.state.lock();
        if state.stage == Stage::IsClosed {
            // After the lock: this drops the main task.
            drop(state);
            drop(main);
            return None;
        }
        state.main = Some(main);
        state.waiting_since = None;
        Some(!std::mem::replace(&mut state.is_main_announced, true))
    }

    pub(crate) fn take_main(&self) -> Option<Runnable> {
        self.state.lock().main.take()
    }

    /// The same, for a worker that has found the announcement in a queue.
    pub(crate) fn take_announced_main(&self) -> Option<Runnable> {
        let mut state = self.state.lock();
        state.is_main_announced = false;
        state.main.take()
    }

    /// Whether the main task, or something else that is urgent, has waited for too long. The driver
    /// asks this now and then.
    pub(crate) fn has_waited_too_long(&self, has_urgent: bool) -> bool {
        let mut state = self.state.lock();
        let is_waiting = state.main.is_some() || has_urgent;
        let now = Instant::now();
        let since = is_waiting.then(|| state.waiting_since.unwrap_or(now));
        state.waiting_since = since;
        since.is_some_and(|since| now - since >= CALL_STANDBY_AFTER)
    }

    /// Calls the thread, unless it has been called.
    pub(crate) fn call(&self) -> Called {
        let mut state = self.state.lock();
        let was_asleep = state.stage == Stage::Sleeps;
        if state.stage != Stage::IsClosed {
            state.stage = Stage::IsCalled;
        }
        if !was_asleep {
            return Called::Awake;
        }
        let has_thread = std::mem::replace(&mut state.has_thread, true);
        drop(state);
        if !has_thread {
            return Called::NoThread;
        }
        self.changed.notify_one();
        Called::Asleep
    }

    /// The thread could not be started.
    pub(crate) fn note_no_thread(&self) {
        let mut state = self.state.lock();
        (state.has_thread, state.stage) = (false, Stage::Sleeps);
    }

    /// Makes the calling thread the standby: it runs `stand_in` each time it is called, until the
    /// PE has left.
    pub(crate) fn stand_by(&self, stand_in: impl Fn()) {
        IS_STANDBY.set(true);
        self.activity.get_or_init(Arc::default).bind_to_this_thread();
        while self.is_called() {
            stand_in();
        }
    }

    /// What the thread does, if there is one.
    pub(crate) fn activity(&self) -> Option<&Activity> {
        self.activity.get().map(|activity| &**activity)
    }

    /// Notes that the thread has left one task and looks for the next.
    pub(crate) fn note_between_tasks(&self) {
        if let Some(activity) = self.activity() {
            activity.function.set(None);
            activity.resumed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for a call. Returns false if the PE has left.
    fn is_called(&self) -> bool {
        let mut state = self.state.lock();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn runnable() -> Runnable {
        let (runnable, task) = async_task::spawn(std::future::pending::<()>(), |_| {});
        task.detach();
        runnable
    }

    #[test]
    fn what_is_urgent_ends_with_its_call() {
        assert!(!is_urgent());
        urgently(|| {
            urgently(|| assert!(is_urgent()));
            not_urgently(|| assert!(!is_urgent()));
            assert!(is_urgent());
        });
        assert!(!is_urgent());
    }

    #[test]
    fn the_main_task_is_announced_once_and_taken_once() {
        let standby = Standby::default();
        assert_eq!(standby.offer_main(runnable()), Some(true));
        assert!(standby.take_main().is_some() && standby.take_main().is_none());
        assert_eq!(standby.offer_main(runnable()), Some(false), "it is in a queue");
        assert!(standby.take_announced_main().is_some());
        assert_eq!(standby.offer_main(runnable()), Some(true), "it was taken out");
        standby.close();
        assert!(standby.take_main().is_none() && standby.offer_main(runnable()).is_none());
    }

    #[test]
    fn the_thread_is_started_once_and_called_while_it_is_not() {
        let standby = Standby::default();
        assert!(!standby.is_at_work());
        assert_eq!(standby.call(), Called::NoThread);
        assert!(standby.is_at_work());
        assert_eq!(standby.call(), Called::Awake, "it will come");
        standby.note_no_thread();
        assert!(!standby.is_at_work());
        assert_eq!(standby.call(), Called::NoThread, "it could not be started");
        let (begun, begins) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        std::thread::scope(|scope| {
            let standing_by = scope.spawn(|| {
                let (begun, goes_on) = (begun, goes_on);
                standby.stand_by(|| {
                    begun.send(is_standby()).expect("it is awaited");
                    goes_on.recv().expect("it is told");
                });
            });
            assert_eq!(begins.recv(), Ok(true));
            assert!(standby.is_at_work());
            assert_eq!(standby.call(), Called::Awake, "it looks again before it sleeps");
            go_on.send(()).expect("it waits");
            assert_eq!(begins.recv(), Ok(true));
            go_on.send(()).expect("it waits");
            while standby.is_at_work() {
                std::thread::yield_now();
            }
            assert_eq!(standby.call(), Called::Asleep);
            assert_eq!(begins.recv(), Ok(true));
            standby.close();
            go_on.send(()).expect("it waits");
            standing_by.join().expect("it does not panic");
        });
        assert_eq!(standby.call(), Called::Awake, "the PE has left");
        assert!(!standby.is_at_work() && !is_standby());
    }

    #[test]
    fn no_thread_is_started_once_the_pe_has_left() {
        let standby = Standby::default();
        standby.close();
        assert_eq!(standby.call(), Called::Awake);
        assert!(!standby.is_at_work());
        standby.stand_by(|| unreachable!("it is not called"));
    }

    #[test]
    fn only_what_waits_for_long_calls_the_thread() {
        let standby = Standby::default();
        assert!(!standby.has_waited_too_long(true), "it begins to wait");
        std::thread::sleep(CALL_STANDBY_AFTER);
        assert!(standby.has_waited_too_long(true));
        assert!(!standby.has_waited_too_long(false), "nothing waits");
        assert!(!standby.has_waited_too_long(true), "it begins anew");
        standby.offer_main(runnable());
        std::thread::sleep(CALL_STANDBY_AFTER);
        assert!(!standby.has_waited_too_long(false), "it begins with the main task");
        std::thread::sleep(CALL_STANDBY_AFTER);
        assert!(standby.has_waited_too_long(false));
    }
}
