//! Whether any other process of the job is there, after the death of one that may have been the
//! last.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a guard waits for an answer. The kernel asks again after 1 s and 3 s where packets are
/// lost. Who has not answered by then is held for dead.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Connections with processes that may listen. The kernel answers for a process, also for one that
/// is stopped, and refuses for one that has ended.
pub(super) struct Calls {
    deadline: Instant,
    calls: Vec<OwnedFd>,
}

impl Calls {
    /// Asks at these addresses. What a process is then counts, not what it has become when its
    /// answer is read.
    pub(super) fn begin(addresses: &[SocketAddr]) -> Self {
        let deadline = Instant::now() + ANSWERS_WITHIN;
        // All at once: one that is silent keeps no other waiting.
        Calls { deadline, calls: addresses.iter().filter_map(|to| call(to).ok()).collect() }
    }

    /// Whether any process listens.
    pub(super) fn any_answers(mut self) -> bool {
        while !self.calls.is_empty() {
            let rest = self.deadline.saturating_duration_since(Instant::now());
            let mut answers: Vec<_> =
                self.calls.iter().map(|call| PollFd::new(call, PollFlags::OUT)).collect();
            match poll(&mut answers, Some(&Timespec::try_from(rest).unwrap_or_default())) {
                Err(Errno::INTR) => continue,
                Err(_) | Ok(0) => return false,
                Ok(_) => {}
            }
            let has_come: Vec<bool> =
                answers.iter().map(|answer| !answer.revents().is_empty()).collect();
            // One that ends with a call in its queue resets it.
            let accepted =
                |call: &OwnedFd| matches!(socket_error(call), Ok(Ok(()) | Err(Errno::CONNRESET)));
            let mut answered = self.calls.iter().zip(&has_come).filter(|(_, has_come)| **has_come);
            if answered.any(|(call, _)| accepted(call)) {
                return true;
            }
            let mut has_come = has_come.into_iter();
            self.calls.retain(|_| !has_come.next().unwrap_or(true));
        }
        false
    }
}

/// Begins a connection.
fn call(to: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, getsockname, listen};
    use std::net::{Ipv4Addr, TcpListener};

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        (listener, address)
    }

    fn any_listens(addresses: &[SocketAddr]) -> bool {
        Calls::begin(addresses).any_answers()
    }

    #[test]
    fn a_process_listens_until_it_ends() {
        let ((one, first), (other, second)) = (listener(), listener());
        let addresses = [first, second];
        assert!(any_listens(&addresses));
        drop(one);
        assert!(any_listens(&addresses));
        let before = Calls::begin(&addresses);
        drop(other);
        assert!(!any_listens(&addresses) && !any_listens(&[]));
        assert!(before.any_answers(), "it was there when it was asked");
    }

    /// An address that answers nothing: its queue of connections is full.
    fn silent() -> (Vec<OwnedFd>, SocketAddr) {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("there is room");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        listen(&socket, 0).expect("it is bound");
        let address = getsockname(&socket).expect("it is bound").try_into().expect("of IP");
        let mut kept: Vec<_> = (0..4).map(|_| call(&address).expect("there is room")).collect();
        kept.push(socket);
        (kept, address)
    }

    #[test]
    fn the_silent_keep_no_other_waiting_and_are_no_answer() {
        let (_kept, silent) = silent();
        let (_listener, last) = listener();
        let mut addresses = vec![silent; 50];
        let start = Instant::now();
        assert!(!any_listens(&addresses));
        assert!(start.elapsed() >= ANSWERS_WITHIN, "they were given their time");
        addresses.push(last);
        assert!(any_listens(&addresses));
        // One after the other they would have taken minutes.
        assert!(start.elapsed() < 3 * ANSWERS_WITHIN, "{:?}", start.elapsed());
    }
}
