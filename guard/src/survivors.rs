//! Whether any other process of the job is there, after the death of one that may have been the
//! last.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a guard waits for one of the others. (A host that lives answers at once, whatever its
/// processes do.)
const ANSWERS_WITHIN: Duration = Duration::from_millis(250);

/// How long a guard asks in all. Then the job is held for dead.
const ALL_WITHIN: Duration = Duration::from_secs(5);

/// Whether any process listens at one of these addresses. The kernel answers for a process until
/// that ends.
pub(super) fn any_listens(addresses: &[SocketAddr]) -> bool {
    let deadline = Instant::now() + ALL_WITHIN;
    let listens = |address| TcpStream::connect_timeout(address, ANSWERS_WITHIN).is_ok();
    addresses.iter().take_while(|_| Instant::now() < deadline).any(listens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_process_listens_until_it_ends() {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let (one, other) = (bind(), bind());
        let addresses = [&one, &other].map(|listener| listener.local_addr().expect("it is bound"));
        assert!(any_listens(&addresses));
        drop(one);
        assert!(any_listens(&addresses));
        drop(other);
        assert!(!any_listens(&addresses) && !any_listens(&[]));
    }
}
