//! Frames as MPI messages.
//!
//! The lane sends only messages which the MPI library sends eagerly: they complete without the
//! receiver, so that no PE ever waits for another inside MPI. (For longer ones MPICH over UCX reads
//! the sender's memory, and aborts the receiver if the sender dies.) Within a host these are small.
//! Between hosts they are longer if UCX, should MPI use it, has been told to send any length
//! eagerly, as the guard does; Open MPI's own TCP sends 64 KiB so. (Two network namespaces, arrays
//! of 8 MiB: 1.4 to 2 GB/s instead of 0.75 with MPICH, 2.1 instead of 0.45 with Open MPI. Within a
//! host: no more with MPICH, and less with Open MPI.)
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
use ultramarine_topology::{Ball, Pe, Topology};

/// The longest frame that every MPI library sends eagerly, in bytes: Open MPI sends 4 KiB with its
/// own header through shared memory.
const FRAME_BYTES: usize = (4 << 10) - 64;

/// The longest frame that MPICH, and libraries derived from it, send eagerly, in bytes.
const FRAME_BYTES_OF_MPICH: usize = (8 << 10) - 64;

/// The longest frame between hosts, and of all, in bytes. (Frames of 64 KiB were no quicker.)
const FRAME_BYTES_MAX: usize = (32 << 10) - 64;

/// The most frames towards one PE that MPI has not completed; the next one waits.
const SENDS_PER_PEER_MAX: u32 = 64;

/// The most frames that one poll delivers, or one round of calls receives.
const ROUND_FRAMES_MAX: usize = 64;

/// The same, in bytes: so that what waits for the end of a turn waits some 0.1 ms.
const ROUND_BYTES_MAX: usize = 512 << 10;

/// The lane of a job that MPI connects.
pub struct MpiLane {
    frame_bytes_max: usize,
    /// PEs to which frames are shorter, and the longest of these, in bytes.
    shorter: Option<(Ball, usize)>,
    queues: Arc<FrameQueues>,
    calls: Option<MpiCalls>,
    sleeper: Arc<CondvarSleeper>,
}

impl MpiLane {
    /// The lane of PE `me` over a communicator that nothing else uses, in which the processes have
    /// the launcher's ranks. `is_ucx_eager`: should MPI use UCX, this sends all messages eagerly.
    ///
    /// # Errors
    ///
    /// MPI refuses a call.
    ///
    /// # Panics
    ///
    /// MPI was initialised for one thread only.
    pub fn new(
        me: Pe,
        comm: SimpleCommunicator,
        topology: Arc<Topology>,
        is_ucx_eager: bool,
    ) -> Result<Self, LaneError> {
        let queues = Arc::new(FrameQueues::new(comm.size() as usize));
        let version = mpi::environment::library_version().unwrap_or_default();
        let is_any = |names: &[&str]| names.iter().any(|name| version.contains(name));
        let is_mpich = is_any(&["MPICH", "Intel(R) MPI"]);
        let frame_bytes = if is_mpich { FRAME_BYTES_OF_MPICH } else { FRAME_BYTES };
        let is_long_eager = is_ucx_eager && is_any(&["Open MPI", "ch4:ucx"]);
        let (frame_bytes_max, shorter) = if is_long_eager && !topology.is_on_one_host() {
            (FRAME_BYTES_MAX, Some((topology.host_of(me), frame_bytes)))
        } else {
            (frame_bytes, None)
        };
        let calls = Some(MpiCalls::new(comm, topology, queues.clone())?);
        Ok(MpiLane { frame_bytes_max, shorter, queues, calls, sleeper: Arc::default() })
    }
}

impl Lane for MpiLane {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn shorter_frames(&self) -> Option<(Ball, usize)> {
        self.shorter
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
        let (mut delivered, mut bytes) = (0, 0);
        while delivered < ROUND_FRAMES_MAX
            && bytes < ROUND_BYTES_MAX
            && let Some((from, frame)) = self.queues.incoming.pop()
        {
            delivered += 1;
            bytes += frame.len();
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
