//! The failure detector: notices when another PE of the job is gone, and agrees with the other PEs
//! on which PEs are dead.
//!
//! It has its own TCP port and its own thread, apart from whatever carries the job's messages. So
//! neither bulk data nor a library that hangs can delay it. It must never know what a task is.
//!
//! - **Watching.** Each PE shares connections with a few others (`watch/rings.rs`). Both ends send
//!   heartbeats and watch each other. If a process is killed, its system closes the connection. The
//!   other end dials again at once, and a [witness](Witness) says that the PE is gone. A PE that
//!   falls silent is dialled again and again. While its host accepts the calls, it has only
//!   stalled, and is lost after [`stalled_after`](DetectorSettings::stalled_after); if its host
//!   does not answer either, after [`dead_after`](DetectorSettings::dead_after)
//!   (`watch/reachability.rs`).
//! - **Agreeing.** A PE that loses another does not decide that it is dead. It tells the root,
//!   which looks for itself. The rules are those of [membership](crate::protocol::membership); the
//!   detector carries its notices, on existing connections or on new ones. The resulting
//!   [events](FailureEvent) go to `report`.
//! - **Slow is not dead.** The detector reads everything that has arrived before it judges any PE.
//!   While its own thread does not run, because its process is stopped or gets no core, no time
//!   passes for the others (`clock.rs`). A PE that has never been heard gets more time, since its
//!   process may still be starting. If this host cannot dial, no other host is blamed.
//! - **Rules apart from sockets.** A state machine, the [`watch`], decides which PEs to dial, what
//!   to send, and what each silence means. The thread owns the sockets and the clock
//!   (`event_loop.rs`). A simulator drives the same watch without them.
//! - **A limited number of connections**, so that the lane and the program get the file descriptors
//!   that they need (`make_room.rs`).
//! - **Strangers.** A connection begins with a [handshake](crate::handshake), and every frame after
//!   it is sealed (`frame.rs`). Any other connection is closed and counted, and has no effect.
//!
//! ```no_run
//! use std::sync::{Arc, mpsc};
//! use ultramarine_runtime::detector::{Detector, DetectorEndpoint, DetectorSettings, FailureEvent};
//! use ultramarine_runtime::handshake::JobKey;
//! use ultramarine_topology::{Pe, Topology};
//! # fn exchange(own: std::net::SocketAddr) -> (Vec<std::net::SocketAddr>, JobKey) { panic!() }
//! let endpoint = DetectorEndpoint::bind("127.0.0.1".parse()?, None)?;
//! // All PEs agree on the addresses and on the key at start-up.
//! let (addresses, key) = exchange(endpoint.address());
//! let topology = Arc::new(Topology::flat(addresses.len() as u32));
//! let (sender, events) = mpsc::channel();
//! let report = Box::new(move |event| drop(sender.send(event)));
//! let settings = DetectorSettings::default();
//! let detector =
//!     Detector::start(Pe::new(3), topology, endpoint, addresses, key, settings, report)?;
//! if let FailureEvent::Dead(pes) = events.recv()? {
//!     println!("{pes:?} are gone");
//! }
//! detector.goodbye();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod close_reason;
mod connection;
mod counters;
mod event;
mod event_loop;
mod frame;
mod make_room;
mod settings;
pub mod watch;
mod witness;

pub use counters::DetectorCounters;
pub use event::FailureEvent;
pub use settings::DetectorSettings;
pub use witness::Witness;

use crate::addresses::Addresses;
use crate::handshake::JobKey;
use crate::transport::{LaneError, port_range};
use event_loop::{DetectorCommand, EventLoop};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use ultramarine_topology::{Pe, Topology};

/// The address at which a PE's detector can be called, before it knows those of the others.
#[derive(Debug)]
pub struct DetectorEndpoint {
    listener: TcpListener,
    address: SocketAddr,
    connections_max: usize,
}

impl DetectorEndpoint {
    /// Listens on the first of these ports that is free, or on a port that the system chooses. From
    /// now on until the detector's end, calls of other PEs are not refused.
    ///
    /// # Errors
    ///
    /// The address is not one of this host, or no port is free.
    pub fn bind(ip: IpAddr, ports: Option<RangeInclusive<u16>>) -> Result<Self, LaneError> {
        let (listener, address) = port_range::listen(ip, ports)?;
        Ok(DetectorEndpoint { listener, address, connections_max: usize::MAX })
    }

