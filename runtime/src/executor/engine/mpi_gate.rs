//! Where threads go through into a foreign library, and may not come back.
//!
//! An MPI call can hang for ever once a process has died. So MPI is called here, outside the
//! engine's lock: a thread that takes a turn at the engine passes the gate before, to bring in
//! what has arrived, and after, to send what waits. One thread at a time; nobody ever waits for
//! another. Once the gate is sealed nobody goes in any more, and who is inside is not waited
//! for.

use crate::transport::Pump;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A thread that has been inside for so long, once the gate is sealed, is not expected back.
/// Calls take microseconds; a thread that merely waits for its turn at a core is mostly back within
/// milliseconds. Should it come back after all, there is one thread more than there need be.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(50);

/// Who goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A thread that is no worker of the PE.
    Driver,
    /// A worker between two tasks.
    Worker,
    /// A worker that looks for work, and is counted as idle.
    IdleWorker,
}

/// One lane's pump, and who is at it.
pub(crate) struct MpiGate {
    pump: Option<Mutex<Box<dyn Pump>>>,
    is_sealed: AtomicBool,
    /// When the thread inside went in, in nanoseconds since `started`; 0 if nobody is.
    entered: AtomicU64,
    /// Which kind of thread that is: a `Caller`.
    caller: AtomicU8,
    /// Whether it is a worker that has been given up.
    has_lost_worker: AtomicBool,
    started: Instant,
}

impl MpiGate {
    /// The way to this pump; none is needed on most lanes.
    pub(crate) fn new(pump: Option<Box<dyn Pump>>) -> Self {
        MpiGate {
            pump: pump.map(Mutex::new),
            is_sealed: AtomicBool::new(false),
            entered: AtomicU64::new(0),
            caller: AtomicU8::new(Caller::Driver as u8),
            has_lost_worker: AtomicBool::new(false),
            started: Instant::now(),
        }
    }

    /// Whether there is anything to go through to.
    pub(crate) fn has_pump(&self) -> bool {
        self.pump.is_some()
    }

    /// Moves frames in and out, unless another thread is at it. Whether any moved.
    pub(crate) fn pass(&self, caller: impl FnOnce() -> Caller) -> bool {
        let Some(pump) = &self.pump else { return false };
        if self.is_sealed.load(Ordering::Acquire) {
            return false;
        }
        let Ok(mut pump) = pump.try_lock() else { return false };
        self.caller.store(caller() as u8, Ordering::Relaxed);
        let now = self.started.elapsed().as_nanos() as u64;
        // In one order with `seal` and `is_empty_within`: either this sees the seal, or the
        // thread that sealed sees that another is inside.
        self.entered.store(now.max(1), Ordering::SeqCst);
        let moved = !self.is_sealed.load(Ordering::SeqCst) && pump.pump();
        self.entered.store(0, Ordering::Release);
        if self.is_sealed.load(Ordering::Relaxed) {
            // It may have been given up, and is back.
            self.has_lost_worker.store(false, Ordering::SeqCst);
        }
        moved
    }

    /// Lets nobody in any more.
    pub(crate) fn seal(&self) {
        self.is_sealed.store(true, Ordering::SeqCst);
    }

    /// Waits until nobody is inside, though not for longer than this. To be sealed before.
    pub(crate) fn is_empty_within(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while self.entered.load(Ordering::SeqCst) != 0 {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Gives the worker up that went in and is not expected back, if there is one. Whether this
    /// call did.
    pub(crate) fn give_up_worker(&self) -> bool {
        let entered = self.entered.load(Ordering::Acquire);
        let inside = self.started.elapsed().saturating_sub(Duration::from_nanos(entered));
        let is_lost = self.is_sealed.load(Ordering::Relaxed)
            && entered != 0
            && inside >= GIVEN_UP_AFTER
            && self.caller.load(Ordering::Relaxed) != Caller::Driver as u8;
        is_lost && !self.has_lost_worker.swap(true, Ordering::SeqCst)
    }

    /// How many active workers have been given up: 0 or 1.
    pub(crate) fn lost_workers(&self) -> usize {
        usize::from(self.has_lost_worker.load(Ordering::SeqCst))
    }

    /// The same, of those that are not counted as idle.
    pub(crate) fn lost_busy_workers(&self) -> usize {
        let is_busy = self.caller.load(Ordering::Relaxed) == Caller::Worker as u8;
        if is_busy { self.lost_workers() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    /// Comes back when it is told to.
    struct Call(mpsc::Receiver<()>);

    impl Pump for Call {
        fn pump(&mut self) -> bool {
            self.0.recv().is_ok()
        }
    }

    #[test]
    fn a_worker_is_given_up_once_and_taken_back() {
        let (come_back, call) = mpsc::channel();
        let mpi_gate = Arc::new(MpiGate::new(Some(Box::new(Call(call)))));
        let way = mpi_gate.clone();
        let worker = std::thread::spawn(move || way.pass(|| Caller::Worker));
        while mpi_gate.entered.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert!(!mpi_gate.give_up_worker(), "nobody has died");
        mpi_gate.seal();
        while !mpi_gate.give_up_worker() {
            std::thread::yield_now();
        }
        assert!(!mpi_gate.give_up_worker(), "only once");
        assert_eq!((mpi_gate.lost_workers(), mpi_gate.lost_busy_workers()), (1, 1));
        come_back.send(()).expect("it waits");
        assert!(worker.join().expect("no panic"));
        assert_eq!((mpi_gate.lost_workers(), mpi_gate.lost_busy_workers()), (0, 0));
        assert!(!mpi_gate.pass(|| Caller::Driver), "it is sealed");
    }
}
