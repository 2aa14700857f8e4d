//! Real sockets on the loopback interface.

mod pairs;

use super::*;
use crate::handshake::{CHALLENGE_BYTES, Handshake, Purpose};
use crate::transport::testing::{Disturbed, PATIENCE, ping_pong, stream, together, until};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn network<const N: usize>(key: JobKey) -> ([TcpLane; N], Vec<SocketAddr>) {
    network_within(key, usize::MAX)
}

/// Lanes that have at most this number of connections each.
fn network_within<const N: usize>(
    key: JobKey,
    connections_max: usize,
) -> ([TcpLane; N], Vec<SocketAddr>) {
    let endpoints: [_; N] = std::array::from_fn(|_| TcpEndpoint::bind(LOCALHOST, None).unwrap());
    let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
    let mut pe = 0..;
    let lanes = endpoints.map(|endpoint| {
        let me = Pe::new(pe.next().unwrap());
        endpoint.into_lane(me, addresses.clone(), key, connections_max).unwrap()
    });
    (lanes, addresses)
}

fn key() -> JobKey {
    JobKey::random().unwrap()
}

fn boxed(lanes: [TcpLane; 2]) -> [Box<dyn Lane>; 2] {
    lanes.map(|lane| Box::new(lane) as Box<dyn Lane>)
}

/// Polls until this counter of the lane is `count`.
fn poll_until_counted(lane: &mut TcpLane, counter: fn(&TcpCounters) -> &AtomicU64, count: u64) {
    until(|| {
        lane.poll(&mut |_, _| panic!("nothing may be delivered")).unwrap();
        counter(&lane.counters()).load(Ordering::Relaxed) == count
    });
}

