//! One connection: a handshake, then frames, both ways.

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

/// How many bytes wait, per connection, for the system to take them: enough for several frames.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How often one connection is read in a round, so that all get their turn.
const ROUND_READS_MAX: usize = 4;

pub(super) struct TcpConnection {
    pub(super) stream: TcpStream,
    /// Who is, or should be, at the other end; `None` while that is unknown.
    pub(super) peer: Option<Pe>,
    pub(super) is_dialled: bool,
    pub(super) state: ConnectionState,
    /// What to say first, until the system has the connection and not only the wish for one.
    hello: Option<[u8; HELLO_BYTES]>,
    frames: FrameSplitter,
    /// What the system has not taken yet: begins wherever a write stopped.
    waiting: VecDeque<u8>,
    /// When it was begun, and then when it was opened.
    pub(super) since: Instant,
    /// When it was begun, was first heard and last used, on the lane's count of such events.
    pub(super) begun: u64,
    pub(super) first_heard: Option<u64>,
    pub(super) used: u64,
    /// There may be something to read.
    pub(super) is_unread: bool,
}

pub(super) enum ConnectionState {
    Greeting(Handshake),
    Open,
    /// Nothing more is sent than what waits. What comes is read to its end.
    Ending {
        /// Until this moment at most.
        until: Instant,
        /// The end has been read.
        is_read: bool,
    },
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TcpCloseReason {
    /// Nothing is wrong.
    Orderly,
    Broken,
    /// It began with anything but a hello to us, or did not go on.
    NoHandshake,
    /// The other end does not know the key.
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
            HandshakeError::Io(_) => TcpCloseReason::Broken,
        }
    }
}

/// How far a connection has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// All that has come.
    All,
    /// There may be more.
    Some,
    /// Nothing more will come.
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

    /// One that is dialled, or was accepted.
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

    /// Whether nothing is known to be under way in either direction.
    pub(super) fn is_idle(&self) -> bool {
        self.is_flushed() && !self.is_unread && self.frames.is_at_boundary()
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All has been said, and heard.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Ending { is_read: true, .. }) && self.is_flushed()
    }

    /// Something happened to the socket. What came is for [`greet`](Self::greet) or
    /// [`read`](Self::read).
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
            // It is the first that is written on this connection, and short: the system takes it.
            self.stream.write_all(&hello)?;
        }
        if event.is_writable() { self.flush() } else { Ok(()) }
    }

    /// Goes on with the handshake. Returns who is at the other end once it is done.
    pub(super) fn continue_handshake(&mut self) -> Result<Option<Pe>, TcpCloseReason> {
        let mut buffer =
            [0; if HELLO_BYTES > CHALLENGE_BYTES { HELLO_BYTES } else { CHALLENGE_BYTES }];
        while let ConnectionState::Greeting(handshake) = &mut self.state {
            // Not a byte more, so that the frames behind it stay where they are.
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
                // The proof goes with the frames that have waited for it.
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

    /// Hands over a frame. `Ok(false)`: not now.
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

    /// Takes over what waits on one that was dialled and is given up.
    pub(super) fn inherit(&mut self, mut other: TcpConnection) {
        self.waiting.append(&mut other.waiting);
    }

    /// Hands the system what waits, and then the end if this is to be it.
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

    /// Sends nothing more, and reads until this moment at most.
    pub(super) fn end(&mut self, until: Instant) {
        self.state = ConnectionState::Ending { until, is_read: false };
        // A failure means that the other end is gone, which reading tells.
        let _ = self.flush();
    }

    /// Gives up what waits: the other end does not take it any more.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Reads what has come, up to a bound, and delivers the frames in it.
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

/// How many bytes were read; 0 at the end, `None` if there are none now.
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