    /// Limits the detector to this number of connections, or to
    /// [`CONNECTIONS_MIN`](crate::transport::CONNECTIONS_MIN) if that is more. Default: no limit.
    #[must_use]
    pub fn with_connections_max(self, connections_max: usize) -> Self {
        DetectorEndpoint { connections_max, ..self }
    }

    /// A second descriptor of the socket, for a [`Witness`] of this process's end.
    ///
    /// # Errors
    ///
    /// There is no descriptor left.
    pub fn second_descriptor(&self) -> io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// The address at which the other PEs can call.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A running detector.
///
/// Dropping it closes all connections at once, which to the others looks like a crash.
#[derive(Debug)]
pub struct Detector {
    commands: mpsc::Sender<DetectorCommand>,
    waker: Arc<Waker>,
    counters: Arc<DetectorCounters>,
    thread: Option<JoinHandle<()>>,
}

impl Detector {
    /// Starts the detector of PE `me`, in a job whose PEs have these addresses and this key. The
    /// detector's thread calls `report` with each event; `report` must not block.
    ///
    /// # Errors
    ///
    /// There is not an address for each PE, or the system refuses a thread or what is needed to
    /// wait for sockets.
    pub fn start(
        me: Pe,
        topology: Arc<Topology>,
        endpoint: DetectorEndpoint,
        addresses: impl Into<Addresses>,
        key: JobKey,
        settings: DetectorSettings,
        report: Box<dyn Fn(FailureEvent) + Send>,
    ) -> Result<Detector, LaneError> {
        let addresses = addresses.into();
        if me.number() >= topology.pes() || addresses.count() != topology.pes() as usize {
            return Err(LaneError::NoSuchPe(me.max(Pe::new(addresses.count() as u32))));
        }
        let io = |source| LaneError::Io { doing: "starting the detector".into(), source };
        let poll = Poll::new().map_err(io)?;
        let waker = Arc::new(Waker::new(poll.registry(), event_loop::WAKER).map_err(io)?);
        let (sender, commands) = mpsc::channel();
        let counters = Arc::<DetectorCounters>::default();
        let job = event_loop::JobInfo { me, topology, addresses, key, settings };
        let event_loop =
            EventLoop::new(job, poll, endpoint, commands, Arc::clone(&counters), report)
                .map_err(io)?;
        let name = format!("pe{}-detector", me.number());
        let thread = std::thread::Builder::new().name(name);
        let thread = thread.spawn(move || event_loop.run()).map_err(io)?;
        Ok(Detector { commands: sender, waker, counters, thread: Some(thread) })
    }

    /// Makes the detector look at a PE that seems silent to another part of this PE. The PE is lost
    /// only if the detector cannot reach it either.
    pub fn suspect(&self, pe: Pe) {
        self.order(DetectorCommand::Suspect(pe));
    }

    /// On the root of a job that could go on without it: asks the others to agree that the job ends
    /// here. [`FailureEvent::EndAgreed`] says that they have.
    pub fn ask_end(&self) {
        self.order(DetectorCommand::AskEnd);
    }

    /// Leaves in order: tells the PEs to which it has a connection that the job is over, so that
    /// they do not take its end for a death, and ends the thread. Takes at most 500 ms. (A PE that
    /// was expelled or has lost the root says no goodbye, but still sends its last notices.)
    pub fn goodbye(mut self) -> Arc<DetectorCounters> {
        self.order(DetectorCommand::Goodbye);
        self.join();
        Arc::clone(&self.counters)
    }

    /// This detector's counters.
    pub fn counters(&self) -> Arc<DetectorCounters> {
        Arc::clone(&self.counters)
    }

    fn order(&self, command: DetectorCommand) {
        // A thread that has ended takes no commands. If it is not woken, it answers later.
        let _ = self.commands.send(command);
        let _ = self.waker.wake();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already, and the other PEs see a crash.
            let _: Result<(), _> = thread.join();
        }
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.order(DetectorCommand::Stop);
            self.join();
        }
    }
}
