//! The simulated lanes. Each PE has two: its engine begins with the first, and goes over to the
//! fallback lane after a death.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ultramarine_runtime::transport::{Lane, LaneError, Sleeper};
use ultramarine_topology::Pe;

/// A lane takes this many frames in one turn.
const SENT_FRAMES_MAX: usize = 64;

/// What a port writes and another reads.
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// Its length, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// One PE's end of a lane, as the network sees it.
#[derive(Clone)]
pub(crate) struct LaneEnd {
    pe: Pe,
    frame_bytes_max: usize,
    queues: Arc<Mutex<LaneQueues>>,
}

#[derive(Default)]
struct LaneQueues {
    arrived: VecDeque<(Pe, Frame)>,
    sent: VecDeque<(Pe, Frame)>,
    /// Whether a frame was refused because too many had been sent.
    has_refused: bool,
    /// Whether the PE has gone over to another lane.
    is_left: bool,
}

impl LaneEnd {
    pub(crate) fn new(pe: Pe, frame_bytes_max: usize) -> Self {
        LaneEnd { pe, frame_bytes_max, queues: Arc::default() }
    }

    fn queues(&self) -> MutexGuard<'_, LaneQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PE's own view of it.
    pub(crate) fn lane(&self) -> Box<dyn Lane> {
        Box::new(SimulatedLane(self.clone()))
    }

    /// A frame arrives. It is lost if the PE has left the lane.
    pub(crate) fn deliver(&self, from: Pe, frame: Frame) {
        let mut queues = self.queues();
        if !queues.is_left {
            queues.arrived.push_back((from, frame));
        }
    }

    /// Moves the frames that the PE has sent to an empty queue, and says whether it has more.
    pub(crate) fn take_sent(&self, frames: &mut VecDeque<(Pe, Frame)>) -> bool {
        let mut queues = self.queues();
        std::mem::swap(&mut queues.sent, frames);
        std::mem::take(&mut queues.has_refused)
    }

    /// Whether the PE has gone over to another lane.
    pub(crate) fn is_left(&self) -> bool {
        self.queues().is_left
    }
}

/// The lane that a port uses.
struct SimulatedLane(LaneEnd);

impl Lane for SimulatedLane {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn frame_bytes_max(&self) -> usize {
        self.0.frame_bytes_max
    }

    fn has_room(&self, _: Pe) -> bool {
        let mut queues = self.0.queues();
        let has_room = queues.sent.len() < SENT_FRAMES_MAX;
        queues.has_refused |= !has_room;
        has_room
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        assert!(to != self.0.pe && frame.len() <= self.0.frame_bytes_max, "no port does that");
        if !self.has_room(to) {
            return Ok(false);
        }
        self.0.queues().sent.push_back((to, Frame(std::mem::take(frame))));
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let mut queues = self.0.queues();
        let count = queues.arrived.len();
        queues.arrived.drain(..).for_each(|(from, frame)| deliver(from, &frame.0));
        Ok(count)
    }

    fn forget(&mut self, pe: Pe) {
        self.0.queues().sent.retain(|(to, _)| *to != pe);
    }

    fn is_flushed(&mut self) -> bool {
        self.0.queues().sent.is_empty()
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::new(NoSleeper)
    }
}

impl Drop for SimulatedLane {
    fn drop(&mut self) {
        let mut queues = self.0.queues();
        queues.is_left = true;
        queues.arrived.clear();
        queues.sent.clear();
    }
}

/// Nothing sleeps in a simulation: it goes on to the next event.
struct NoSleeper;

impl Sleeper for NoSleeper {
    fn sleep(&self, _: Duration) {}
    fn wake(&self) {}
    fn wakes_on_traffic(&self) -> bool {
        true
    }
}
