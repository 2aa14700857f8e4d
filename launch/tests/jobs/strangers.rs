//! Scanners, other jobs and forgers connect to a job's ports. The job's own root plays them.
#![cfg(feature = "mpi")]

use crate::common::job::{kill, run, square};
use crate::common::launcher::over_each_lane_with;
use crate::common::ports::{self, PORTS};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use ultramarine::prelude::*;
use ultramarine_runtime::handshake::{CHALLENGE_BYTES, Handshake, JobKey, Purpose, SEAL_BYTES};
use ultramarine_testkit::{eventually, itself};

/// Connects to a port, sends this, and keeps the connection open.
fn call(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    // The PE may have closed the connection by then.
    let _ = stream.write_all(bytes);
    stream
}

/// Tries what a stranger may try on a PE's ports, of which the detector's answers. Returns the
/// open connections.
fn annoy(pe: Pe, ports: &BTreeSet<u16>) -> Vec<TcpStream> {
    let other = JobKey::random().expect("there are random numbers");
    // No PE connects to itself.
    let from = if pe == Pe::new(1) { Pe::new(3) } else { Pe::new(1) };
    let mut lines = Vec::new();
    let mut forgers = Vec::new();
    for &port in ports {
        lines.extend((0..40).map(|_| call(port, b"")));
        lines.push(call(port, b"GET / HTTP/1.1\r\n\r\n"));
        lines.push(call(port, &[0xff; 10_000]));
        for purpose in [Purpose::Lane, Purpose::Detector] {
            let (_, hello) = Handshake::dial(other, purpose, from, pe).expect("random numbers");
            lines.push(call(port, &hello[..10]));
            lines.push(call(port, &hello));
            // A right HELLO, whose challenge the stranger cannot meet.
            forgers.push(call(port, &hello));
        }
    }
    // The detector takes calls from the start, the lane of a job over MPI only after a death.
    for forger in &forgers {
        forger.set_nonblocking(true).expect("it is open");
    }
    let is_challenged = |forger: &TcpStream| {
        forger.peek(&mut [0; CHALLENGE_BYTES]).is_ok_and(|bytes| bytes == CHALLENGE_BYTES)
    };
    eventually("a challenge", || forgers.iter().any(is_challenged));
    for mut forger in forgers {
        let _ = forger.write_all(&[7; SEAL_BYTES]);
        lines.push(forger);
    }
    lines
}

#[test]
fn strangers_have_no_effect_before_a_death_and_after_it() {
    let main = async |cx: Context| {
        let mut lines = Vec::new();
        for pe in (0..cx.pes()).map(Pe::new) {
            let own = async |_: Context, ()| ports::own().into_values().collect();
            let ports: BTreeSet<_> = cx.spawn_at(pe, own, ()).await?;
            assert_eq!(ports.len(), 2, "{pe}");
            lines.extend(annoy(pe, &ports));
        }
        square(&cx.supervised(), 600, 200).await?;
        for pe in (0..cx.pes()).map(Pe::new) {
            assert!(!cx.is_dead(pe), "{pe}");
        }
        // Now a true death: the others go on over the ports where the strangers still are.
        kill(&cx, Pe::new(2)).await;
        square(&cx.supervised(), 600, 200).await?;
        for pe in [1, 3].map(Pe::new) {
            assert!(!cx.is_dead(pe), "{pe}");
            let answer = cx.spawn_at(pe, async |cx: Context, ()| cx.pe(), ()).await?;
            assert_eq!(answer, pe);
        }
        drop(lines);
        Ok(())
    };
    let variables = |_: &str| [(PORTS, ports::some().into())];
    for (_, ended) in over_each_lane_with(4, variables, itself(|| run(main))) {
        ended.is_well();
    }
}
