//! A listening socket, for a thread that epoll tells of calls.

use super::descriptors;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often to look whether the socket is still there.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The most calls that are turned away at the end: about as many as the system lets wait.
const CALLERS_MAX: usize = 4096;

/// Accepts calls. Epoll tells of a call only once, so this remembers whether there may be more.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    checked: Instant,
    is_called: bool,
    /// The system refused the last call, for lack of file descriptors, for example.
    is_short: bool,
}

impl Listener {
    /// From now on the registry's events with this token mean [`on_call`](Self::on_call).
    pub(crate) fn new(
        mut socket: TcpListener,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        registry.register(&mut socket, token, Interest::READABLE)?;
        let (address, checked) = (socket.local_addr()?, Instant::now());
        Ok(Listener { socket, address, checked, is_called: true, is_short: false })
    }

    /// Notes that there are calls.
    pub(crate) fn on_call(&mut self) {
        self.is_called = true;
    }

    /// Whether there may be calls.
    pub(crate) fn is_called(&self) -> bool {
        self.is_called
    }

    /// Finds out whether there are calls that have not been accepted.
    pub(crate) fn look(&mut self) {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
        // If the system does not say, there may be some.
        self.is_called &= poll(&mut sockets, Some(&Timespec::default())) != Ok(0);
    }

    /// Finds out now and then whether the socket is still there. Code that closes files which are
    /// not its own may have closed it, and epoll does not tell of that.
    ///
    /// # Errors
    /// It is not, so no call will come any more.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        if self.checked.elapsed() < CHECK_EVERY {
            return Ok(());
        }
        self.checked = Instant::now();
        match self.socket.local_addr() {
            Ok(address) if address == self.address => Ok(()),
            Ok(_) => Err(io::Error::other("another socket has its number")),
            Err(error) => Err(error),
        }
    }

    /// Whether there may be calls that can be accepted at once; not after an error.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_called && !self.is_short
    }

    /// Closes the calls that have not been accepted, so that those who called do not wait.
    pub(crate) fn turn_away(&mut self) {
        // Others may go on calling.
        for _ in 0..CALLERS_MAX {
            if !matches!(self.accept(), Ok(Some(_))) {
                return;
            }
        }
    }

    /// The next call, if there is one.
    ///
    /// # Errors
    /// The system refuses it now. Callers wait; try again later.
    pub(crate) fn accept(&mut self) -> io::Result<Option<TcpStream>> {
        self.is_short = false;
        match self.socket.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => {
                    self.is_called = false;
                    Ok(None)
                }
                // There may be other calls behind it.
                ErrorKind::Interrupted | ErrorKind::ConnectionAborted => Ok(None),
                _ => {
                    descriptors::warn_of_shortage("taking a call from another PE", &error);
                    self.is_short = true;
                    Err(error)
                }
            },
        }
    }
}
