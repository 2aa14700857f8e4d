//! The lane over TCP: of a job without MPI, and the lifeboat of a job whose MPI cannot be trusted
//! any more because a PE has died.
//!
//! Each PE listens on one [`TcpEndpoint`]. The addresses of all, and a random [`JobKey`], are
//! handed out at bootstrap; then [`TcpEndpoint::into_lane`] makes the lane.
//!
//! - **One direction per connection.** A PE dials another when it first has a frame for it, and
//!   only writes to the connections that it dialled; it only reads from those that it accepted. A
//!   pair that talks both ways uses two connections, and no two dials ever have to be reconciled.
//! - **A connection begins with a [handshake](crate::handshake)**, which proves to both ends that the other
//!   is the PE it should be. What begins otherwise, or does not come to its end in time, is closed and
//!   counted, without effect. Frames wait until it is done.
//! - **Then frames**, each behind its length as a little-endian `u32`. A length over the limit
//!   closes the connection; nothing is ever allocated because of a length that was received.
//! - **A broken connection loses frames.** That is allowed to a lane; the link above sends them
//!   again, and with the next frame the PE is dialled again, after a short, growing delay.
//!
//! Nothing here blocks, and nothing here knows what a frame means.

mod counters;
mod incoming;
mod outgoing;
mod sleeper;
#[cfg(test)]
mod tests;

pub use crate::handshake::JobKey;
pub use counters::TcpCounters;

use super::listener::Listener;
use super::{Connections, Lane, LaneError, Sleeper, ports};
use incoming::Incoming;
use mio::net::TcpListener;
use mio::{Events, Poll, Token};
use outgoing::Outgoing;
use sleeper::PollSleeper;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ultramarine_topology::Pe;

/// The longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// How many readiness events are taken at once.
const EVENTS_MAX: usize = 256;

const LISTENER: Token = Token(0);

/// The connection dialled to a PE has an odd token.
fn dialled_token(to: Pe) -> Token {
    Token(2 * to.index() + 1)
}

/// The connection accepted into a place has an even one.
fn accepted_token(place: usize) -> Token {
    Token(2 * place + 2)
}

/// Where a PE can be called, before it knows where the others can be.
#[derive(Debug)]
pub struct TcpEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl TcpEndpoint {
    /// Listens on the first free one of these ports of this address, or on one that the system
    /// chooses.
    ///
    /// # Errors
    ///
    /// If the address is not this host's, or no port is free.
    pub fn bind(ip: IpAddr, ports: Option<RangeInclusive<u16>>) -> Result<TcpEndpoint, LaneError> {
        let (listener, address) = ports::listen(ip, ports)?;
        Ok(TcpEndpoint { listener, address })
    }

    /// The address at which the other PEs can call.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The lane of PE `me`, in a job whose PEs have these addresses (the index is the PE's number)
    /// and this key. Others may have called already.
    ///
    /// # Errors
    ///
    /// If there is no address for `me`, or the system refuses what is needed to wait for sockets.
    pub fn into_lane(
        self,
        me: Pe,
        addresses: Vec<SocketAddr>,
        key: JobKey,
    ) -> Result<TcpLane, LaneError> {
        if me.index() >= addresses.len() {
            return Err(LaneError::NoSuchPe(me));
        }
        let io = |source| LaneError::Io { doing: "setting up the TCP lane".into(), source };
        let poll = Poll::new().map_err(io)?;
        let listener = Listener::new(self.listener, poll.registry(), LISTENER).map_err(io)?;
        Ok(TcpLane {
            sleeper: Arc::new(PollSleeper::new(poll.registry())?),
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            incoming: Incoming::new(me, key, addresses.len(), listener),
            outgoing: Outgoing::new(me, key, addresses),
            counters: Arc::default(),
        })
    }
}

/// One PE's end of the connections to all others. See the [module](self).
pub struct TcpLane {
    poll: Poll,
    events: Events,
    incoming: Incoming,
    outgoing: Outgoing,
    sleeper: Arc<PollSleeper>,
    counters: Arc<TcpCounters>,
}

impl TcpLane {
    /// What this lane sees, for as long as it lives.
    pub fn counters(&self) -> Arc<TcpCounters> {
        Arc::clone(&self.counters)
    }
}

impl Lane for TcpLane {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: Pe, frame: &[u8]) -> Result<bool, LaneError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit: FRAME_BYTES_MAX });
        }
        self.outgoing.send(to, frame, self.poll.registry(), &self.counters)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        match self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                let doing = "asking for the TCP lane's events".into();
                return Err(LaneError::Io { doing, source: error });
            }
            _ => {}
        }
        for event in &self.events {
            match event.token() {
                LISTENER => self.incoming.on_call(),
                Token(odd) if odd % 2 == 1 => {
                    self.outgoing.on_event(odd / 2, event, &self.counters);
                }
                Token(even) => self.incoming.on_readable(even / 2 - 1),
            }
        }
        let frames = self.incoming.round(self.poll.registry(), &self.counters, deliver);
        self.sleeper.set_unread(self.incoming.has_unread());
        Ok(frames)
    }

    fn forget(&mut self, pe: Pe) {
        self.outgoing.forget(pe);
    }

    fn is_flushed(&mut self) -> bool {
        self.outgoing.is_flushed()
    }

    fn connections(&self) -> Connections {
        Connections {
            opened: self.counters.dialled.load(Ordering::Relaxed),
            accepted: self.counters.accepted.load(Ordering::Relaxed),
        }
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::<PollSleeper>::clone(&self.sleeper)
    }
}
