//! The connections that this PE dialled, to which it only writes once their handshake is done.

use super::{LaneError, TcpCounters, dialled_token};
use crate::handshake::{CHALLENGE_BYTES, Handshake, JobKey, Purpose, Refusal};
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How many bytes wait, per connection, for the system to take them: enough for several frames.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How long to wait before dialling again after a connection broke; doubles with each that does
/// not last.
const REDIAL_AFTER_MIN: Duration = Duration::from_millis(10);

/// The longest such wait. A connection that lasted longer than this counts as one that lasted.
const REDIAL_AFTER_MAX: Duration = Duration::from_secs(1);

/// How long a connection may take to be there, handshake and all, before it counts as broken.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// All connections that this PE dialled; the index is the PE that was called.
pub(super) struct Outgoing {
    me: Pe,
    key: JobKey,
    addresses: Vec<SocketAddr>,
    connections: Vec<Option<Box<Dialled>>>,
}

/// A way to one PE: a connection, or the reason why there is none at the moment.
struct Dialled {
    stream: Option<TcpStream>,
    /// The system has the connection, not only the wish for one.
    is_connected: bool,
    /// The handshake, until it is done.
    handshake: Option<Handshake>,
    /// What the system has not taken yet of what the handshake says.
    greeting: Vec<u8>,
    /// What the system has not taken yet of the frames: begins wherever a write stopped.
    waiting: VecDeque<u8>,
    /// When it was dialled.
    since: Instant,
    /// Not to be dialled again before this.
    redial_at: Instant,
    /// How many connections in a row did not last.
    failures: u32,
}

impl Outgoing {
    pub(super) fn new(me: Pe, key: JobKey, addresses: Vec<SocketAddr>) -> Self {
        let connections = std::iter::repeat_with(|| None).take(addresses.len()).collect();
        Outgoing { me, key, addresses, connections }
    }

    /// Hands over a frame. `Ok(false)`: not now.
    pub(super) fn send(
        &mut self,
        to: Pe,
        frame: &[u8],
        registry: &Registry,
        counters: &TcpCounters,
    ) -> Result<bool, LaneError> {
        let slot = self.connections.get_mut(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        let is_first = slot.is_none();
        let dialled = slot.get_or_insert_with(|| Box::new(Dialled::new()));
        if dialled.handshake.is_some() && dialled.since.elapsed() > HANDSHAKE_WITHIN {
            dialled.hang_up(counters);
        }
        if dialled.stream.is_none() {
            let now = Instant::now();
            if now < dialled.redial_at {
                return Ok(false);
            }
            if !is_first {
                TcpCounters::count(&counters.redials);
            }
            let address = self.addresses[to.index()];
            let handshake = Handshake::dial(self.key, Purpose::Lane, self.me, to);
            let dial = |(handshake, hello): (Handshake, [u8; _])| {
                dialled.dial(address, dialled_token(to), registry, now)?;
                dialled.greeting.extend(hello);
                dialled.handshake = Some(handshake);
                Ok(())
            };
            if handshake.and_then(dial).is_err() {
                dialled.hang_up(counters);
                return Ok(false);
            }
        }
        let is_taken = dialled.send(frame);
        if is_taken.is_err() {
            dialled.hang_up(counters);
        }
        Ok(is_taken.unwrap_or(false))
    }

    /// Something happened on the connection to `to`.
    pub(super) fn on_event(&mut self, to: usize, event: &Event, counters: &TcpCounters) {
        let Some(dialled) = self.connections.get_mut(to).and_then(Option::as_mut) else { return };
        let was_greeting = dialled.handshake.is_some();
        match dialled.on_event(event) {
            Ok(()) if was_greeting && dialled.handshake.is_none() => {
                TcpCounters::count(&counters.dialled);
            }
            Ok(()) => {}
            Err(Refusal::Forged) => {
                TcpCounters::count(&counters.forged);
                dialled.hang_up(counters);
            }
            Err(_) => dialled.hang_up(counters),
        }
    }

    /// Drops the connection to a PE, with whatever waits.
    pub(super) fn forget(&mut self, pe: Pe) {
        if let Some(slot) = self.connections.get_mut(pe.index()) {
            *slot = None;
        }
    }

    /// Whether the system has taken everything.
    pub(super) fn is_flushed(&self) -> bool {
        self.connections.iter().flatten().all(|dialled| dialled.waiting.is_empty())
    }
}

impl Dialled {
    fn new() -> Self {
        let now = Instant::now();
        Dialled {
            stream: None,
            is_connected: false,
            handshake: None,
            greeting: Vec::new(),
            waiting: VecDeque::new(),
            since: now,
            redial_at: now,
            failures: 0,
        }
    }

