//! The lane over TCP: the lane of a job without MPI, and the fallback lane of a job whose MPI
//! cannot be trusted any more because a PE has died.
//!
//! Each PE listens on one [`TcpEndpoint`]. At start-up all PEs get the addresses of all, and a
//! random [`JobKey`]; then [`TcpEndpoint::into_lane`] makes the lane.
//!
//! - **One connection for each pair.** A PE dials another when it first has a frame for it, and
//!   both send on the connection. If two PEs dial each other at once, one connection stays
//!   (`duplicates.rs`).
//! - **A limited number of connections.** Each takes a file descriptor. Beyond a limit the
//!   connection that was used least recently is closed in order, and dialled again when it is
//!   needed (`make_room.rs`).
//! - **A connection begins with a [handshake](crate::handshake)**, which proves to both ends that
//!   the other is the PE that it should be. A connection that begins otherwise, or whose handshake
//!   is not completed in time, is closed and counted, and has no effect. Frames wait until the
//!   handshake is done.
//! - **Then frames**, each behind its length as a little-endian `u32`. A length over the limit
//!   closes the connection. Nothing is ever allocated because of a length that was received.
//! - **A broken connection loses frames.** A lane may do that: the link sends them again. With the
//!   next frame the PE is dialled again, after a short, growing delay.
//!
//! Nothing here blocks, and nothing here knows what a frame means.

mod accept;
mod connection;
mod counters;
mod duplicates;
mod make_room;
mod peer;
mod sleeper;
mod sockets;
#[cfg(test)]
mod tests;

pub use crate::handshake::JobKey;
pub use counters::TcpCounters;

use super::error::LaneError;
use super::lane::{Connections, Lane, Sleeper};
use super::listener::Listener;
use super::port_range;
use crate::addresses::Addresses;
use connection::FRAME_BYTES_MAX;
use mio::net::TcpListener;
use mio::{Events, Poll, Token};
use sleeper::PollSleeper;
use sockets::Sockets;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ultramarine_topology::Pe;

/// The number of readiness events taken at once.
const EVENTS_MAX: usize = 256;

const LISTENER: Token = Token(0);

/// The number of descriptors that a lane takes beside its connections.
pub const DESCRIPTORS: u64 = 4;

/// A new key for a job's connections.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn new_job_key() -> Result<JobKey, LaneError> {
    let io = |source| LaneError::Io { doing: "drawing a key for the job".to_owned(), source };
    JobKey::random().map_err(io)
}

/// The address at which a PE can be called, before it knows those of the others.
#[derive(Debug)]
pub struct TcpEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl TcpEndpoint {
    /// Listens on the first of these ports that is free, or on a port that the system chooses.
    ///
    /// # Errors
    ///
    /// The address is not one of this host, or no port is free.
    pub fn bind(ip: IpAddr, ports: Option<RangeInclusive<u16>>) -> Result<TcpEndpoint, LaneError> {
        let (listener, address) = port_range::listen(ip, ports)?;
        Ok(TcpEndpoint { listener, address })
    }

    /// The address at which the other PEs can call.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A second descriptor of the socket. As long as it is open, the system answers those that call
    /// this address.
    ///
    /// # Errors
    ///
    /// There is no descriptor left.
    pub fn second_descriptor(&self) -> io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// The lane of PE `me`, in a job whose PEs have these addresses and this key. It has at most
    /// `connections_max` connections, or [`CONNECTIONS_MIN`](super::CONNECTIONS_MIN) if that is
    /// more. Other PEs may have called already.
    ///
    /// # Errors
    ///
    /// There is no address for `me`, or the system refuses what is needed to wait for sockets.
    pub fn into_lane(
        self,
        me: Pe,
        addresses: impl Into<Addresses>,
        key: JobKey,
        connections_max: usize,
    ) -> Result<TcpLane, LaneError> {
        let addresses = addresses.into();
        if me.index() >= addresses.count() {
            return Err(LaneError::NoSuchPe(me));
        }
        let io = |source| LaneError::Io { doing: "setting up the TCP lane".into(), source };
        let poll = Poll::new().map_err(io)?;
        let registry = Arc::new(poll.registry().try_clone().map_err(io)?);
        let listener = Listener::new(self.listener, &registry, LISTENER).map_err(io)?;
        Ok(TcpLane {
            sleeper: Arc::new(PollSleeper::new(Arc::clone(&registry))?),
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            sockets: Sockets::new((me, key), addresses, registry, listener, connections_max),
        })
    }
}

/// One PE's end of the connections to all others. See the [module](self).
pub struct TcpLane {
    poll: Poll,
    events: Events,
    sockets: Sockets,
    sleeper: Arc<PollSleeper>,
}

impl TcpLane {
    /// This lane's counters.
    pub fn counters(&self) -> Arc<TcpCounters> {
        Arc::clone(&self.sockets.counters)
    }
}

/// The socket that listens may stay open for [another use](TcpEndpoint::second_descriptor): then
/// callers would wait for an answer, and with what they send last.
impl Drop for TcpLane {
    fn drop(&mut self) {
        self.sockets.listener.turn_away();
    }
}

impl Lane for TcpLane {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit: FRAME_BYTES_MAX });
        }
        self.sockets.send(to, frame)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        match self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                let doing = "asking for the TCP lane's events".into();
                return Err(LaneError::Io { doing, source: error });
            }
            _ => {}
        }
        self.sockets.listener.check().map_err(|source| {
            let doing = "listening for other PEs on the TCP lane".to_owned();
            LaneError::Io { doing, source }
        })?;
        for event in &self.events {
            match event.token() {
                LISTENER => self.sockets.listener.on_call(),
                Token(connection) => self.sockets.on_event(connection - 1, event),
            }
        }
        let frames = self.sockets.round(deliver);
        self.sleeper.set(self.sockets.has_unread(), self.sockets.is_restless());
        Ok(frames)
    }

    fn forget(&mut self, pe: Pe) {
        self.sockets.forget(pe);
    }

    fn is_flushed(&mut self) -> bool {
        self.sockets.is_flushed()
    }

    fn connections(&self) -> Connections {
        Connections {
            opened: self.sockets.counters.dialled.load(Ordering::Relaxed),
            accepted: self.sockets.counters.accepted.load(Ordering::Relaxed),
        }
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::<PollSleeper>::clone(&self.sleeper)
    }
}
