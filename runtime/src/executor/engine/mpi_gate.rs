//! The gate to MPI: threads that pass it may not come back.
//!
//! An MPI call can hang for ever once a process has died. So MPI is called here, outside the
//! engine's lock. A thread that takes a turn at the engine passes the gate before the turn, to
//! receive frames, and after it, to send them. One thread at a time is inside; a thread that finds
//! another inside does not wait. Once the gate is sealed, no thread enters any more, and no one
//! waits for a thread that is inside.

use crate::lock::Lock;
use crate::transport::Pump;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// A thread that is still inside this long after the gate was sealed is given up. Calls take
/// microseconds; a thread that only waits for a core is mostly back within milliseconds. If it
/// comes back after all, there is one thread more than needed.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(50);

/// The same of one amid a task: with that, the PE is given up.
const TASK_GIVEN_UP_AFTER: Duration = Duration::from_secs(2);

/// The kind of thread that passes the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A thread that is no worker of the PE.
    Driver,
    /// A worker between two tasks.
    Worker,
    /// A worker that looks for work, and is counted as idle.
    IdleWorker,
    /// A worker amid a task that is to go on.
    AmidTask,
}

/// One lane's pump, and the thread that works it.
pub(crate) struct MpiGate {
    pump: Option<Lock<Box<dyn Pump>>>,
    is_sealed: AtomicBool,
    sealed_at: OnceLock<Instant>,
    /// Whether a thread is inside. (When it went in is not noted: reading the clock takes a tenth
    /// of the time of a pass.)
    is_entered: AtomicBool,
    /// The kind of the thread inside: a `Caller`.
    caller: AtomicU8,
    /// Whether the thread inside is a worker that has been given up.
    has_lost_worker: AtomicBool,
    /// Whether frames have moved since a turn last asked.
    has_moved: AtomicBool,
}

impl MpiGate {
    /// The gate to this pump. Most lanes need none.
    pub(crate) fn new(pump: Option<Box<dyn Pump>>) -> Self {
        MpiGate {
            pump: pump.map(Lock::new),
            is_sealed: AtomicBool::new(false),
            sealed_at: OnceLock::new(),
            is_entered: AtomicBool::new(false),
            caller: AtomicU8::new(Caller::Driver as u8),
            has_lost_worker: AtomicBool::new(false),
            has_moved: AtomicBool::new(false),
        }
    }

    /// Whether there is a pump behind the gate.
    pub(crate) fn has_pump(&self) -> bool {
        self.pump.is_some()
    }

    /// Moves frames in and out, unless another thread is inside. Returns whether any moved.
    pub(crate) fn pass(&self, caller: impl FnOnce() -> Caller) -> bool {
        let Some(pump) = &self.pump else { return false };
        if self.is_sealed.load(Ordering::Acquire) {
            return false;
        }
        let Some(mut pump) = pump.try_lock() else { return false };
        self.caller.store(caller() as u8, Ordering::Relaxed);
        // These accesses and those of `seal` and `ends_within` have one order: either this
        // thread sees the seal, or the thread that sealed sees that this one is inside.
        self.is_entered.store(true, Ordering::SeqCst);
        let moved = !self.is_sealed.load(Ordering::SeqCst) && pump.pump();
        self.is_entered.store(false, Ordering::Release);
        if moved {
            self.has_moved.store(true, Ordering::Release);
        }
        if self.is_sealed.load(Ordering::Relaxed) {
            // This thread may have been given up, and is back.
            self.has_lost_worker.store(false, Ordering::SeqCst);
        }
        moved
    }

    /// Whether frames move here, and none has since the last [`clear_moved`](Self::clear_moved).
    pub(crate) fn is_quiet(&self) -> bool {
        self.has_pump()
            && !self.is_sealed.load(Ordering::Relaxed)
            && !self.has_moved.load(Ordering::Relaxed)
    }

    /// A turn is about to take what has arrived so far.
    pub(crate) fn clear_moved(&self) {
        if self.has_moved.load(Ordering::Relaxed) {
            // What another thread moves in from now on is noted again.
            self.has_moved.swap(false, Ordering::AcqRel);
        }
    }

    /// Lets no thread in any more.
    pub(crate) fn seal(&self) {
        self.sealed_at.get_or_init(Instant::now);
        self.is_sealed.store(true, Ordering::SeqCst);
    }

