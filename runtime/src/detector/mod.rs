//! The detector: notices when another PE of the job is gone, and agrees with the others on who is.
//!
//! It has a port and a thread of its own, beside whatever carries the job's messages, so that
//! neither bulk data nor a library that hangs is in its way. It must never know what a task is.
//!
//! - **Watching.** Each PE shares connections with a few others (`watch.rs`). Both ends send
//!   heartbeats, and both judge. If a process is killed, its system closes the connection; the
//!   other end dials again at once, and if that is refused, the PE is gone. If a PE falls silent,
//!   it is dialled again and again. While its host takes the calls it has only stalled, and has
//!   [`stalled_after`](DetectorSettings::stalled_after); if the host does not answer either, it has
//!   [`dead_after`](DetectorSettings::dead_after) (`sight.rs`).
//! - **Agreeing.** A PE that loses another does not decide: it tells the root, which looks for
//!   itself. The rules are those of the [agreement](crate::protocol::membership), whose notices the
//!   detector carries, on the connections that are there or on new ones. Its events come out of
//!   `report`.
//! - **Slow is not dead.** What has come is read before anybody is judged. While this thread itself
//!   does not run, because its process is stopped or gets no core, no time passes for the others
//!   (`clock.rs`). Those that have never been heard, because their job is only starting, have
//!   longer. If it is this host that cannot dial, no other is blamed.
//! - **Strangers.** A connection begins with a [handshake](crate::handshake), and every frame after
//!   it is sealed (`frame.rs`). Anything else is closed and counted, without effect.
//!
//! ```no_run
//! use std::sync::{Arc, mpsc};
//! use ultramarine_runtime::detector::{Detector, DetectorEndpoint, DetectorSettings, FailureEvent};
//! use ultramarine_runtime::handshake::JobKey;
//! use ultramarine_topology::{Pe, Topology};
//! # fn exchange(own: std::net::SocketAddr) -> (Vec<std::net::SocketAddr>, JobKey) { panic!() }
//! let endpoint = DetectorEndpoint::bind("127.0.0.1".parse()?, None)?;
//! // The addresses of all and the key are agreed on at start-up.
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
mod notices;
mod peer;
mod reachability;
mod rings;
mod settings;

pub use counters::DetectorCounters;
pub use event::FailureEvent;
pub use settings::DetectorSettings;

use crate::addresses::Addresses;
use crate::handshake::JobKey;
use crate::transport::{LaneError, port_range};
use event_loop::{DetectorCommand, EventLoop};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use ultramarine_topology::{Pe, Topology};

/// Where a PE's detector can be called, before it knows where the others can be.
#[derive(Debug)]
pub struct DetectorEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl DetectorEndpoint {
    /// Listens on the first free one of these ports of this address, or on one that the system
    /// chooses. From now on until the detector's end a call of another is not refused.
    ///
    /// # Errors
    ///
    /// If the address is not this host's, or no port is free.
    pub fn bind(ip: IpAddr, ports: Option<RangeInclusive<u16>>) -> Result<Self, LaneError> {
        let (listener, address) = port_range::listen(ip, ports)?;
        Ok(DetectorEndpoint { listener, address })
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
    /// Starts the detector of PE `me`, in a job whose PEs have these addresses and
    /// this key. Its events go to `report`, called on the detector's thread,
    /// which it must not hold up.
    ///
    /// # Errors
    ///
    /// If there is not an address for each PE, or the system refuses a thread or what is needed to
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
            EventLoop::new(job, poll, endpoint.listener, commands, Arc::clone(&counters), report)
                .map_err(io)?;
        let name = format!("pe{}-detector", me.number());
        let thread = std::thread::Builder::new().name(name);
        let thread = thread.spawn(move || event_loop.run()).map_err(io)?;
        Ok(Detector { commands: sender, waker, counters, thread: Some(thread) })
    }

    /// Has the detector look at a PE that seems silent to somebody else. It is given up only if the
    /// detector loses it, too.
    pub fn suspect(&self, pe: Pe) {
        self.order(DetectorCommand::Suspect(pe));
    }

    /// Leaves in order: tells those with whom it shares a connection that the job is over, so that
    /// its end is no death, and ends the thread. Takes half a second at most. (If it was expelled
    /// or has lost the root, it says no goodbye, but gets that last news out.)
    pub fn goodbye(mut self) -> Arc<DetectorCounters> {
        self.order(DetectorCommand::Goodbye);
        self.join();
        Arc::clone(&self.counters)
    }

    /// What this detector sees.
    pub fn counters(&self) -> Arc<DetectorCounters> {
        Arc::clone(&self.counters)
    }

    fn order(&self, command: DetectorCommand) {
        // A thread that has ended takes no orders; and a failure to wake it is a late answer.
        let _ = self.commands.send(command);
        let _ = self.waker.wake();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so, and the others see a crash.
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
