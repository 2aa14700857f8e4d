//! The connections that this PE dialled, to which it only writes.

use super::hello::{Hello, JobKey};
use super::{LaneError, TcpCounters, dialled_token};
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
    /// What the system has not taken yet: begins with the hello, or wherever a write stopped.
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
        let hello = Hello { key: self.key, from: self.me, to };
        let slot = self.connections.get_mut(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        let is_first = slot.is_none();
        let dialled = slot.get_or_insert_with(|| Box::new(Dialled::new()));
        if dialled.stream.is_none() {
            let now = Instant::now();
            if now < dialled.redial_at {
                return Ok(false);
            }
            if !is_first {
                TcpCounters::count(&counters.redials);
            }
            let address = self.addresses[to.index()];
            if dialled.dial(address, dialled_token(to), hello, registry, now).is_err() {
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
        if dialled.on_event(event).is_err() {
            dialled.hang_up(counters);
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
        hello: Hello,
        registry: &Registry,
        now: Instant,
    ) -> io::Result<()> {
        self.since = now;
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        stream.set_nodelay(true)?;
        self.stream = Some(stream);
        self.waiting.extend(hello.encode());
        Ok(())
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let prefix = (frame.len() as u32).to_le_bytes();
        if self.waiting.len() + prefix.len() + frame.len() > WAITING_BYTES_MAX {
            return Ok(false);
        }
        let mut written = 0;
        if self.is_connected
            && self.waiting.is_empty()
            && let Some(stream) = &mut self.stream
        {
            written = write(stream, &prefix, frame)?;
        }
        self.waiting.extend(&prefix[written.min(prefix.len())..]);
        self.waiting.extend(&frame[written.saturating_sub(prefix.len())..]);
        Ok(true)
    }

    fn on_event(&mut self, event: &Event) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        if (event.is_error() || !self.is_connected)
            && let Some(error) = stream.take_error()?
        {
            return Err(error);
        }
        if !self.is_connected {
            match stream.peer_addr() {
                Ok(_) => self.is_connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if event.is_readable() || event.is_read_closed() {
            expect_nothing(stream)?;
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

/// The called PE never writes: all that can come is the end of the connection.
fn expect_nothing(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        match stream.read(&mut [0; 16]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Err(ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
