//! Who is taken for dead, and who is not.

use std::fs::File;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use ultramarine_testkit::{behind, eventually};

use super::{Place, options};
use crate::mapped::task::TaskRef;
use crate::mapped::worker::Own;
use crate::mapped::worker::life::{Life, Phase};
use crate::state::{State, Status};
use crate::sync::Ordering::{Acquire, Release};
use crate::test_process::{in_child, was_killed, words};
use crate::{Arena, Error, Result, Worker};

const CODE: [u8; 16] = [5; 16];

/// All others are busy, and do not look for dead workers.
#[test]
fn a_new_worker_gets_the_slot_of_a_dead_one() -> Result<()> {
    let place = Place::new();
    let arena = Arena::open(place.path(), &options().workers(2))?;
    let busy = arena.join()?;
    let words = format!("{} die", place.path().display());
    assert!(was_killed(in_child("mapped::tests::life::child", &words).status().unwrap()));
    let worker = arena.join()?;
    assert_eq!(worker.number(), 1);
    assert!(matches!(arena.join(), Err(Error::NoSlot(2))));
    // It is at no barrier any more, and its task is queued.
    let set = worker.set("deadly")?;
    assert!(worker.sees_work());
    set.run(|call| call.deaths().to_le_bytes())?;
    assert_eq!(set.result(1)?.unwrap(), [1, 0]);
    drop(busy);
    Ok(())
}

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
    match words().as_deref() {
        Some([path, role]) if role == "stay" => stay(Path::new(path)),
        Some([_, role]) if role == "unborn" => assert_eq!(Own::get().born, 0),
        Some([path, spare]) => look_with(Path::new(path), spare.parse().unwrap()),
        _ => {}
    }
}

/// Runs a task until it is killed.
fn stay(path: &Path) {
    let often = options().silent_after(Duration::from_millis(40));
    let arena = Arena::open(path, &often).unwrap();
    let worker = arena.join().unwrap();
    let set = worker.set("staying").unwrap();
    set.add(1, CODE, &[]).unwrap();
    let run = set.run(|_| -> [u8; 0] {
        loop {
            sleep(Duration::from_secs(1));
        }
    });
    run.unwrap();
}

/// A process that is killed at the end, also if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether commands can be started behind these words; says so if not.
fn is_allowed<const N: usize>(words: [&str; N]) -> bool {
    let status = behind(words, &Command::new("true")).status();
    let is_allowed = status.is_ok_and(|status| status.success());
    if !is_allowed {
        println!("skipped: processes cannot have a namespace of their own here");
    }
    is_allowed
}

/// There it would say when another process began.
#[test]
fn where_the_system_shows_other_numbers_it_is_not_asked() {
    let elsewhere = ["unshare", "--pid", "--fork", "--kill-child"];
    if is_allowed(elsewhere) {
        let child = in_child("mapped::tests::watch::child", "- unborn");
        assert!(behind(elsewhere, &child).status().unwrap().success());
    }
}

/// As in another container: there, numbers of processes mean something else.
#[test]
fn a_worker_in_another_namespace_is_known_by_its_beat() -> Result<()> {
    let place = Place::new();
    let arena = Arena::open(place.path(), &options().silent_after(Duration::from_secs(2)))?;
    let worker = arena.join()?;
    let elsewhere = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !is_allowed(elsewhere) {
        return Ok(());
    }
    let child =
        in_child("mapped::tests::watch::child", &format!("{} stay", place.path().display()));
    let mut child = behind(elsewhere, &child);
    let child = Killed(child.stdout(Stdio::null()).spawn().unwrap());
    let slot = arena.space().slot(1);
    let set = worker.set("staying")?;
    eventually("it runs its task", || {
        TaskRef::open(arena.space(), slot.running.load(Acquire))
            .is_ok_and(|task| matches!(task.state().status, Status::Running(_)))
    });
    assert_ne!(slot.home.load(Acquire), worker.slot.home.load(Acquire));
    let seen = slot.beat.count.load(Acquire);
    eventually("it beats", || {
        assert!(!worker.look_for_dead());
        slot.beat.count.load(Acquire) > seen + 2
    });
    drop(child);
    eventually("it is silent", || worker.look_for_dead());
    assert_eq!(Life::load(&slot.life).phase, Phase::Silent);
    set.run(|call| call.deaths().to_le_bytes())?;
    assert_eq!(set.result(1)?.unwrap(), [1, 0]);
    Ok(())
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
