//! Listens on the first free port of a range.

use super::error::LaneError;
use mio::net::TcpListener;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// The most calls that may wait for a process that is stopped or gets no core. The host does not
/// answer further calls, and would count as silent. Linux allows 4,096 since 5.4 and 128 before
/// (`net.core.somaxconn`). Each PE that looks at a silent one calls 1.25 times a second by default,
/// for up to 30 s.
const CALLS_WAITING_MAX: i32 = 4096;

/// Listens on the first of these ports that is free, or on a port that the system chooses.
pub(crate) fn listen(
    ip: IpAddr,
    ports: Option<RangeInclusive<u16>>,
) -> Result<(TcpListener, SocketAddr), LaneError> {
    let taken = ports.as_ref().map(|ports| (*ports.start(), *ports.end()));
    for port in ports.unwrap_or(0..=0) {
        let wanted = SocketAddr::new(ip, port);
        let io = |source| LaneError::Io { doing: format!("listening for PEs on {wanted}"), source };
        match TcpListener::bind(wanted) {
            Ok(listener) => {
                let address = listener.local_addr().map_err(io)?;
                // The library has asked the system for only 128.
                rustix::net::listen(&listener, CALLS_WAITING_MAX)
                    .map_err(|error| io(error.into()))?;
                return Ok((listener, address));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse && taken.is_some() => {}
            Err(error) => return Err(io(error)),
        }
    }
    let (first, last) = taken.unwrap_or_default();
    Err(LaneError::NoPort { ip, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A port that is in use, with the listener that uses it.
    fn taken() -> (std::net::TcpListener, u16) {
        let listener = std::net::TcpListener::bind((LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_host_answers_many_calls_for_a_process_that_takes_none() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
        if allowed.trim().parse().is_ok_and(|allowed: u32| allowed < 200) {
            return println!("skipped: this system allows only {allowed}");
        }
        let (_listener, address) = listen(LOCALHOST, None).unwrap();
        let call = |_| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5));
        let calls: Result<Vec<_>, _> = (0..200).map(call).collect();
        assert!(calls.is_ok(), "{calls:?}");
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let (_taker, port) = taken();
        let Some(last) = port.checked_add(20) else { return };
        let (_listener, address) = listen(LOCALHOST, Some(port..=last)).unwrap();
        assert!(address.port() > port && address.port() <= last);
    }

    #[test]
    fn without_a_free_port_the_range_is_named() {
        let (_taker, port) = taken();
        let error = listen(LOCALHOST, Some(port..=port)).unwrap_err().to_string();
        assert!(error.contains(&format!("from {port} to {port}")), "{error}");
    }

    #[test]
    fn an_address_of_another_host_is_an_error_that_names_it() {
        let ip = "192.0.2.1".parse().unwrap();
        let error = listen(ip, Some(20_000..=20_010)).unwrap_err().to_string();
        assert!(error.contains("192.0.2.1:20000"), "{error}");
    }
}
