//! What a lane is: the interface between a port and whatever carries its frames.

use super::error::LaneError;
use super::handoff::ArrayHandoff;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Ball, Pe};

/// Carries frames from PE to PE. Frames between one pair of PEs arrive in the order in which they
/// were sent, or not at all.
pub trait Lane: Send {
    /// `"mpi"`, `"tcp"` or `"memory"`.
    fn name(&self) -> &'static str;

    /// The longest frame that the lane carries, in bytes.
    fn frame_bytes_max(&self) -> usize;

    /// PEs to which the lane carries shorter frames only, and how long these may be, in bytes.
    fn shorter_frames(&self) -> Option<(Ball, usize)> {
        None
    }

    /// Whether [`send`](Lane::send) will probably take a frame; making one that it refuses costs
    /// time.
    fn has_room(&self, _: Pe) -> bool {
        true
    }

    /// Hands a frame to the lane, which may take its memory and leave an empty buffer in its place.
    /// `Ok(false)`: the lane is full towards `to`; try again after a [`poll`](Lane::poll).
    ///
    /// # Errors
    ///
    /// There is no such PE, the frame is too long, or the lane failed.
    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError>;

    /// Hands the frames that have arrived to `deliver`, up to a limit, and sends frames that still
    /// wait. Never blocks. Returns the number of frames delivered.
    ///
    /// # Errors
    ///
    /// The lane failed.
    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError>;

    /// Drops the frames that wait for a dead PE.
    fn forget(&mut self, _: Pe) {}

    /// Whether everything handed to [`send`](Lane::send) has left this PE.
    fn is_flushed(&mut self) -> bool;

    /// The part of the lane that makes calls which may never return, if it has one. It is taken
    /// once, by the code that calls it from then on; without it no frame moves.
    fn take_pump(&mut self) -> Option<Box<dyn Pump>> {
        None
    }

    /// Whether the lane delivers every frame that it takes, once and undamaged, as long as the
    /// receiver lives. Then the link never sends anything again.
    fn is_lossless(&self) -> bool {
        false
    }

    /// The numbers of connections made so far. Zeros for a lane without connections.
    fn connections(&self) -> Connections {
        Connections::default()
    }

    /// The table by which PEs hand arrays to each other, if the lane connects PEs of one process.
    fn handoff(&self) -> Option<Arc<ArrayHandoff>> {
        None
    }

    /// Where a thread sleeps while there is nothing to do. The sleeper may outlive the lane.
    fn sleeper(&self) -> Arc<dyn Sleeper>;
}

/// The numbers of TCP connections that were made, including those that have ended. A connection
/// counts when its handshake is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Dialled by this PE.
    pub opened: u64,
    /// Accepted by this PE.
    pub accepted: u64,
}

impl std::ops::Add for Connections {
    type Output = Connections;

    fn add(self, other: Connections) -> Connections {
        Connections { opened: self.opened + other.opened, accepted: self.accepted + other.accepted }
    }
}

/// Makes calls into a library that may hang. It is apart from the [`Lane`], so that a thread that
/// holds the lane never waits for them.
pub trait Pump: Send {
    /// Moves frames between the lane's queues and the library, up to a limit. Returns whether any
    /// frame moved. The lane reports errors.
    fn pump(&mut self) -> bool;

    /// Ends what has been begun in the library, before this is called no more. All other processes
    /// are there, so that no call hangs.
    fn end(&mut self) {}
}

/// Lets one thread sleep while another may be polling the lane.
pub trait Sleeper: Send + Sync {
    /// Returns after `at_most`, or earlier when a thread calls [`wake`](Sleeper::wake) (also just
    /// before) or, if [`wakes_on_traffic`](Sleeper::wakes_on_traffic), when a frame arrives. May
    /// return early for no reason.
    fn sleep(&self, at_most: Duration);

    /// Ends the sleep of the thread in [`sleep`](Sleeper::sleep), or else the next one.
    fn wake(&self);

    /// Whether an arriving frame ends the sleep. If not, the thread must poll from time to time.
    fn wakes_on_traffic(&self) -> bool;
}
