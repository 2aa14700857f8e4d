//! Who says that a process is gone: a witness, and not a refused call between hosts.

use super::THREE;
use super::played::{Call, Job, SETTINGS, known};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use ultramarine_runtime::detector::{DetectorSettings, Witness};
use ultramarine_runtime::handshake::JobKey;

const SECOND: Duration = Duration::from_secs(1);

/// A silence is no reason to lose anyone.
const PATIENT: DetectorSettings = DetectorSettings {
    dead_after: Duration::from_secs(100),
    stalled_after: Duration::from_secs(100),
    root_after: Duration::from_secs(100),
    ..SETTINGS
};

/// Four PEs on a host each, of which PE 3 has been heard by its partners and is gone now. Its guard
/// has its listener.
fn gone() -> (Job, TcpListener) {
    let mut job = Job::apart(3, 1, PATIENT);
    let guards = job.played[0].try_clone().unwrap();
    let mut called = Call::accept(&job.played[0], job.key, THREE, 4);
    called.say(&known(0));
    job.played.clear();
    (job, guards)
}

#[test]
fn a_refused_call_to_another_host_is_no_death() {
    let (job, guards) = gone();
    drop(guards);
    for watcher in &job.watchers {
        assert!(watcher.is_quiet_for(SECOND / 2));
    }
    let refused = job
        .watchers
        .iter()
        .map(|watcher| watcher.counters().refused.load(std::sync::atomic::Ordering::Relaxed));
    assert!(refused.sum::<u64>() > 2, "they have called it again and again");
}

#[test]
fn a_witness_is_believed_by_all_at_once() {
    let (job, guards) = gone();
    let witness = Witness::new(THREE, 4, job.key);
    let says = thread::spawn(move || witness.answer(&guards, SECOND / 2, SECOND * 60));
    job.all_hear_of(THREE);
    // It ends when no more calls come.
    says.join().unwrap();
}

#[test]
fn a_witness_without_the_key_is_a_forger() {
    let (job, guards) = gone();
    let witness = Witness::new(THREE, 4, JobKey::random().unwrap());
    let says = thread::spawn(move || witness.answer(&guards, SECOND, SECOND));
    for watcher in &job.watchers {
        assert!(watcher.is_quiet_for(SECOND / 5));
    }
    says.join().unwrap();
}

#[test]
fn those_that_say_nothing_do_not_keep_a_witness_from_the_others() {
    let (job, guards) = gone();
    let _silent: Vec<TcpStream> =
        (0..100).map_while(|_| TcpStream::connect(guards.local_addr().unwrap()).ok()).collect();
    let witness = Witness::new(THREE, 4, job.key);
    let says = thread::spawn(move || witness.answer(&guards, SECOND / 2, SECOND * 60));
    job.all_hear_of(THREE);
    says.join().unwrap();
}
