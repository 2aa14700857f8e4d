//! A lane whose process runs out of file descriptors. The limit is the process's, so this test has
//! a file to itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use ultramarine_runtime::handshake::JobKey;
use ultramarine_runtime::transport::Lane;
use ultramarine_runtime::transport::tcp::{TcpEndpoint, TcpLane};
use ultramarine_topology::Pe;

const PATIENCE: Duration = Duration::from_secs(30);

/// Three lanes that take no account of the limit.
fn lanes() -> Vec<TcpLane> {
    let endpoints: Vec<_> =
        (0..3).map(|_| TcpEndpoint::bind(Ipv4Addr::LOCALHOST.into(), None).unwrap()).collect();
    let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
    let key = JobKey::random().unwrap();
    let lane = |(endpoint, pe): (TcpEndpoint, u32)| {
        endpoint.into_lane(Pe::new(pe), addresses.clone(), key, 1000).unwrap()
    };
    endpoints.into_iter().zip(0..).map(lane).collect()
}

/// Opens files until no more can be.
fn take_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Sends one frame and waits for it to come out.
fn deliver(lanes: &mut [TcpLane], from: usize, to: usize) {
    let start = Instant::now();
    let (mut is_sent, mut has_come) = (false, false);
    while !has_come {
        assert!(start.elapsed() < PATIENCE, "{from} to {to}: sent: {is_sent}");
        is_sent = is_sent || lanes[from].send(Pe::new(to as u32), &mut b"frame".to_vec()).unwrap();
        for (pe, lane) in lanes.iter_mut().enumerate() {
            lane.poll(&mut |sender, frame| {
                assert_eq!((sender.index(), pe, frame), (from, to, &b"frame"[..]));
                has_come = true;
            })
            .unwrap();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_lane_that_runs_out_of_descriptors_closes_what_it_does_not_use_and_goes_on() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(80), ..before }).unwrap();
    let mut lanes = lanes();
    let counters: Vec<_> = lanes.iter().map(TcpLane::counters).collect();
    deliver(&mut lanes, 0, 1);

    // Nothing is left to dial with; closing the only connection frees both of its ends.
    let mut taken = take_all();
    deliver(&mut lanes, 0, 2);
    assert!(counters[0].not_dialled.load(Ordering::Relaxed) > 0);
    assert_eq!(counters[0].made_room.load(Ordering::Relaxed), 1);

    // One is left, to dial with; so the called one has to close a connection before it can answer.
    drop(taken.pop());
    deliver(&mut lanes, 1, 0);
    assert_eq!(counters[0].made_room.load(Ordering::Relaxed), 2);
    for counters in &counters {
        assert_eq!(counters.broken.load(Ordering::Relaxed), 0);
    }
    drop(taken);
    setrlimit(Resource::Nofile, before).unwrap();
}
