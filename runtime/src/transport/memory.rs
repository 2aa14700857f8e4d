//! The lane between PEs that are threads of one process.
//!
//! Each PE has one inbox, a bounded lock-free queue, into which all others push. Frames of one
//! sender leave it in the order in which they entered. The buffers in which frames travel go back
//! to the PE that filled them, so a steady flow allocates nothing.
//!
//! # Sleeping
//!
//! A frame rings the receiver's bell, and that must cost next to nothing while the receiver is
//! awake, yet never be missed by one that is falling asleep. The bell is one atomic:
//!
//! ```text
//! sender                          sleeper
//! (1) push the frame              (a) bell: Quiet -> Asleep
//! (2) fence                       (b) fence
//! (3) if bell is Asleep: ring     (c) if the inbox is empty: wait while the bell is Asleep
//! ```
//!
//! Both fences are sequentially consistent, so one of them comes first. If the sender's does, (c)
//! sees the frame. If the sleeper's does, (3) sees `Asleep`. Either way the sleeper does not
//! sleep on the frame. Ringing takes the mutex that the sleeper holds from (a) until it waits, so
//! the notification cannot fall between the check and the wait.

use super::{Lane, LaneError, Sleeper};
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use ultramarine_topology::Pe;

/// The longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// How many frames an inbox holds.
const INBOX_FRAMES_MAX: usize = 1024;

/// How many empty buffers wait for their next use, per PE.
const SPARE_BUFFERS_MAX: usize = 64;

/// How many frames one poll delivers at most.
const POLL_FRAMES_MAX: usize = 256;

/// The lanes of a job of `pes` PEs in this process; the index is the PE's number.
pub fn network(pes: u32) -> Vec<MemoryLane> {
    let stations: Arc<[Arc<Station>]> = (0..pes).map(|_| Arc::new(Station::new())).collect();
    (0..pes).map(|pe| MemoryLane { me: Pe::new(pe), stations: Arc::clone(&stations) }).collect()
}

/// One PE's end of a [`network`].
pub struct MemoryLane {
    me: Pe,
    stations: Arc<[Arc<Station>]>,
}

/// What others see of a PE.
struct Station {
    inbox: ArrayQueue<(Pe, Vec<u8>)>,
    /// Empty buffers for this PE's next frames.
    spare: ArrayQueue<Vec<u8>>,
    bell: AtomicU8,
    lock: Mutex<()>,
    rung: Condvar,
}

/// Nobody sleeps.
const QUIET: u8 = 0;
/// Somebody sleeps, or is about to.
const ASLEEP: u8 = 1;
/// The sleep, or else the next one, is over.
const RUNG: u8 = 2;

impl Station {
    fn new() -> Self {
        Station {
            inbox: ArrayQueue::new(INBOX_FRAMES_MAX),
            spare: ArrayQueue::new(SPARE_BUFFERS_MAX),
            bell: AtomicU8::new(QUIET),
            lock: Mutex::new(()),
            rung: Condvar::new(),
        }
    }
}

impl Lane for MemoryLane {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: Pe, frame: &[u8]) -> Result<bool, LaneError> {
        let receiver = self.stations.get(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit: FRAME_BYTES_MAX });
        }
        // Only senders add to an inbox, so this may refuse a frame for which there is just room
        // again, but saves copying most of those for which there is none.
        if receiver.inbox.is_full() {
            return Ok(false);
        }
        let spare = &self.stations[self.me.index()].spare;
        let mut buffer = spare.pop().unwrap_or_default();
        buffer.extend_from_slice(frame);
        if let Err((_, mut buffer)) = receiver.inbox.push((self.me, buffer)) {
            buffer.clear();
            // A full store of spares simply lets this one go.
            let _ = spare.push(buffer);
            return Ok(false);
        }
        fence(Ordering::SeqCst);
        if receiver.bell.load(Ordering::Relaxed) == ASLEEP {
            receiver.wake();
        }
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let inbox = &self.stations[self.me.index()].inbox;
        let mut frames = 0;
        while frames < POLL_FRAMES_MAX
            && let Some((from, mut frame)) = inbox.pop()
        {
            deliver(from, &frame);
            frame.clear();
            // A full store of spares simply lets this one go.
            let _ = self.stations[from.index()].spare.push(frame);
            frames += 1;
        }
        Ok(frames)
    }

    fn is_flushed(&mut self) -> bool {
        true
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::<Station>::clone(&self.stations[self.me.index()])
    }
}

impl Sleeper for Station {
    fn sleep(&self, at_most: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let fell_asleep =
            self.bell.compare_exchange(QUIET, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if fell_asleep != Err(RUNG) && self.inbox.is_empty() {
            let is_asleep = |(): &mut ()| self.bell.load(Ordering::SeqCst) == ASLEEP;
            // Whether the time is up or the bell was rung makes no difference.
            drop(self.rung.wait_timeout_while(guard, at_most, is_asleep));
        }
        // Not a mere store: what the one who rang did before must be visible to whoever returns.
        self.bell.swap(QUIET, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.bell.swap(RUNG, Ordering::SeqCst) == ASLEEP {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.rung.notify_all();
        }
    }

    fn wakes_on_traffic(&self) -> bool {
        true
    }
}