/// Connects and sends `bytes`; the returned connection is closed when it is dropped.
fn call(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Connects to the lane as this PE would, and sends `bytes` after the proof.
fn join(lane: &mut TcpLane, address: SocketAddr, key: JobKey, from: Pe, bytes: &[u8]) -> TcpStream {
    let (mut handshake, hello) = Handshake::dial(key, Purpose::Lane, from, Pe::ROOT).unwrap();
    let mut stream = call(address, &hello);
    let challenge = hear_challenge(lane, &mut stream);
    let mut proof = Vec::new();
    handshake.read(&mut &challenge[..], &mut proof).unwrap().expect("the lane proved itself");
    proof.extend(bytes);
    stream.write_all(&proof).unwrap();
    stream
}

/// What the lane answers to a hello.
fn hear_challenge(lane: &mut TcpLane, stream: &mut TcpStream) -> [u8; CHALLENGE_BYTES] {
    let mut challenge = [0; CHALLENGE_BYTES];
    stream.set_nonblocking(true).unwrap();
    until(|| {
        lane.poll(&mut |_, _| panic!("nothing may be delivered")).unwrap();
        stream.peek(&mut challenge).is_ok_and(|bytes| bytes == CHALLENGE_BYTES)
    });
    stream.set_nonblocking(false).unwrap();
    stream.read_exact(&mut challenge).unwrap();
    challenge
}

/// Whether the other end closed the connection.
fn is_closed(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

/// Sends one frame and waits for it to come out.
fn deliver_one(sender: &mut TcpLane, to: Pe, receiver: &mut TcpLane, frame: &[u8]) {
    until(|| {
        sender.poll(&mut |_, _| {}).unwrap();
        sender.send(to, &mut frame.to_vec()).unwrap()
    });
    let mut heard = Vec::new();
    until(|| {
        sender.poll(&mut |_, _| {}).unwrap();
        receiver.poll(&mut |_, frame| heard.push(frame.to_vec())).unwrap();
        !heard.is_empty()
    });
    assert_eq!(heard, [frame]);
}

#[test]
fn no_frame_is_slept_on() {
    ping_pong(boxed(network(key()).0), 2_000);
}

#[test]
fn a_call_before_the_sleep_ends_it_and_is_not_taken_by_a_poll() {
    let ([mut lane], _) = network(key());
    let sleeper = lane.sleeper();
    together(vec![Box::new(move || {
        for _ in 0..3 {
            sleeper.wake();
            sleeper.wake();
            lane.poll(&mut |_, _| {}).unwrap();
            sleeper.sleep(PATIENCE * 2);
        }
        drop(lane);
        sleeper.wake();
        sleeper.sleep(PATIENCE * 2);
    })]);
}

#[test]
fn a_lane_whose_peer_does_not_read_refuses_and_then_goes_on() {
    let ([mut sender, mut receiver], _) = network(key());
    let frame = vec![5; FRAME_BYTES_MAX];
    let mut sent = 0;
    // The system's own buffers are of unknown size, but it takes no more once they are full.
    let mut refused = 0;
    until(|| {
        sender.poll(&mut |_, _| {}).unwrap();
        if sender.send(Pe::new(1), &mut frame.clone()).unwrap() {
            (sent, refused) = (sent + 1, 0);
        } else {
            refused += 1;
        }
        refused > 1000
    });
    assert!(!sender.is_flushed());
    let mut received = 0;
    until(|| {
        sender.poll(&mut |_, _| {}).unwrap();
        receiver
            .poll(&mut |_, arrived| {
                assert!(arrived == frame);
                received += 1;
            })
            .unwrap();
        received == sent
    });
    assert!(sender.is_flushed());
    assert!(sender.send(Pe::new(1), &mut frame.clone()).unwrap());
}

#[test]
fn wrong_frames_are_errors() {
    let ([mut lane], _) = network(key());
    let frame = vec![0; FRAME_BYTES_MAX + 1];
    assert!(matches!(lane.send(Pe::ROOT, &mut frame.clone()), Err(LaneError::FrameTooLong { .. })));
    assert!(matches!(lane.send(Pe::new(1), &mut Vec::new()), Err(LaneError::NoSuchPe(_))));
}

#[test]
fn strangers_have_no_effect() {
    let key = key();
    let ([mut lane, mut other], addresses) = network(key);
    let (me, peer) = (Pe::ROOT, Pe::new(1));
    let hello = |purpose, from, to| Handshake::dial(key, purpose, from, to).unwrap().1;
    let strangers: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
        &[0xff; 10_000],
        &hello(Purpose::Detector, peer, me),
        &hello(Purpose::Lane, peer, peer),
        &hello(Purpose::Lane, Pe::new(2), me),
    ];
    for (stranger, count) in strangers.iter().zip(1..) {
        let stream = call(addresses[0], stranger);
        poll_until_counted(&mut lane, |counters| &counters.strangers, count);
        assert!(is_closed(stream));
    }
    drop(call(addresses[0], b"ULTRAM"));
    poll_until_counted(&mut lane, |counters| &counters.strangers, 6);
    let mut silent = call(addresses[0], &hello(Purpose::Lane, peer, me));
    hear_challenge(&mut lane, &mut silent);
    drop(silent);
    poll_until_counted(&mut lane, |counters| &counters.strangers, 7);
    deliver_one(&mut other, me, &mut lane, b"still here");
}

#[test]
fn callers_without_the_key_are_counted_as_forgers() {
    let key = key();
    let ([mut lane, mut other], addresses) = network(key);
    let (mut handshake, hello) = Handshake::dial(key, Purpose::Lane, Pe::new(1), Pe::ROOT).unwrap();
    let mut stream = call(addresses[0], &hello);
    let mut proof = Vec::new();
    let challenge = hear_challenge(&mut lane, &mut stream);
    handshake.read(&mut &challenge[..], &mut proof).unwrap();
    stream.write_all(&proof).unwrap();
    // A replay of all this, with a frame after it.
    proof.extend([1, 0, 0, 0, 7]);
    let mut replay = call(addresses[0], &hello);
    hear_challenge(&mut lane, &mut replay);
    replay.write_all(&proof).unwrap();
    poll_until_counted(&mut lane, |counters| &counters.forged, 1);
    assert!(is_closed(replay));
    deliver_one(&mut other, Pe::ROOT, &mut lane, b"still here");
}

#[test]
fn a_listener_without_the_key_gets_no_frame() {
    let ([mut lane, gone], addresses) = network(key());
    drop(gone);
    let taker = std::net::TcpListener::bind(addresses[1]).unwrap();
    taker.set_nonblocking(true).unwrap();
    let mut taken = None;
    until(|| {
        lane.send(Pe::new(1), &mut b"frame".to_vec()).unwrap();
        lane.poll(&mut |_, _| panic!("no frame can arrive")).unwrap();
        taken = taker.accept().ok();
        taken.is_some()
    });
    let (mut stream, _) = taken.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&[7; CHALLENGE_BYTES]).unwrap();
    poll_until_counted(&mut lane, |counters| &counters.forged, 1);
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), crate::handshake::HELLO_BYTES, "a hello and no more");
}