    fn dial(
        &mut self,
        address: SocketAddr,
        token: Token,
        registry: &Registry,
        now: Instant,
    ) -> io::Result<()> {
        self.since = now;
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        stream.set_nodelay(true)?;
        self.stream = Some(stream);
        Ok(())
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let prefix = (frame.len() as u32).to_le_bytes();
        if self.waiting.len() + prefix.len() + frame.len() > WAITING_BYTES_MAX {
            return Ok(false);
        }
        let mut written = 0;
        if self.is_connected
            && self.handshake.is_none()
            && self.greeting.is_empty()
            && self.waiting.is_empty()
            && let Some(stream) = &mut self.stream
        {
            written = write(stream, &prefix, frame)?;
        }
        self.waiting.extend(&prefix[written.min(prefix.len())..]);
        self.waiting.extend(&frame[written.saturating_sub(prefix.len())..]);
        Ok(true)
    }

    fn on_event(&mut self, event: &Event) -> Result<(), Refusal> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        if (event.is_error() || !self.is_connected)
            && let Some(error) = stream.take_error()?
        {
            return Err(error.into());
        }
        if !self.is_connected {
            match stream.peer_addr() {
                Ok(_) => self.is_connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if event.is_readable() || event.is_read_closed() {
            hear(stream, &mut self.handshake, &mut self.greeting)?;
        }
        while !self.greeting.is_empty() {
            match write(stream, &self.greeting, &[])? {
                0 => return Ok(()),
                written => drop(self.greeting.drain(..written)),
            }
        }
        if self.handshake.is_some() {
            return Ok(());
        }
        while !self.waiting.is_empty() {
            let (front, back) = self.waiting.as_slices();
            match write(stream, front, back)? {
                0 => break,
                written => drop(self.waiting.drain(..written)),
            }
        }
        Ok(())
    }

    /// The connection broke, or could not be made: what waited is lost.
    fn hang_up(&mut self, counters: &TcpCounters) {
        TcpCounters::count(&counters.broken);
        let now = Instant::now();
        if now.duration_since(self.since) > REDIAL_AFTER_MAX {
            self.failures = 0;
        }
        let doubled = REDIAL_AFTER_MIN.saturating_mul(1 << self.failures.min(16));
        self.redial_at = now + doubled.min(REDIAL_AFTER_MAX);
        self.failures += 1;
        self.stream = None;
        self.is_connected = false;
        self.handshake = None;
        self.greeting.clear();
        self.waiting.clear();
    }
}

/// How many bytes of the two pieces the system took; 0 if it takes none now.
fn write(stream: &mut TcpStream, one: &[u8], other: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write_vectored(&[IoSlice::new(one), IoSlice::new(other)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Goes on with the handshake. After that the called PE never writes: all that can come is the end of
/// the connection.
fn hear(
    stream: &mut TcpStream,
    handshake: &mut Option<Handshake>,
    greeting: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let mut buffer = [0; CHALLENGE_BYTES];
    loop {
        let mut bytes = match stream.read(&mut buffer) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(begun) = handshake
            && begun.read(&mut bytes, greeting)?.is_some()
        {
            *handshake = None;
        }
        if !bytes.is_empty() {
            return Err(io::Error::from(ErrorKind::InvalidData).into());
        }
    }
}