    /// Waits until no thread is inside, at most this long, and ends the pump then. The gate must
    /// have been sealed. Returns whether that was done.
    pub(crate) fn ends_within(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while self.is_entered.load(Ordering::SeqCst) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::yield_now();
        }
        if let Some(pump) = &self.pump {
            // A thread that holds it now sees the seal, and does not pump.
            pump.lock().end();
        }
        true
    }

    /// Gives up the worker inside, if there is one that is not expected back. Returns whether this
    /// call did.
    pub(crate) fn give_up_worker(&self) -> bool {
        let is_amid_task = self.caller.load(Ordering::Relaxed) == Caller::AmidTask as u8;
        let after = if is_amid_task { TASK_GIVEN_UP_AFTER } else { GIVEN_UP_AFTER };
        let is_lost = self.is_sealed.load(Ordering::Relaxed)
            && self.is_entered.load(Ordering::Acquire)
            && self.sealed_at.get().is_some_and(|at| at.elapsed() >= after)
            && self.caller.load(Ordering::Relaxed) != Caller::Driver as u8;
        is_lost && !self.has_lost_worker.swap(true, Ordering::SeqCst)
    }

    /// Whether the worker that was given up was amid a task, which will never go on.
    pub(crate) fn has_lost_task(&self) -> bool {
        self.lost_workers() > 0 && self.caller.load(Ordering::Relaxed) == Caller::AmidTask as u8
    }

    /// How many active workers have been given up: 0 or 1.
    pub(crate) fn lost_workers(&self) -> usize {
        usize::from(self.has_lost_worker.load(Ordering::SeqCst))
    }

    /// The same, of workers that are not counted as idle.
    pub(crate) fn lost_busy_workers(&self) -> usize {
        let is_idle = self.caller.load(Ordering::Relaxed) == Caller::IdleWorker as u8;
        if is_idle { 0 } else { self.lost_workers() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    /// Comes back when it is told to, and says when it is ended.
    struct Call(mpsc::Receiver<()>, mpsc::Sender<()>);

    impl Pump for Call {
        fn pump(&mut self) -> bool {
            self.0.recv().is_ok()
        }

        fn end(&mut self) {
            self.1.send(()).expect("the test listens");
        }
    }

    #[test]
    fn a_worker_is_given_up_once_and_taken_back() {
        let (come_back, call) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let mpi_gate = Arc::new(MpiGate::new(Some(Box::new(Call(call, end)))));
        let way = mpi_gate.clone();
        let worker = std::thread::spawn(move || way.pass(|| Caller::Worker));
        while !mpi_gate.is_entered.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert!(!mpi_gate.give_up_worker(), "no process has died");
        mpi_gate.seal();
        while !mpi_gate.give_up_worker() {
            std::thread::yield_now();
        }
        assert!(!mpi_gate.give_up_worker(), "only once");
        assert_eq!((mpi_gate.lost_workers(), mpi_gate.lost_busy_workers()), (1, 1));
        assert!(!mpi_gate.ends_within(Duration::ZERO), "a thread is inside");
        assert!(ended.try_recv().is_err());
        come_back.send(()).expect("it waits");
        assert!(worker.join().expect("no panic"));
        assert_eq!((mpi_gate.lost_workers(), mpi_gate.lost_busy_workers()), (0, 0));
        assert!(!mpi_gate.pass(|| Caller::Driver), "it is sealed");
        assert!(mpi_gate.ends_within(Duration::ZERO) && ended.try_recv().is_ok());
    }

    /// Moves frames as often as it was told to.
    struct Frames(u32);

    impl Pump for Frames {
        fn pump(&mut self) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 > 0
        }

        fn end(&mut self) {}
    }

    #[test]
    fn it_is_quiet_from_a_turn_on_until_frames_move() {
        let gate = MpiGate::new(Some(Box::new(Frames(3))));
        assert!(gate.has_pump() && gate.is_quiet());
        assert!(gate.pass(|| Caller::Worker) && !gate.is_quiet());
        gate.clear_moved();
        assert!(gate.is_quiet());
        gate.clear_moved();
        assert!(gate.pass(|| Caller::Worker) && !gate.is_quiet());
        gate.clear_moved();
        assert!(!gate.pass(|| Caller::Worker) && gate.is_quiet(), "none is left");
        gate.seal();
        std::thread::sleep(GIVEN_UP_AFTER);
        assert!(!gate.is_quiet() && !gate.give_up_worker(), "no thread is inside");
    }

    #[test]
    fn where_there_is_no_pump_nothing_moves() {
        let gate = MpiGate::new(None);
        assert!(!gate.has_pump() && !gate.is_quiet() && !gate.pass(|| Caller::Worker));
        gate.seal();
        assert!(gate.ends_within(Duration::ZERO));
    }

    /// The driver is no worker, and one that is idle is not counted as busy.
    #[test]
    fn only_a_worker_is_given_up() {
        for (caller, given_up, busy) in [(Caller::Driver, 0, 0), (Caller::IdleWorker, 1, 0)] {
            let (come_back, call) = mpsc::channel();
            let (end, _ended) = mpsc::channel();
            let gate = Arc::new(MpiGate::new(Some(Box::new(Call(call, end)))));
            let way = gate.clone();
            let thread = std::thread::spawn(move || way.pass(|| caller));
            while !gate.is_entered.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            assert!(!gate.pass(|| caller), "another is inside");
            gate.seal();
            std::thread::sleep(GIVEN_UP_AFTER);
            assert_eq!(gate.give_up_worker(), given_up > 0);
            assert_eq!((gate.lost_workers(), gate.lost_busy_workers()), (given_up, busy));
            come_back.send(()).expect("it waits");
            assert!(thread.join().expect("no panic"));
        }
    }
}
