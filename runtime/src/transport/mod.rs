//! Frames between PEs.
//!
//! Two layers, neither of which knows what a frame means:
//!
//! - a [`Lane`] carries frames of at most [`Lane::frame_bytes_max`] bytes between the PEs of a job:
//!   [`memory`] (PEs as threads of one process), [`tcp`], and `mpi`;
//! - a [`Port`] stands above one lane and gives each pair of PEs a reliable first-in-first-out
//!   channel of messages of any length up to a limit: it cuts and joins messages, numbers,
//!   acknowledges, checks and resends frames.
//!
//! There is no thread in here. The thread that makes progress calls [`Port::poll`]; a thread that
//! has nothing to do sleeps in the lane's [`Sleeper`].

pub mod descriptors;
pub mod link;
pub(crate) mod listener;
pub mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
pub(crate) mod pieces;
pub(crate) mod ports;
mod shelf;
pub mod tcp;
#[cfg(test)]
mod testing;

pub use link::{Port, PortSettings};
pub use shelf::Shelf;

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
    fn shelf(&self) -> Option<Arc<Shelf>> {
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

/// Why a lane cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The job has no such PE.
    #[error("{0} does not exist in this job")]
    NoSuchPe(Pe),
    /// A PE of this process is no longer there. Told once to each that sends to it.
    #[error("{0} has left the job before its end; what it said itself stands above")]
    HasLeft(Pe),
    /// A frame longer than the lane carries; a defect of the layer above.
    #[error("a frame of {bytes} bytes is longer than the {limit} bytes that the lane carries")]
    FrameTooLong {
        /// Its length.
        bytes: usize,
        /// What the lane carries.
        limit: usize,
    },
    /// The operating system refused a socket operation.
    #[error("{doing}: {source}{}", descriptors::hint(.source))]
    Io {
        /// What was being done, and towards whom.
        doing: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// This process may not open as many files as it must.
    #[error(
        "out of file descriptors: RLIMIT_NOFILE is {limit}, which leaves {left}, and at least \
         {needed} are needed. Raise it with `ulimit -n {enough}` (or more) before the start"
    )]
    Descriptors {
        /// How many it may have.
        limit: u64,
        /// How many are left.
        left: u64,
        /// How many must be left.
        needed: u64,
        /// The limit that would be enough.
        enough: u64,
    },
    /// Every port that may be used is in use.
    #[error(
        "no port to listen for PEs on: all from {first} to {last} are taken on {ip}; \
         give a wider range, as in --ports 40000-40100: each process takes two"
    )]
    NoPort {
        /// The address to listen on.
        ip: std::net::IpAddr,
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
    /// MPI returned an error code.
    #[error("{call} failed: {message}")]
    Mpi {
        /// The MPI function.
        call: &'static str,
        /// What `MPI_Error_string` says of its code.
        message: String,
    },
}
