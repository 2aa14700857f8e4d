//! Where threads go through into a foreign library, and may not come back.
//!
//! An MPI call can hang for ever once a process has died. So MPI is called here, outside the
//! engine's lock: whoever takes a turn at the engine passes the airlock before, to bring in what has
//! arrived, and after, to send what waits. One thread at a time; nobody ever waits for another.
//! Once the airlock is sealed nobody goes in any more, and who is inside is not waited for.

use crate::transport::Pump;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A thread that has been inside for so long, once the airlock is sealed, is not expected back.
/// Calls take microseconds; a thread that merely waits for its turn at a core is back within
/// milliseconds. Should it come back after all, there is one thread more than there need be.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1);

/// One lane's pump, and who is at it.
pub(super) struct Airlock {
    pump: Option<Mutex<Box<dyn Pump>>>,
    is_sealed: AtomicBool,
    /// When the thread inside went in, in nanoseconds since `started`; 0 if nobody is.
    entered: AtomicU64,
    /// Whether that thread is a worker.
    is_worker: AtomicBool,
    started: Instant,
}

impl Airlock {
    /// The way to this pump; none is needed on most lanes.
    pub(super) fn new(pump: Option<Box<dyn Pump>>) -> Self {
        Airlock {
            pump: pump.map(Mutex::new),
            is_sealed: AtomicBool::new(false),
            entered: AtomicU64::new(0),
            is_worker: AtomicBool::new(false),
            started: Instant::now(),
        }
    }

    /// Whether there is anything to go through to.
    pub(super) fn has_pump(&self) -> bool {
        self.pump.is_some()
    }

    /// Moves frames in and out, unless another thread is at it. Whether any moved.
    pub(super) fn pass(&self, is_worker: impl FnOnce() -> bool) -> bool {
        let Some(pump) = &self.pump else { return false };
        if self.is_sealed.load(Ordering::Acquire) {
            return false;
        }
        let Ok(mut pump) = pump.try_lock() else { return false };
        self.is_worker.store(is_worker(), Ordering::Relaxed);
        let now = self.started.elapsed().as_nanos() as u64;
        // In one order with `seal` and `is_empty_within`: either this sees the seal, or whoever
        // sealed sees that somebody is inside.
        self.entered.store(now.max(1), Ordering::SeqCst);
        let moved = !self.is_sealed.load(Ordering::SeqCst) && pump.pump();
        self.entered.store(0, Ordering::Release);
        moved
    }

    /// Lets nobody in any more.
    pub(super) fn seal(&self) {
        self.is_sealed.store(true, Ordering::SeqCst);
    }

    /// Waits until nobody is inside, though not for longer than this. To be sealed before.
    pub(super) fn is_empty_within(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while self.entered.load(Ordering::SeqCst) != 0 {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Whether a worker went in and is not expected back.
    pub(super) fn has_kept_a_worker(&self) -> bool {
        let entered = self.entered.load(Ordering::Acquire);
        let inside = self.started.elapsed().saturating_sub(Duration::from_nanos(entered));
        self.is_sealed.load(Ordering::Relaxed)
            && entered != 0
            && inside >= GIVEN_UP_AFTER
            && self.is_worker.load(Ordering::Relaxed)
    }
}