#[test]
fn a_silent_connection_is_closed_in_time() {
    let ([mut lane], addresses) = network(key());
    lane.sockets.hello_within = Duration::from_millis(1);
    let streams = [call(addresses[0], b""), call(addresses[0], b"UL")];
    poll_until_counted(&mut lane, |counters| &counters.strangers, 2);
    assert!(streams.into_iter().all(is_closed));
}

#[test]
fn too_many_strangers_push_out_the_oldest() {
    let ([mut lane], addresses) = network(key());
    lane.sockets.limit.strangers_max = 2;
    lane.sockets.hello_within = PATIENCE * 2;
    let first = call(addresses[0], b"");
    let _others = [call(addresses[0], b""), call(addresses[0], b"")];
    poll_until_counted(&mut lane, |counters| &counters.strangers, 1);
    assert!(is_closed(first));
}

#[test]
fn an_oversized_frame_closes_its_connection_only() {
    let key = key();
    let ([mut lane, mut other], addresses) = network(key);
    let bytes = (FRAME_BYTES_MAX as u32 + 1).to_le_bytes();
    let stream = join(&mut lane, addresses[0], key, Pe::new(1), &bytes);
    poll_until_counted(&mut lane, |counters| &counters.oversized, 1);
    assert!(is_closed(stream));
    deliver_one(&mut other, Pe::ROOT, &mut lane, b"still here");
}

/// Polls the lane, sleeping between any two polls, until `is_done`.
fn doze(mut lane: TcpLane, is_done: fn(&TcpLane, frames: usize) -> bool) {
    together(vec![Box::new(move || {
        let mut frames = 0;
        while !is_done(&lane, frames) {
            frames += lane.poll(&mut |_, _| {}).unwrap();
            if !is_done(&lane, frames) {
                lane.sleeper().sleep(PATIENCE * 2);
            }
        }
    })]);
}

#[test]
fn what_a_round_leaves_unread_is_not_slept_on() {
    let key = key();
    let ([mut lane, _other], addresses) = network(key);
    lane.sockets.scratch = vec![0; 16].into();
    let mut bytes = 1000_u32.to_le_bytes().to_vec();
    bytes.extend([0; 1000]);
    let _stream = join(&mut lane, addresses[0], key, Pe::new(1), &bytes);
    doze(lane, |_, frames| frames == 1);
}

#[test]
fn what_a_round_leaves_unaccepted_is_not_slept_on() {
    let ([mut lane], addresses) = network(key());
    lane.sockets.hello_within = Duration::ZERO;
    let _streams: Vec<_> = (0..100).map(|_| call(addresses[0], b"")).collect();
    doze(lane, |lane, _| lane.counters().strangers.load(Ordering::Relaxed) == 100);
}

#[test]
fn a_pe_that_does_not_listen_is_dialled_again() {
    let ([mut lane, gone], _) = network(key());
    drop(gone);
    until(|| {
        lane.send(Pe::new(1), &mut b"frame".to_vec()).unwrap();
        lane.poll(&mut |_, _| panic!("no frame can arrive")).unwrap();
        lane.counters().redials.load(Ordering::Relaxed) >= 2
    });
    assert!(lane.counters().broken.load(Ordering::Relaxed) >= 2);
}

