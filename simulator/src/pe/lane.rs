//! The simulated lanes. Each PE has two: its engine begins with the first, and goes over to the
//! fallback lane after a death.

use super::lock;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex};
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

/// Frames that a PE has handed to its lanes, until the network takes them after the PE's turn. All
/// PEs of a simulation share the one queue: it is in the processor's cache.
#[derive(Clone, Default)]
pub(crate) struct SentFrames(Arc<Mutex<SentQueue>>);

#[derive(Default)]
struct SentQueue {
    frames: VecDeque<SentFrame>,
    /// Whether a frame was refused because too many had been sent.
    has_refused: bool,
}

/// A frame for a PE, and the lane over which it goes.
pub(crate) struct SentFrame {
    pub(crate) to: Pe,
    pub(crate) lane: u8,
    pub(crate) frame: Frame,
}

impl SentFrames {
    /// Moves the frames to an empty queue, and says whether the PE has more.
    pub(crate) fn take(&self, frames: &mut VecDeque<SentFrame>) -> bool {
        let mut queue = lock(&self.0);
        std::mem::swap(&mut queue.frames, frames);
        std::mem::take(&mut queue.has_refused)
    }
}

/// One PE's end of a lane, as the network sees it.
#[derive(Clone, Default)]
pub(crate) struct LaneEnd(Arc<Mutex<Arrivals>>);

#[derive(Default)]
struct Arrivals {
    frames: VecDeque<(Pe, Frame)>,
    /// Whether the PE has gone over to another lane.
    is_left: bool,
}

impl LaneEnd {
    /// A frame arrives. It is lost if the PE has left the lane.
    pub(crate) fn deliver(&self, from: Pe, frame: Frame) {
        let mut arrivals = lock(&self.0);
        if !arrivals.is_left {
            arrivals.frames.push_back((from, frame));
        }
    }

    /// Whether the PE has gone over to another lane.
    pub(crate) fn is_left(&self) -> bool {
        lock(&self.0).is_left
    }
}

/// The lane that a port uses.
pub(crate) struct SimulatedLane {
    pub(crate) pe: Pe,
    /// Which of the PE's lanes it is.
    pub(crate) number: u8,
    pub(crate) frame_bytes_max: usize,
    pub(crate) end: LaneEnd,
    pub(crate) sent: SentFrames,
}

impl Lane for SimulatedLane {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn has_room(&self, _: Pe) -> bool {
        let mut queue = lock(&self.sent.0);
        let has_room = queue.frames.len() < SENT_FRAMES_MAX;
        queue.has_refused |= !has_room;
        has_room
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        assert!(to != self.pe && frame.len() <= self.frame_bytes_max, "no port does that");
        if !self.has_room(to) {
            return Ok(false);
        }
        let frame = Frame(std::mem::take(frame));
        lock(&self.sent.0).frames.push_back(SentFrame { to, lane: self.number, frame });
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let mut arrivals = lock(&self.end.0);
        let count = arrivals.frames.len();
        arrivals.frames.drain(..).for_each(|(from, frame)| deliver(from, &frame.0));
        Ok(count)
    }

    fn forget(&mut self, pe: Pe) {
        lock(&self.sent.0).frames.retain(|frame| frame.lane != self.number || frame.to != pe);
    }

    fn is_flushed(&mut self) -> bool {
        lock(&self.sent.0).frames.is_empty()
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::new(NoSleeper)
    }
}

impl Drop for SimulatedLane {
    fn drop(&mut self) {
        let mut arrivals = lock(&self.end.0);
        arrivals.is_left = true;
        arrivals.frames.clear();
        lock(&self.sent.0).frames.retain(|frame| frame.lane != self.number);
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
