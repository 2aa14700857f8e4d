//! One connection of the TCP lane: a handshake, then frames in both directions.

use crate::handshake::{CHALLENGE_BYTES, HELLO_BYTES, Handshake, HandshakeError, JobKey, Purpose};
use crate::transport::frame_splitter::FrameSplitter;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Instant;
use ultramarine_topology::Pe;

/// The longest frame, in bytes.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 10;

/// The token of the connection at this place.
pub(super) fn token(place: usize) -> Token {
    Token(place + 1)
}

/// The most bytes of a connection that wait for the system to take them: enough for several frames.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The most reads from one connection in a round, so that all connections get their turn.
const ROUND_READS_MAX: usize = 4;

pub(super) struct TcpConnection {
    pub(super) stream: TcpStream,
    /// The PE that is, or should be, at the other end; `None` while it is unknown.
    pub(super) peer: Option<Pe>,
    pub(super) is_dialled: bool,
    pub(super) state: ConnectionState,
    /// The HELLO to send, until the system has made the connection.
    hello: Option<[u8; HELLO_BYTES]>,
    frames: FrameSplitter,
    /// Bytes that the system has not taken yet, from wherever a write stopped.
    waiting: VecDeque<u8>,
    /// When the connection was begun, and later when it was opened.
    pub(super) since: Instant,
    /// When it was begun, first read and last used, in the lane's count of events.
    pub(super) begun: u64,
    pub(super) first_heard: Option<u64>,
    pub(super) used: u64,
    /// There may be something to read.
    pub(super) is_unread: bool,
}

pub(super) enum ConnectionState {
    Greeting(Handshake),
    Open,
    /// Nothing more is sent after the bytes that wait. What arrives is read to the end.
    Ending {
        /// When to close it at the latest.
        until: Instant,
        /// The other end has ended its direction.
        is_read: bool,
    },
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TcpCloseReason {
    /// Nothing is wrong.
    Orderly,
    /// It broke, or could not be made.
    Broken,
    /// It did not begin with a HELLO for this PE, or its handshake was not completed.
    NoHandshake,
    /// The other end does not know the job's key.
    Forged,
    /// It announced a frame over the limit.
    Oversized,
}

impl From<io::Error> for TcpCloseReason {
    fn from(_: io::Error) -> TcpCloseReason {
        TcpCloseReason::Broken
    }
}

impl From<HandshakeError> for TcpCloseReason {
    fn from(refusal: HandshakeError) -> TcpCloseReason {
        match refusal {
            HandshakeError::Stranger => TcpCloseReason::NoHandshake,
            HandshakeError::Forged => TcpCloseReason::Forged,
            HandshakeError::Gone | HandshakeError::Io(_) => TcpCloseReason::Broken,
        }
    }
}

/// How far a connection has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// All that has arrived was read.
    All,
    /// There may be more to read.
    Some,
    /// Nothing more will arrive.
    Last,
}

impl TcpConnection {
    /// Calls a PE.
    pub(super) fn dial(
        key: JobKey,
        (me, to): (Pe, Pe),
        address: SocketAddr,
        (registry, token): (&Registry, Token),
        event: u64,
    ) -> io::Result<Self> {
        let (handshake, hello) = Handshake::dial(key, Purpose::Lane, me, to)?;
        let stream = TcpStream::connect(address)?;
        let mut connection = TcpConnection::new(stream, handshake, (registry, token), event)?;
        connection.peer = Some(to);
        connection.is_dialled = true;
        connection.hello = Some(hello);
        Ok(connection)
    }