/// What a lane does whose peer does not answer, while the socket that listens stays open.
fn wait_for_the_end_of_a_dial(lane: &mut TcpLane) {
    assert!(!lane.is_flushed());
    poll_until_counted(lane, |counters| &counters.broken, 1);
    assert!(lane.is_flushed(), "what waited is given up with the dial");
}

#[test]
fn a_call_that_is_not_answered_is_given_up_though_nothing_more_is_sent() {
    let endpoints = [(); 2].map(|()| TcpEndpoint::bind(LOCALHOST, None).unwrap());
    let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
    let [own, _silent] = endpoints;
    let mut lane = own.into_lane(Pe::ROOT, addresses, key(), usize::MAX).unwrap();
    lane.sockets.dial_within = Duration::from_millis(5);
    assert!(lane.send(Pe::new(1), &mut b"frame".to_vec()).unwrap());
    wait_for_the_end_of_a_dial(&mut lane);
}

#[test]
fn a_lane_that_ends_turns_away_those_who_have_called() {
    let endpoints = [(); 2].map(|()| TcpEndpoint::bind(LOCALHOST, None).unwrap());
    let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
    let [own, leaving] = endpoints;
    let _open = leaving.second_descriptor().unwrap();
    let key = key();
    let mut lane = own.into_lane(Pe::ROOT, addresses.clone(), key, usize::MAX).unwrap();
    lane.sockets.dial_within = PATIENCE * 2;
    let leaving = leaving.into_lane(Pe::new(1), addresses, key, usize::MAX).unwrap();
    assert!(lane.send(Pe::new(1), &mut b"frame".to_vec()).unwrap());
    drop(leaving);
    wait_for_the_end_of_a_dial(&mut lane);
}

#[test]
fn a_later_connection_replaces_an_earlier_one() {
    let key = key();
    let ([mut lane, _other], addresses) = network(key);
    let mut bytes = 5_u32.to_le_bytes().to_vec();
    bytes.extend(b"frame");
    let mut connections = Vec::new();
    for count in 1..=2 {
        connections.push(join(&mut lane, addresses[0], key, Pe::new(1), &bytes));
        let mut heard = Vec::new();
        until(|| {
            lane.poll(&mut |from, frame| heard.push((from, frame.to_vec()))).unwrap();
            !heard.is_empty()
        });
        assert_eq!(heard, [(Pe::new(1), b"frame".to_vec())]);
        assert_eq!(lane.counters().broken.load(Ordering::Relaxed), count - 1);
    }
    assert!(is_closed(connections.swap_remove(0)));
}

#[test]
fn a_port_above_survives_broken_connections() {
    let ([sender, receiver], _) = network(key());
    let counters = [sender.counters(), receiver.counters()];
    let is_to_break = Arc::new(AtomicBool::new(false));
    let is_told = is_to_break.clone();
    let receiver = Disturbed(receiver, move |lane: &mut TcpLane| {
        if is_told.swap(false, Ordering::Relaxed) {
            lane.sockets.break_connections();
        }
        Ok(())
    });
    let mut broken = 0;
    stream([Box::new(sender), Box::new(receiver)], 300, |received| {
        if received / 100 > broken {
            broken += 1;
            is_to_break.store(true, Ordering::Relaxed);
        }
    });
    assert!(counters[0].broken.load(Ordering::Relaxed) >= 1);
    // Either may be the first to dial again.
    let dialled = |counters: &Arc<TcpCounters>| counters.dialled.load(Ordering::Relaxed);
    assert!(counters.iter().map(dialled).sum::<u64>() >= 2);
}

impl Sockets {
    /// Ends all connections in the middle of a frame.
    fn break_connections(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            // One that the other end has ended already is as good as broken.
            let _ = connection.stream.write_all(&[9, 0]);
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
