//! The queues between the MPI lane and the thread that calls MPI.

use super::SENDS_PER_PEER_MAX;
use crate::lock::Lock;
use crate::transport::error::LaneError;
use crossbeam_queue::{ArrayQueue, SegQueue};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use ultramarine_topology::Pe;

/// The most buffers kept for the next frames.
const SPARE_BUFFERS_MAX: usize = 128;

/// See the [module](self).
pub(super) struct FrameQueues {
    pub(super) outgoing: SegQueue<(Pe, Vec<u8>)>,
    pub(super) incoming: SegQueue<(Pe, Vec<u8>)>,
    /// Empty buffers.
    pub(super) spare: ArrayQueue<Vec<u8>>,
    /// The number of frames that have not left, in all and towards each PE.
    pub(super) unsent: AtomicUsize,
    pub(super) unsent_to: Box<[AtomicU32]>,
    pub(super) has_failed: AtomicBool,
    pub(super) failure: Lock<Option<LaneError>>,
}

impl FrameQueues {
    /// Empty queues of a job of this many PEs.
    pub(super) fn new(pes: usize) -> Self {
        FrameQueues {
            outgoing: SegQueue::new(),
            incoming: SegQueue::new(),
            spare: ArrayQueue::new(SPARE_BUFFERS_MAX),
            unsent: AtomicUsize::new(0),
            unsent_to: (0..pes).map(|_| AtomicU32::new(0)).collect(),
            has_failed: AtomicBool::new(false),
            failure: Lock::new(None),
        }
    }

    pub(super) fn buffer(&self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        // If there are enough spare buffers, this one is dropped.
        let _ = self.spare.push(buffer);
    }

    /// Notes that MPI has sent a frame, and takes its buffer back. Returns whether the lane was
    /// full towards this PE.
    pub(super) fn has_left(&self, to: Pe, frame: Vec<u8>) -> bool {
        let before = self.unsent_to[to.index()].fetch_sub(1, Ordering::Relaxed);
        self.unsent.fetch_sub(1, Ordering::Release);
        self.give_back(frame);
        before >= SENDS_PER_PEER_MAX
    }

    pub(super) fn failure(&self) -> MutexGuard<'_, Option<LaneError>> {
        self.failure.lock()
    }
}
