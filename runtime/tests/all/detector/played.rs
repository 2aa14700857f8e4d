//! Detectors within the test, and PEs that the test plays.

use super::PATIENCE;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use ultramarine_runtime::detector::{
    Detector, DetectorCounters, DetectorEndpoint, DetectorSettings, FailureEvent,
};
use ultramarine_runtime::handshake::{Handshake, JobKey, Purpose, SEAL_BYTES, Session};
use ultramarine_runtime::protocol::{Heading, Notice};
use ultramarine_runtime::wire;
use ultramarine_topology::{Pe, Topology};

pub(crate) const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) const SETTINGS: DetectorSettings = DetectorSettings {
    heartbeat: Duration::from_millis(50),
    dead_after: Duration::from_secs(1),
    stalled_after: Duration::from_secs(3),
    root_after: Duration::from_secs(3),
    succession: false,
};

/// A detector within the test, and what it reports.
pub(crate) struct Watcher {
    pub(crate) detector: Detector,
    pub(crate) events: mpsc::Receiver<FailureEvent>,
    pub(crate) address: SocketAddr,
}

/// The key, and the addresses of real detectors and of PEs to be played, in this order.
pub(crate) struct Job {
    pub(crate) key: JobKey,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) played: Vec<TcpListener>,
}

impl Job {
    /// A job on one host, in which the last `played` PEs are played by the test.
    pub(crate) fn start(real: usize, played: usize, settings: DetectorSettings) -> Job {
        Job::with_connections_max(usize::MAX, real, played, settings)
    }

    /// The same, of real detectors that may each have this number of connections.
    pub(crate) fn with_connections_max(
        connections_max: usize,
        real: usize,
        played: usize,
        settings: DetectorSettings,
    ) -> Job {
        Job::at(|_| LOCALHOST, connections_max, real, played, settings)
    }

    /// The same, each PE on a host of its own: with an address of its own.
    pub(crate) fn apart(real: usize, played: usize, settings: DetectorSettings) -> Job {
        let ip = |pe| IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + pe as u8));
        Job::at(ip, usize::MAX, real, played, settings)
    }

    fn at(
        ip: impl Fn(usize) -> IpAddr,
        connections_max: usize,
        real: usize,
        played: usize,
        settings: DetectorSettings,
    ) -> Job {
        let key = JobKey::random().unwrap();
        let bind = |pe| DetectorEndpoint::bind(ip(pe), None).unwrap();
        let endpoints: Vec<_> =
            (0..real).map(|pe| bind(pe).with_connections_max(connections_max)).collect();
        let played: Vec<_> =
            (real..real + played).map(|pe| TcpListener::bind((ip(pe), 0)).unwrap()).collect();
        let addresses: Vec<_> = endpoints
            .iter()
            .map(DetectorEndpoint::address)
            .chain(played.iter().map(|listener| listener.local_addr().unwrap()))
            .collect();
        let topology = Arc::new(Topology::flat(addresses.len() as u32));
        let watchers = endpoints.into_iter().zip(0..).map(|(endpoint, number)| {
            let (sender, events) = mpsc::channel();
            let report = Box::new(move |event| drop(sender.send(event)));
            let (topology, addresses) = (Arc::clone(&topology), addresses.clone());
            let (me, address) = (Pe::new(number), endpoint.address());
            let detector =
                Detector::start(me, topology, endpoint, addresses, key, settings, report);
            Watcher { detector: detector.unwrap(), events, address }
        });
        Job { key, watchers: watchers.collect(), played }
    }

    /// Waits until each of the real PEs has heard of this death.
    #[track_caller]
    pub(crate) fn all_hear_of(&self, dead: Pe) {
        for watcher in &self.watchers {
            assert_eq!(watcher.event(), FailureEvent::Dead(vec![dead]));
        }
    }

    /// Ends it in order.
    pub(crate) fn goodbye(self) {
        self.watchers.into_iter().for_each(|watcher| drop(watcher.detector.goodbye()));
    }
}

impl Watcher {
    pub(crate) fn event(&self) -> FailureEvent {
        self.events.recv_timeout(PATIENCE).expect("a event")
    }

    pub(crate) fn counters(&self) -> Arc<DetectorCounters> {
        self.detector.counters()
    }

    pub(crate) fn is_quiet_for(&self, time: Duration) -> bool {
        self.events.recv_timeout(time).is_err()
    }
}

/// A heartbeat of a PE that knows this number of deaths.
pub(crate) const fn known(dead: u32) -> Notice {
    Notice::Known { of: Heading::FIRST, dead }
}

/// One connection of a PE that the test plays.
pub(crate) struct Call {
    pub(crate) stream: TcpStream,
    session: Session,
    sent: u64,
    heard: u64,
    /// The bytes that this end sent in the handshake.
    pub(crate) recorded: Vec<u8>,
}

impl Call {
    /// Connects to a detector.
    pub(crate) fn dial(address: SocketAddr, key: JobKey, from: Pe, to: Pe) -> Call {
        let (handshake, hello) = Handshake::dial(key, Purpose::Detector, from, to).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&hello).unwrap();
        Call::finish(stream, handshake, hello.to_vec())
    }

    /// Accepts the connection of a detector.
    pub(crate) fn accept(listener: &TcpListener, key: JobKey, me: Pe, pes: u32) -> Call {
        let (stream, _) = listener.accept().unwrap();
        Call::finish(stream, Handshake::accept(key, Purpose::Detector, me, pes), Vec::new())
    }

    fn finish(mut stream: TcpStream, mut handshake: Handshake, mut recorded: Vec<u8>) -> Call {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the handshake goes on");
            let mut answer = Vec::new();
            let peer = handshake.read(&mut &byte[..], &mut answer).expect("all know the key");
            stream.write_all(&answer).unwrap();
            recorded.extend(answer);
            if let Some(peer) = peer {
                return Call { stream, session: peer.session, sent: 0, heard: 0, recorded };
            }
        }
    }

    /// The next frame with this notice.
    pub(crate) fn frame(&mut self, notice: &Notice) -> Vec<u8> {
        let text = wire::encode(notice).unwrap();
        let mut frame = ((text.len() + SEAL_BYTES) as u32).to_le_bytes().to_vec();
        frame.extend(&text);
        frame.extend(self.session.seal(self.sent, &text));
        self.sent += 1;
        frame
    }

    pub(crate) fn say(&mut self, notice: &Notice) {
        let frame = self.frame(notice);
        self.stream.write_all(&frame).unwrap();
    }

    /// Reads the next notice that is no heartbeat; `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<Notice> {
        loop {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length).ok()?;
            let mut frame = vec![0; u32::from_le_bytes(length) as usize];
            self.stream.read_exact(&mut frame).ok()?;
            let (text, seal) = frame.split_last_chunk::<SEAL_BYTES>().unwrap();
            assert!(self.session.holds(self.heard, text, seal));
            self.heard += 1;
            let notice = wire::decode(text).unwrap();
            if !matches!(notice, Notice::Known { .. }) {
                return Some(notice);
            }
        }
    }

    /// Waits until the other end closes the connection.
    pub(crate) fn wait_for_end(mut self) {
        while self.hear().is_some() {}
    }
}
