//! Bytes that are not from a PE of the job change only the counters.

use super::played::{Call, Job, SETTINGS, Watcher, known};
use super::{ONE, PATIENCE, TWO};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorCounters;
use ultramarine_runtime::handshake::{Handshake, JobKey, Purpose};
use ultramarine_runtime::protocol::{Claim, Death, Heading, Notice, Term};
use ultramarine_testkit::eventually;
use ultramarine_topology::Pe;

fn lost(pe: Pe) -> Notice {
    Notice::Accuse { pe, claim: Claim::Lost }
}

/// Connects to the first detector and sends this.
fn call(job: &Job, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(job.watchers[0].address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

type Counter = fn(&DetectorCounters) -> &AtomicU64;

fn until_counted(job: &Job, counter: Counter, count: u64) {
    let counters = job.watchers[0].counters();
    eventually("it is counted", || counter(&counters).load(Relaxed) >= count);
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
    eventually("it is counted", || counters.strangers.load(Relaxed) >= 400 - 256);
    all_is_well(job);
}

#[test]
fn a_replayed_handshake_is_forged() {
    let job = Job::start(3, 0, SETTINGS);
    let mut genuine = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    let accusation = genuine.frame(&lost(ONE));
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

/// A PE of the job says something wrong after its handshake.
#[test]
fn wrong_frames_are_forged_truncated_or_oversized() {
    type Spoil = fn(&mut Call) -> Vec<u8>;
    let cases: [(&str, Spoil, Counter); 4] = [
        (
            "it is changed",
            |call| {
                let mut frame = call.frame(&lost(TWO));
                frame[5] = 1;
                frame
            },
            |counters| &counters.forged,
        ),
        ("it comes again", |call| call.frame(&known(0)).repeat(2), |counters| &counters.forged),
        (
            "it stops",
            |call| {
                let mut frame = call.frame(&lost(ONE));
                frame.pop();
                frame
            },
            |counters| &counters.truncated,
        ),
        (
            "it is over the limit",
            |_| u32::MAX.to_le_bytes().to_vec(),
            |counters| &counters.oversized,
        ),
    ];
    for (what, spoil, counter) in cases {
        println!("{what}");
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
}

#[test]
fn senseless_notices_have_no_effect() {
    let job = Job::start(3, 0, SETTINGS);
    let mut call = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    for notice in [
        lost(Pe::new(3)),
        lost(Pe::new(u32::MAX)),
        lost(Pe::ROOT),
        lost(TWO),
        Notice::Bulletin { of: Heading::FIRST, after: 0, dead: vec![Death::silent(ONE)] },
        Notice::Orphaned { herald: ONE, term: Term::FIRST, claim: Claim::Suspected },
        Notice::Known { of: Heading::FIRST, dead: u32::MAX },
    ] {
        call.say(&notice);
    }
    let counters = job.watchers[0].counters();
    eventually("it is counted", || counters.notices_received.load(Relaxed) == 6);
    all_is_well(job);
}
