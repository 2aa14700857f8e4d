//! One connection of the detector: a handshake, then sealed notices in both directions.

use super::close_reason::CloseReason;
use super::frame::{NoticeReader, frame_bytes_max, seal};
use crate::handshake::{Authenticated, Handshake, JobKey, Purpose, Session};
use crate::protocol::Notice;
use crate::transport::descriptors;
use mio::event::Event;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use ultramarine_topology::Pe;

/// The most reads from one connection in a round, so that all connections get their turn.
const ROUND_READS_MAX: usize = 16;

/// The most that may wait for a peer that does not read, in bytes, beside the longest frame.
const WAITING_BYTES_MAX: usize = 64 << 10;

pub(super) struct SealedConnection {
    pub(super) stream: TcpStream,
    /// The PE that is, or should be, at the other end; `None` while it is unknown.
    pub(super) peer: Option<Pe>,
    /// This PE dialled.
    is_dialled: bool,
    pub(super) begun: Duration,
    /// The system has made the connection.
    is_connected: bool,
    session: SessionState,
    reader: NoticeReader,
    /// The number of notices sent.
    sent: u64,
    /// Bytes that the system has not taken yet.
    waiting: Vec<u8>,
    waiting_bytes_max: usize,
    /// Nothing more is sent after the bytes that wait.
    is_ending: bool,
}

enum SessionState {
    Greeting(Handshake),
    Open(Session),
}

/// What was received on a connection.
#[derive(Default)]
pub(super) struct Received {
    /// The handshake is done, and this PE is at the other end.
    pub(super) opened: Option<Pe>,
    pub(super) notices: Vec<Notice>,
    /// There may be more to read.
    pub(super) is_more: bool,
    /// The other host has just accepted the call.
    pub(super) is_answered: bool,
}

impl SealedConnection {
    /// Calls a PE.
    pub(super) fn dial(
        key: JobKey,
        me: Pe,
        to: Pe,
        address: SocketAddr,
        pes: u32,
        now: Duration,
    ) -> io::Result<Self> {
        let (handshake, hello) = Handshake::dial(key, Purpose::Detector, me, to)?;
        let stream = TcpStream::connect(address)
            .inspect_err(|error| descriptors::warn_of_shortage("the detector's call", error))?;
        let mut connection = SealedConnection::new(stream, handshake, pes, now);
        connection.peer = Some(to);
        connection.is_dialled = true;
        connection.waiting.extend(hello);
        Ok(connection)
    }

    /// Accepts a call.
    pub(super) fn accepted(
        stream: TcpStream,
        key: JobKey,
        me: Pe,
        pes: u32,
        now: Duration,
    ) -> Self {
        let handshake = Handshake::accept(key, Purpose::Detector, me, pes);
        let mut connection = SealedConnection::new(stream, handshake, pes, now);
        connection.is_connected = true;
        connection
    }

    fn new(stream: TcpStream, handshake: Handshake, pes: u32, now: Duration) -> Self {
        // If this fails, a notice may wait until the one before is acknowledged. It still arrives.
        let _ = stream.set_nodelay(true);
        SealedConnection {
            stream,
            peer: None,
            is_dialled: false,
            begun: now,
            is_connected: false,
            session: SessionState::Greeting(handshake),
            reader: NoticeReader::new(pes),
            sent: 0,
            waiting: Vec::new(),
            waiting_bytes_max: WAITING_BYTES_MAX + frame_bytes_max(pes),
            is_ending: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.session, SessionState::Open(_)) && !self.is_ending
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(
        &mut self,
        event: &Event,
        scratch: &mut [u8],
        heard: &mut Received,
    ) -> Result<(), CloseReason> {
        if !self.is_connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error.into());
            }
            match self.stream.peer_addr() {
                Ok(_) => (self.is_connected, heard.is_answered) = (true, true),
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(scratch, heard)?;
        }
        self.flush()
    }

    /// Reads what has arrived, up to a limit.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        heard: &mut Received,
    ) -> Result<(), CloseReason> {
        for _ in 0..ROUND_READS_MAX {
            match self.stream.read(scratch) {
                Ok(0) => return Err(self.end()),
                Ok(read) => self.take(&scratch[..read], heard)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        heard.is_more = true;
        self.flush()
    }

    /// Why the connection is closed, now that the other end has ended its direction.
    fn end(&self) -> CloseReason {
        match &self.session {
            SessionState::Greeting(_) if self.is_dialled => CloseReason::Broken,
            SessionState::Greeting(_) => CloseReason::Stranger,
            SessionState::Open(_) if self.reader.is_at_boundary() => CloseReason::Closed,
            SessionState::Open(_) => CloseReason::Truncated,
        }
    }

    fn take(&mut self, mut bytes: &[u8], heard: &mut Received) -> Result<(), CloseReason> {
        if let SessionState::Greeting(handshake) = &mut self.session
            && let Some(Authenticated { pe, session }) =
                handshake.read(&mut bytes, &mut self.waiting)?
        {
            self.session = SessionState::Open(session);
            self.peer = Some(pe);
            heard.opened = Some(pe);
        }
        let SessionState::Open(session) = &self.session else { return Ok(()) };
        self.reader.take(session, bytes, &mut heard.notices)
    }

    /// Queues a notice, and hands the system what waits. Does nothing unless the connection is
    /// open.
    pub(super) fn send(&mut self, notice: &Notice) -> Result<(), CloseReason> {
        let SessionState::Open(session) = &self.session else { return Ok(()) };
        if self.is_ending {
            return Ok(());
        }
        let frame = seal(session, self.sent, notice).ok_or(CloseReason::LocalFailure)?;
        self.sent += 1;
        self.waiting.extend(frame);
        if self.waiting.len() > self.waiting_bytes_max {
            return Err(CloseReason::Broken);
        }
        self.flush()
    }

    /// Ends this direction once all that waits is sent. The other end may go on sending.
    pub(super) fn end_sending(&mut self) {
        self.is_ending = true;
        // A failure means that the other end is gone, which the next read finds out.
        let _ = self.flush();
    }

    /// Hands the system what waits.
    pub(super) fn flush(&mut self) -> Result<(), CloseReason> {
        let mut written = 0;
        while self.is_connected && written < self.waiting.len() {
            match self.stream.write(&self.waiting[written..]) {
                Ok(0) => return Err(CloseReason::Broken),
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.waiting.drain(..written);
        if self.is_ending && self.is_connected && self.waiting.is_empty() {
            self.stream.shutdown(std::net::Shutdown::Write)?;
        }
        Ok(())
    }
}
