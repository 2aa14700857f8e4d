//! Frames as MPI messages.
//!
//! The lane sends only small messages (at most 8 KiB, or 4), which the MPI library sends eagerly:
//! they complete without the receiver, so that no PE ever waits for another inside MPI.
//!
//! The lane itself does not call MPI: it puts frames into queues and takes them from queues. On the
//! other side of the queues a [`Pump`], `calls.rs`, calls MPI. After the first death a call may
//! never return; the thread that holds the lane does not notice.
//!
//! MPI must be initialised with `MPI_THREAD_SERIALIZED` or better: any thread may call, one at a
//! time. The `&mut self` of the pump ensures that.

mod calls;
mod queues;
mod version;

use super::error::LaneError;
use super::lane::{Lane, Pump, Sleeper};
use crate::lock::Lock;
pub use calls::CommDup;
use calls::MpiCalls;
use mpi::topology::{Communicator, SimpleCommunicator};
use queues::FrameQueues;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Duration;
use ultramarine_topology::{Pe, Topology};

/// The longest frame that every MPI library sends eagerly, in bytes: Open MPI sends 4 KiB with its
/// own header through shared memory.
const FRAME_BYTES: usize = (4 << 10) - 64;

/// The longest frame that MPICH, and libraries derived from it, send eagerly, in bytes.
const FRAME_BYTES_OF_MPICH: usize = (8 << 10) - 64;

/// The most frames towards one PE that MPI has not completed; the next one waits.
const SENDS_PER_PEER_MAX: u32 = 64;

/// The most frames that one poll delivers.
const POLL_FRAMES_MAX: usize = 64;

/// The lane of a job that MPI connects.
pub struct MpiLane {
    frame_bytes_max: usize,
    queues: Arc<FrameQueues>,
    calls: Option<MpiCalls>,
    sleeper: Arc<CondvarSleeper>,
}

impl MpiLane {
    /// The lane over a communicator that nothing else uses, in which the processes have the
    /// launcher's ranks.
    ///
    /// # Errors
    ///
    /// MPI refuses a call.
    ///
    /// # Panics
    ///
    /// MPI was initialised for one thread only.
    pub fn new(comm: SimpleCommunicator, topology: Arc<Topology>) -> Result<Self, LaneError> {
        let queues = Arc::new(FrameQueues::new(comm.size() as usize));
        let calls = Some(MpiCalls::new(comm, topology, queues.clone())?);
        let is_mpich = mpi::environment::library_version()
            .is_ok_and(|version| version.contains("MPICH") || version.contains("Intel(R) MPI"));
        let frame_bytes_max = if is_mpich { FRAME_BYTES_OF_MPICH } else { FRAME_BYTES };
        Ok(MpiLane { frame_bytes_max, queues, calls, sleeper: Arc::default() })
    }
}

impl Lane for MpiLane {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn has_room(&self, to: Pe) -> bool {
        let unsent_to = self.queues.unsent_to.get(to.index());
        unsent_to.is_none_or(|unsent| unsent.load(Ordering::Relaxed) < SENDS_PER_PEER_MAX)
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        let limit = self.frame_bytes_max;
        if frame.len() > limit {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit });
        }
        let unsent_to = self.queues.unsent_to.get(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        if unsent_to.fetch_add(1, Ordering::Relaxed) >= SENDS_PER_PEER_MAX {
            unsent_to.fetch_sub(1, Ordering::Relaxed);
            return Ok(false);
        }
        self.queues.unsent.fetch_add(1, Ordering::Relaxed);
        let frame = std::mem::replace(frame, self.queues.buffer());
        self.queues.outgoing.push((to, frame));
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let mut delivered = 0;
        while delivered < POLL_FRAMES_MAX
            && let Some((from, frame)) = self.queues.incoming.pop()
        {
            delivered += 1;
            deliver(from, &frame);
            self.queues.give_back(frame);
        }
        if self.queues.has_failed.load(Ordering::Acquire)
            && let Some(error) = self.queues.failure().take()
        {
            return Err(error);
        }
        Ok(delivered)
    }

    fn is_flushed(&mut self) -> bool {
        self.queues.unsent.load(Ordering::Acquire) == 0
    }

    fn take_pump(&mut self) -> Option<Box<dyn Pump>> {
        Some(Box::new(self.calls.take()?))
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.sleeper.clone()
    }
}

/// MPI offers nothing to sleep in: a thread that sleeps here must poll from time to time.
#[derive(Default)]
struct CondvarSleeper {
    rung: Lock<bool>,
    bell: Condvar,
}

impl Sleeper for CondvarSleeper {
    fn sleep(&self, at_most: Duration) {
        let rung = self.rung.lock();
        let waited = self.bell.wait_timeout_while(rung, at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn wake(&self) {
        *self.rung.lock() = true;
        self.bell.notify_one();
    }

    fn wakes_on_traffic(&self) -> bool {
        false
    }
}
