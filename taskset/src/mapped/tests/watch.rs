//! Who is taken for dead, and who is not.

use std::fs::File;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::{Place, options};
use crate::mapped::task::TaskRef;
use crate::mapped::worker::life::{Life, Phase};
use crate::state::{State, Status};
use crate::sync::Ordering::Release;
use crate::test_process::{in_child, was_killed, words};
use crate::{Arena, Result, Worker};

const CODE: [u8; 16] = [5; 16];

/// The one that was about to take over a dead worker was given up, but goes on.
#[test]
fn what_a_silent_worker_was_about_to_take_over_is_taken_over() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let [dead, silent, worker] = [arena.join()?, arena.join()?, arena.join()?];
    dead.set("left")?.add(1, CODE, &[])?;
    let task = TaskRef::open(arena.space(), dead.next().unwrap())?;
    State::claim(&task.task.state, dead.runner).unwrap();
    let life = |worker: &Worker<'_>| Life::load(&worker.slot.life);
    let become_phase = |of: &Worker<'_>, phase| life(of).become_in(&of.slot.life, phase);
    assert!(become_phase(&silent, Phase::Silent));
    assert!(become_phase(&dead, Phase::Taken(1)));
    let by_silent = life(&dead);
    assert!(worker.look_for_dead());
    assert_eq!(task.state().status, Status::Ready);
    // The other may still write what belongs to the slot, and cannot make it free.
    assert_eq!(life(&dead).phase, Phase::Silent);
    assert!(!by_silent.become_in(&dead.slot.life, Phase::Free));
    assert!(!worker.look_for_dead());
    [dead, silent].into_iter().for_each(mem::forget);
    Ok(())
}

/// Looks for dead workers with this many descriptors to spare. Worker 1 is dead; worker 0 lives.
fn look_with(path: &Path, spare: u64) {
    let arena = Arena::open(path, &options()).unwrap();
    let worker = arena.join().unwrap();
    let next = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    let limit = getrlimit(Resource::Nofile);
    let few = rustix::process::Rlimit { current: Some(next + spare), ..limit };
    setrlimit(Resource::Nofile, few).unwrap();
    assert!(worker.look_for_dead());
    let phase = |worker| Life::load(&arena.space().slot(worker).life).phase;
    assert_eq!(phase(1), Phase::Free);
    for _ in 0..3 {
        assert!(!worker.look_for_dead());
        assert!(matches!(phase(0), Phase::Alive(_)));
    }
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(!worker.look_for_dead());
}

#[test]
#[ignore = "a child of the others"]
fn child() {
    if let Some([path, spare]) = words().as_deref() {
        look_with(Path::new(path), spare.parse().unwrap());
    }
}

#[test]
fn no_worker_is_dead_for_want_of_descriptors() -> Result<()> {
    for spare in 0..3 {
        let place = Place::new();
        let arena = place.open();
        let worker = arena.join()?;
        let words = format!("{} {spare}", place.path().display());
        assert!(was_killed(in_child("mapped::tests::life::child", &words).status().unwrap()));
        assert!(!was_killed(in_child("mapped::tests::watch::child", &words).status().unwrap()));
        assert!(worker.is_alive());
    }
    Ok(())
}

/// It may be of another host, where its process's number means something else.
#[test]
fn a_worker_that_has_not_said_where_it_is_is_not_looked_for() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let [new, worker] = [arena.join()?, arena.join()?];
    new.slot.home.store(0, Release);
    // No process has this number.
    let phase = Phase::Alive((1 << 22) - 1);
    assert!(Life::load(&new.slot.life).become_in(&new.slot.life, phase));
    assert!(!worker.look_for_dead());
    assert_eq!(Life::load(&new.slot.life).phase, phase);
    new.slot.home.store(77, Release);
    assert!(!worker.look_for_dead());
    // It is silent from the beginning, and may only seem dead.
    new.slot.home.store(0, Release);
    let later = Arena::open(place.path(), &options().silent_after(Duration::from_millis(1)))?;
    let third = later.join()?;
    assert!(!third.look_for_dead());
    sleep(Duration::from_millis(2));
    assert!(third.look_for_dead());
    assert_eq!(Life::load(&new.slot.life).phase, Phase::Silent);
    mem::forget(new);
    Ok(())
}