    /// A connection that is being dialled, or was accepted.
    pub(super) fn new(
        mut stream: TcpStream,
        handshake: Handshake,
        (registry, token): (&Registry, Token),
        event: u64,
    ) -> io::Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        stream.set_nodelay(true)?;
        Ok(TcpConnection {
            stream,
            peer: None,
            is_dialled: false,
            state: ConnectionState::Greeting(handshake),
            hello: None,
            frames: FrameSplitter::default(),
            waiting: VecDeque::new(),
            since: Instant::now(),
            begun: event,
            first_heard: None,
            used: event,
            is_unread: false,
        })
    }

    /// Whether nothing seems to be under way in either direction.
    pub(super) fn is_idle(&self) -> bool {
        self.is_flushed() && !self.is_unread && self.frames.is_at_boundary()
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether both ends have sent and read everything.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Ending { is_read: true, .. }) && self.is_flushed()
    }

    /// Handles an event of the socket, apart from reading.
    pub(super) fn on_event(&mut self, event: &Event) -> io::Result<()> {
        if let Some(hello) = self.hello {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            match self.stream.peer_addr() {
                Ok(_) => self.hello = None,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
            // It is the first write on this connection, and short: the system takes all of it.
            self.stream.write_all(&hello)?;
        }
        if event.is_writable() { self.flush() } else { Ok(()) }
    }

    /// Goes on with the handshake. Returns the PE at the other end once it is done.
    pub(super) fn continue_handshake(&mut self) -> Result<Option<Pe>, TcpCloseReason> {
        let mut buffer =
            [0; if HELLO_BYTES > CHALLENGE_BYTES { HELLO_BYTES } else { CHALLENGE_BYTES }];
        while let ConnectionState::Greeting(handshake) = &mut self.state {
            // Not a byte more, so that the frames behind the handshake stay in the socket.
            let wanted = handshake.wanted_bytes().min(buffer.len());
            let Some(read) = read(&mut self.stream, &mut buffer[..wanted])? else {
                return Ok(None);
            };
            if read == 0 {
                return Err(if self.is_dialled {
                    TcpCloseReason::Broken
                } else {
                    TcpCloseReason::NoHandshake
                });
            }
            let mut answer = Vec::new();
            let peer = handshake.read(&mut &buffer[..read], &mut answer)?;
            if self.is_dialled {
                // The proof goes before the frames that wait.
                answer.iter().rev().for_each(|byte| self.waiting.push_front(*byte));
            } else {
                self.stream.write_all(&answer)?;
            }
            if let Some(peer) = peer {
                self.state = ConnectionState::Open;
                return Ok(Some(peer.pe));
            }
        }
        Ok(None)
    }

    /// Sends a frame. `Ok(false)`: there is no room now.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let prefix = (frame.len() as u32).to_le_bytes();
        if self.waiting.len() + prefix.len() + frame.len() > WAITING_BYTES_MAX {
            return Ok(false);
        }
        let mut written = 0;
        if matches!(self.state, ConnectionState::Open) && self.waiting.is_empty() {
            written = write(&mut self.stream, &prefix, frame)?;
        }
        self.waiting.extend(&prefix[written.min(prefix.len())..]);
        self.waiting.extend(&frame[written.saturating_sub(prefix.len())..]);
        Ok(true)
    }

    /// Takes over the bytes that wait on a dial that is given up.
    pub(super) fn inherit(&mut self, mut other: TcpConnection) {
        self.waiting.append(&mut other.waiting);
    }

    /// Hands the system what waits, and then ends this direction if the connection is ending.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if matches!(self.state, ConnectionState::Greeting(_)) {
            return Ok(());
        }
        while !self.waiting.is_empty() {
            let (front, back) = self.waiting.as_slices();
            match write(&mut self.stream, front, back)? {
                0 => return Ok(()),
                written => drop(self.waiting.drain(..written)),
            }
        }
        match self.state {
            ConnectionState::Ending { .. } => self.stream.shutdown(Shutdown::Write),
            _ => Ok(()),
        }
    }

    /// Sends nothing more, and reads until `until` at most.
    pub(super) fn end(&mut self, until: Instant) {
        self.state = ConnectionState::Ending { until, is_read: false };
        // A failure means that the other end is gone, which the next read finds out.
        let _ = self.flush();
    }

    /// Drops the bytes that wait: the other end does not take them any more.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Reads what has arrived, up to a limit, and delivers the frames in it.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadProgress, TcpCloseReason> {
        for _ in 0..ROUND_READS_MAX {
            match read(&mut self.stream, scratch)? {
                None => return Ok(ReadProgress::All),
                Some(0) if self.frames.is_at_boundary() => return Ok(ReadProgress::Last),
                Some(0) => return Err(TcpCloseReason::Broken),
                Some(read) => self
                    .frames
                    .split(&scratch[..read], FRAME_BYTES_MAX, deliver)
                    .map_err(|_| TcpCloseReason::Oversized)?,
            }
        }
        Ok(ReadProgress::Some)
    }
}

/// The number of bytes read; 0 at the end, `None` if there are none now.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match stream.read(buffer) {
            Ok(read) => return Ok(Some(read)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The number of bytes of the two slices that the system took; 0 if it takes none now.
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
