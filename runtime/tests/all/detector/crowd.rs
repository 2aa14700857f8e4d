//! Many detectors, and many threads that want their cores.

use super::played::{Job, Watcher};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::{DetectorSettings, FailureEvent};
use ultramarine_testkit::eventually;
use ultramarine_topology::Pe;

const CROWD: usize = 100;

/// Waits until a PE has heard of this number of deaths; returns the dead.
fn dead(watcher: &Watcher, count: usize) -> Vec<Pe> {
    let mut dead = Vec::new();
    while dead.len() < count {
        let Ok(event) = watcher.events.recv_timeout(super::PATIENCE) else {
            panic!("at {} it knows only {dead:?}: {:?}", watcher.address, watcher.counters());
        };
        match event {
            FailureEvent::Dead(pes) => dead.extend(pes),
            other => panic!("{other:?}"),
        }
    }
    dead
}

#[test]
fn a_crowd_agrees_on_who_of_it_is_gone_and_on_the_end() {
    let job = Job::start(CROWD, 0, DetectorSettings::default());
    let heard = |watcher: &Watcher| watcher.counters().heartbeats_received.load(Relaxed) >= 4;
    eventually("all have heard", || job.watchers.iter().all(heard));
    let dialled = |watcher: &Watcher| watcher.counters().dialled.load(Relaxed);
    let before: Vec<_> = job.watchers.iter().map(dialled).collect();
    assert!(before.iter().all(|dialled| *dialled <= 2));

    // Every fourth, and a whole stretch of the ring.
    let goes = |pe: &usize| pe % 4 == 3 || (40..56).contains(pe);
    let start = Instant::now();
    let mut expected = BTreeSet::new();
    let mut living = Vec::new();
    for (pe, watcher) in job.watchers.into_iter().enumerate() {
        if goes(&pe) {
            expected.insert(Pe::new(pe as u32));
        } else {
            living.push(watcher);
        }
    }
    let order = dead(&living[0], expected.len());
    println!("{} of {CROWD} gone: the root knew all after {:?}", order.len(), start.elapsed());
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), expected);
    for watcher in &living[1..] {
        assert_eq!(dead(watcher, expected.len()), order);
    }
    println!("all knew all after {:?}", start.elapsed());
    let dialled: Vec<_> = living.iter().map(dialled).collect();
    println!("calls made: {:?} by the root, at most {:?}", dialled[0], dialled.iter().max());

    let start = Instant::now();
    drop(living.remove(0));
    for watcher in &living {
        assert!(matches!(watcher.event(), FailureEvent::RootLost { .. }));
    }
    println!("{} knew that the root is gone after {:?}", living.len(), start.elapsed());
}

/// As when the lane of each has come to a stand: each suspects all others, again and again.
#[test]
fn in_a_crowd_with_few_connections_all_are_heard_in_turn() {
    let settings = DetectorSettings::default();
    for connections_max in [2, 5] {
        let job = Job::with_connections_max(connections_max, 16, 0, settings);
        let all: Vec<_> = (0..16).map(Pe::new).collect();
        let begun = Instant::now();
        while begun.elapsed() < settings.dead_after * 3 {
            for watcher in &job.watchers {
                all.iter().for_each(|pe| watcher.detector.suspect(*pe));
                let event = watcher.events.try_recv();
                assert!(event.is_err(), "{event:?} after {:?}", begun.elapsed());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut living = job.watchers;
        living.drain(7..9).for_each(drop);
        for watcher in &living {
            let mut dead = dead(watcher, 2);
            dead.sort_unstable();
            assert_eq!(dead, [7, 8].map(Pe::new));
        }
        println!("{connections_max} connections: all knew all after {:?}", begun.elapsed());
    }
}

#[test]
fn a_pe_that_gets_little_of_its_cores_is_not_dead() {
    let settings = DetectorSettings::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let hogs: Vec<_> = (0..cores * 16)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || while !is_over.load(Relaxed) {})
        })
        .collect();
    let job = Job::start(10, 0, settings);
    let begun = Instant::now();
    while begun.elapsed() < settings.dead_after * 3 / 2 {
        let quiet = |watcher: &Watcher| watcher.is_quiet_for(Duration::from_millis(10));
        assert!(job.watchers.iter().all(quiet));
    }
    is_over.store(true, Relaxed);
    hogs.into_iter().for_each(|hog| hog.join().unwrap());
    let stalls = |watcher: &Watcher| watcher.counters().stalls.load(Relaxed);
    println!("stalls: {:?}", job.watchers.iter().map(stalls).collect::<Vec<_>>());
    job.goodbye();
}
