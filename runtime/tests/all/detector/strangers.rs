//! Bytes that are not from a PE of the job change only the counters.

use super::PATIENCE;
use super::played::{Call, Job, SETTINGS, Watcher, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorCounters;
use ultramarine_runtime::handshake::{Handshake, JobKey, Purpose};
use ultramarine_runtime::protocol::{Claim, Death, Heading, Notice, Term};
use ultramarine_topology::Pe;

const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);

/// Connects to the first detector and sends this.
fn call(job: &Job, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(job.watchers[0].address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn until_counted(job: &Job, counter: fn(&DetectorCounters) -> &AtomicU64, count: u64) {
    let counters = job.watchers[0].counters();
    until(|| counter(&counters).load(Relaxed) >= count);
    assert_eq!(counter(&counters).load(Relaxed), count);
}

fn is_closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok_and(|read| read < 100)
        || stream
            .read(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

/// No PE was reported dead, and the detectors still work.
fn all_is_well(mut job: Job) {
    assert!(job.watchers.iter().all(|watcher| watcher.is_quiet_for(Duration::ZERO)));
    drop(job.watchers.remove(1));
    let events: Vec<_> = job.watchers.iter().map(Watcher::event).collect();
    println!("{events:?}");
    drop(job);
}

#[test]
fn garbage_and_scans_are_strangers() {
    let job = Job::start(3, 0, SETTINGS);
    let hello = |purpose, from, to| Handshake::dial(job.key, purpose, from, to).unwrap().1;
    let strangers: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
        &[0xff; 10_000],
        &hello(Purpose::Lane, ONE, Pe::ROOT),
        &hello(Purpose::Detector, ONE, TWO),
        &hello(Purpose::Detector, Pe::new(3), Pe::ROOT),
        &hello(Purpose::Detector, Pe::ROOT, Pe::ROOT),
    ];
    for (stranger, count) in strangers.iter().zip(1..) {
        let stream = call(&job, stranger);
        until_counted(&job, |counters| &counters.strangers, count);
        assert!(is_closed(stream));
    }
    for (beginning, count) in [&b""[..], b"ULTRAM", &hello(Purpose::Detector, ONE, Pe::ROOT)]
        .into_iter()
        .zip(strangers.len() as u64 + 1..)
    {
        drop(call(&job, beginning));
        until_counted(&job, |counters| &counters.strangers, count);
    }
    all_is_well(job);
}

#[test]
fn very_many_strangers_push_each_other_out() {
    let job = Job::start(3, 0, SETTINGS);
    let _streams: Vec<_> = (0..400).map(|_| call(&job, b"")).collect();
    let counters = job.watchers[0].counters();
    until(|| counters.strangers.load(Relaxed) >= 400 - 256);
    all_is_well(job);
}

#[test]
fn a_replayed_handshake_is_forged() {
    let job = Job::start(3, 0, SETTINGS);
    let mut genuine = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    let accusation = genuine.frame(&Notice::Accuse { pe: ONE, claim: Claim::Lost });
    let replay = call(&job, &[genuine.recorded, accusation].concat());
    until_counted(&job, |counters| &counters.forged, 1);
    assert!(is_closed(replay));
    all_is_well(job);
}

#[test]
fn a_peer_without_the_key_is_a_forger() {
    let job = Job::start(3, 0, SETTINGS);
    let other = JobKey::random().unwrap();
    let (_, hello) = Handshake::dial(other, Purpose::Detector, TWO, Pe::ROOT).unwrap();
    let stream = call(&job, &[&hello[..], &[7; 16]].concat());
    until_counted(&job, |counters| &counters.forged, 1);
    assert!(is_closed(stream));
    all_is_well(job);
}

/// A PE of the job that says something wrong about PE 1 after its handshake.
fn wrong_frame(
    spoil: impl FnOnce(&mut Call) -> Vec<u8>,
    counter: fn(&DetectorCounters) -> &AtomicU64,
) {
    let job = Job::start(3, 0, SETTINGS);
    let mut call = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    let bytes = spoil(&mut call);
    call.stream.write_all(&bytes).unwrap();
    // It may be that it waits for the rest.
    call.stream.shutdown(std::net::Shutdown::Write).unwrap();
    until_counted(&job, counter, 1);
    call.wait_for_end();
    all_is_well(job);
}

#[test]
fn a_changed_frame_is_forged() {
    let spoil = |call: &mut Call| {
        let mut frame = call.frame(&Notice::Accuse { pe: TWO, claim: Claim::Lost });
        frame[5] = 1;
        frame
    };
    wrong_frame(spoil, |counters| &counters.forged);
}

#[test]
fn a_repeated_frame_is_forged() {
    let spoil = |call: &mut Call| {
        let frame = call.frame(&Notice::Known { of: Heading::FIRST, dead: 0 });
        [&frame[..], &frame].concat()
    };
    wrong_frame(spoil, |counters| &counters.forged);
}

#[test]
fn a_frame_that_stops_is_truncated() {
    let spoil = |call: &mut Call| {
        let mut frame = call.frame(&Notice::Accuse { pe: ONE, claim: Claim::Lost });
        frame.pop();
        frame
    };
    wrong_frame(spoil, |counters| &counters.truncated);
}

#[test]
fn a_frame_over_the_limit_is_oversized() {
    wrong_frame(|_| u32::MAX.to_le_bytes().to_vec(), |counters| &counters.oversized);
}

#[test]
fn senseless_notices_have_no_effect() {
    let job = Job::start(3, 0, SETTINGS);
    let mut call = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    for notice in [
        Notice::Accuse { pe: Pe::new(3), claim: Claim::Lost },
        Notice::Accuse { pe: Pe::new(u32::MAX), claim: Claim::Lost },
        Notice::Accuse { pe: Pe::ROOT, claim: Claim::Lost },
        Notice::Accuse { pe: TWO, claim: Claim::Lost },
        Notice::Bulletin { of: Heading::FIRST, after: 0, dead: vec![Death::silent(ONE)] },
        Notice::Orphaned { herald: ONE, term: Term::FIRST, claim: Claim::Suspected },
        Notice::Known { of: Heading::FIRST, dead: u32::MAX },
    ] {
        call.say(&notice);
    }
    let counters = job.watchers[0].counters();
    until(|| counters.notices_received.load(Relaxed) == 6);
    all_is_well(job);
}
