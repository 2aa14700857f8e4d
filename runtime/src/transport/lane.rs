//! What a lane is: the interface between a port and whatever carries its frames.

use super::error::LaneError;
use super::handoff::ArrayHandoff;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// A way for frames to go from PE to PE. Frames between one pair of PEs arrive in the order in
/// which they were sent, or not at all.
pub trait Lane: Send {
    /// `"mpi"`, `"tcp"` or `"memory"`.
    fn name(&self) -> &'static str;

    /// The longest frame that the lane carries, in bytes.
    fn frame_bytes_max(&self) -> usize;

    /// Whether [`send`](Lane::send) may take a frame: making one that it refuses takes time. May
    /// err.
    fn has_room(&self, _: Pe) -> bool {
        true
    }

    /// Hands a frame to the lane, which may take its memory and leave other, empty memory in its
    /// place. `Ok(false)`: the lane is full towards `to`, try again after a [`poll`](Lane::poll).
    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError>;

    /// Hands every frame that has arrived (at most a bounded number, so that the caller gets on)
    /// to `deliver`, and pushes frames on that are still on their way out. Never blocks. Returns
    /// how many frames were delivered.
    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError>;

    /// Drops what still waits to go to a PE that is dead.
    fn forget(&mut self, _: Pe) {}

    /// Whether everything handed to [`send`](Lane::send) has left this PE.
    fn is_flushed(&mut self) -> bool;

    /// The part of the lane that may not come back from a call, if it has one. Taken once, by
    /// the thread that will see to it that frames move: without pumping none does.
    fn take_pump(&mut self) -> Option<Box<dyn Pump>> {
        None
    }

    /// Whether it delivers every frame that it takes, once and undamaged, for as long as there are
    /// PEs to deliver to. Then nothing is ever sent again.
    fn is_lossless(&self) -> bool {
        false
    }

    /// How many connections it has made and taken so far; a lane without connections has none.
    fn connections(&self) -> Connections {
        Connections::default()
    }

    /// Where arrays lie that one PE has for another, if the lane connects PEs of one process.
    fn handoff(&self) -> Option<Arc<ArrayHandoff>> {
        None
    }

    /// What a thread sleeps in while there is nothing to do. May be called at any time; the
    /// sleeper outlives the lane harmlessly.
    fn sleeper(&self) -> Arc<dyn Sleeper>;
}

/// How many TCP connections there have been, those that have ended included. One counts when its
/// handshake is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// To others.
    pub opened: u64,
    /// From others.
    pub accepted: u64,
}

impl std::ops::Add for Connections {
    type Output = Connections;

    fn add(self, other: Connections) -> Connections {
        Connections { opened: self.opened + other.opened, accepted: self.accepted + other.accepted }
    }
}

/// Calls into a foreign library that may hang, kept apart from the [`Lane`] so that the thread that
/// holds the lane never waits for them.
pub trait Pump: Send {
    /// Moves frames between the lane's queues and the library, up to a bound. Returns whether any
    /// moved. What goes wrong, the lane says.
    fn pump(&mut self) -> bool;
}

/// Lets one thread sleep while another may be polling the lane.
pub trait Sleeper: Send + Sync {
    /// Returns after `at_most`, or earlier when somebody called [`wake`](Sleeper::wake) (also
    /// just before) or, if [`wakes_on_traffic`](Sleeper::wakes_on_traffic), when a frame arrives.
    /// May return early for no reason.
    fn sleep(&self, at_most: Duration);

    /// Ends the sleep of the thread in [`sleep`](Sleeper::sleep), or else the next one.
    fn wake(&self);

    /// Whether an arriving frame ends the sleep; if not, the sleeper must poll from time to time.
    fn wakes_on_traffic(&self) -> bool;
}
