//! Workers that are killed, or fall silent.

use std::mem;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use ultramarine_testkit::eventually;

use super::{Place, options};
use crate::mapped::task::TaskRef;
use crate::mapped::worker::life::{Life, Phase};
use crate::state::{Runner, State};
use crate::sync::Ordering::{Acquire, Release};
use crate::test_process::{in_child, was_killed, words};
use crate::{Arena, Error, Options, Result, Worker};

const CODE: [u8; 16] = [5; 16];
const TASKS: u64 = 300;

/// Adds what the others run: each task awaits the one before it in its chain, of ten.
fn add_all(worker: &Worker<'_>) -> Result<()> {
    let set = worker.set("chains")?;
    set.then(CODE, &[])?;
    for number in 0..TASKS {
        let before = number.checked_sub(10).map(|before| set.task(before)).transpose()?;
        set.after(before.as_slice(), number, CODE, &[0; 40])?;
    }
    Ok(())
}

/// Runs all, slowly; each task leaves its number in a cell.
fn run_all(worker: &Worker<'_>) -> Result<()> {
    let set = worker.set("chains")?;
    set.run(|call| {
        sleep(Duration::from_millis(1));
        let cell = set.cell(call.number() % 7).unwrap();
        cell.update(|old| {
            let number = call.number().to_le_bytes();
            let is_there = old.chunks(8).any(|other| other == number);
            [old, &number[if is_there { 8 } else { 0 }..]].concat()
        })
        .unwrap();
        call.number().to_le_bytes().repeat(1 + call.number() as usize % 5)
    })
}

fn check(worker: &Worker<'_>) -> Result<()> {
    let set = worker.set("chains")?;
    for number in 0..TASKS {
        let result = set.result(number)?.unwrap();
        assert!(result.starts_with(&number.to_le_bytes()), "task {number}: {result:?}");
    }
    let mut count = 0;
    for cell in 0..7 {
        let content = set.cell(cell)?.read()?;
        let mut numbers: Vec<_> = content.chunks(8).collect();
        count += numbers.len() as u64;
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(8 * numbers.len(), content.len(), "an effect twice");
    }
    assert_eq!(count, TASKS + 1);
    Ok(())
}

#[test]
#[ignore = "a child of the others"]
fn child() {
    match words().as_deref() {
        Some([path, role]) if role == "run" => {
            let arena = Arena::open(path, &options()).unwrap();
            // The slots of those that were killed last may not be free yet.
            eventually("a slot is free", || match arena.join() {
                Err(Error::NoSlot(_)) => false,
                worker => {
                    let worker = worker.unwrap();
                    add_all(&worker).unwrap();
                    run_all(&worker).unwrap();
                    true
                }
            });
        }
        Some([path, role]) if role == "die" => {
            let arena = Arena::open(path, &options()).unwrap();
            let worker = arena.join().unwrap();
            let set = worker.set("deadly").unwrap();
            set.add(1, CODE, &[]).unwrap();
            let _ = set.run(|_| die());
        }
        Some([path, tasks]) => {
            let arena = Arena::open(path, &options().size_bytes(1 << 30)).unwrap();
            let worker = arena.join().unwrap();
            let set = worker.set("left").unwrap();
            for number in 0..tasks.parse().unwrap() {
                set.add(number, CODE, &[]).unwrap();
            }
            die();
        }
        _ => {}
    }
}

fn die() -> [u8; 0] {
    use rustix::process::{Signal, getpid, kill_process};
    kill_process(getpid(), Signal::KILL).unwrap();
    []
}

fn start(path: &Path) -> Child {
    in_child("mapped::tests::life::child", &format!("{} run", path.display())).spawn().unwrap()
}

/// Kills workers, again and again, and then all that are left. Returns how many it has killed, and
/// whether some had finished before.
fn kill_some(place: &Place, kills: u64, mut random: impl FnMut() -> u64) -> (u64, bool) {
    let mut children: Vec<_> = (0..3).map(|_| start(&place.path())).collect();
    let mut ended = Vec::new();
    for _ in 0..kills {
        sleep(Duration::from_micros(random() % 30_000));
        let chosen = random() as usize % 3;
        let next = start(&place.path());
        ended.push(mem::replace(&mut children[chosen], next));
        let last = ended.last_mut().unwrap();
        last.kill().unwrap();
        last.wait().unwrap();
    }
    children.iter_mut().for_each(|child| child.kill().unwrap());
    ended.extend(children);
    let total = ended.len() as u64;
    let killed = ended.iter_mut().map(|child| was_killed(child.wait().unwrap()));
    let killed = killed.filter(|was_killed| *was_killed).count() as u64;
    (killed, killed < total)
}

/// A generator (Marsaglia 2003, xorshift), and its seed.
fn random() -> (u64, impl FnMut() -> u64) {
    let seed = std::process::id().into();
    let mut state: u64 = seed | 1 << 40;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (seed, next)
}

/// Kills processes one by one while another of the job lives, and then all that are left.
fn kill_and_finish(kills: u64) -> Result<()> {
    let (seed, mut random) = random();
    println!("seed {seed}");
    let mut killed = 0;
    while killed < kills {
        let place = Place::new();
        let arena = place.open();
        for _ in 0..3 {
            let (more, have_ended) = kill_some(&place, random() % 20, &mut random);
            killed += more;
            if have_ended {
                break;
            }
        }
        drop(arena);
        // All are killed at once, and the next ones find all dead.
        for _ in 0..2 {
            killed += kill_some(&place, random() % 2, &mut random).0;
        }
        let arena = place.open();
        let worker = arena.join()?;
        add_all(&worker)?;
        run_all(&worker)?;
        check(&worker)?;
    }
    println!("{killed} killed");
    Ok(())
}

#[test]
fn killed_workers_lose_nothing() {
    kill_and_finish(9).unwrap();
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_killed_workers_lose_nothing() {
    kill_and_finish(1000).unwrap();
}

/// A process adds tasks and is killed; another runs them.
fn leave_and_run(tasks: u64) -> Result<()> {
    let place = Place::new();
    let options = options().size_bytes(1 << 30);
    let arena = Arena::open(place.path(), &options)?;
    let worker = arena.join()?;
    let words = format!("{} {tasks}", place.path().display());
    assert!(was_killed(in_child("mapped::tests::life::child", &words).status().unwrap()));
    let set = worker.set("left")?;
    let mut count = 0;
    set.run(|call| {
        count += 1;
        call.number().to_le_bytes()
    })?;
    assert_eq!(count, tasks);
    for number in (0..tasks).step_by(997) {
        assert_eq!(set.result(number)?.unwrap(), number.to_le_bytes());
    }
    // The slot, its queue and its pages go to the next.
    assert_eq!(arena.join()?.number(), 1);
    Ok(())
}

#[test]
fn the_queue_of_a_dead_worker_is_run_by_another() {
    leave_and_run(20_000).unwrap();
}

#[test]
#[ignore = "takes a while"]
fn a_million_tasks_of_a_dead_worker_are_run_by_another() {
    leave_and_run(1_000_000).unwrap();
}

/// A worker of which only the beat is known, and that has stopped.
fn silent(arena: &Arena) -> Worker<'_> {
    let worker = arena.join().unwrap();
    worker.slot.home.store(77, Release);
    worker
}

#[test]
fn a_silent_worker_is_given_up_and_finds_out() -> Result<()> {
    let place = Place::new();
    let options: Options = options().silent_after(Duration::from_millis(50));
    let arena = Arena::open(place.path(), &options)?;
    let [silent, worker] = [silent(&arena), arena.join()?];
    let set = silent.set("silent")?;
    set.add(1, CODE, &[])?;
    set.add(2, CODE, &[])?;
    // It runs one of them, and has both finished by another meanwhile.
    let ended = set.run(|call| {
        let set = worker.set("silent").unwrap();
        bounded_run(&worker, &set);
        [call.deaths() as u8, 1]
    });
    assert!(matches!(ended, Err(Error::Expelled)), "{ended:?}");
    // Results of the other count, in blocks of their own.
    assert_eq!([set.result(1)?.unwrap(), set.result(2)?.unwrap()], [[0, 2], [1, 2]]);
    let life = Life::load(&silent.slot.life);
    assert_eq!(life.phase, Phase::Silent);
    assert_eq!(arena.join()?.number(), 2, "the slot is not given to another");
    drop(silent);
    drop(worker);
    drop(arena);
    assert_eq!(place.open().join()?.number(), 0, "but when the arena is opened alone");
    Ok(())
}

fn bounded_run(worker: &Worker<'_>, set: &crate::TaskSet<'_>) {
    set.run(|call| [call.deaths() as u8, 2]).unwrap();
    assert!(worker.is_alive());
}

#[test]
fn who_takes_over_may_die_and_is_taken_over() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let [first, second, third] = [arena.join()?, arena.join()?, arena.join()?];
    first.set("chain of deaths")?.add(1, CODE, &[])?;
    let task = TaskRef::open(arena.space(), first.next().unwrap())?;
    State::claim(&task.task.state, first.runner).unwrap();
    // The second dies while it takes over the first.
    let life = Life::load(&first.slot.life);
    assert!(life.become_in(&first.slot.life, Phase::Taken(1)));
    second.slot.born.store(1, Release);
    [first, second].into_iter().for_each(mem::forget);
    assert!(third.look_for_dead());
    assert!(!third.look_for_dead());
    let lives = [0, 1].map(|worker| Life::load(&arena.space().slot(worker).life).phase);
    assert_eq!(lives, [Phase::Free; 2]);
    assert_eq!(arena.space().slot(0).running.load(Acquire), 0);
    let set = third.set("chain of deaths")?;
    assert!(!third.slot.queue.is_empty(), "the task is queued, and waits for no sweep");
    set.run(|_| [3; 3])?;
    assert_eq!(set.result(1)?.unwrap(), [3; 3]);
    assert_eq!(task.state().deaths, 1);
    Ok(())
}

/// How many deaths a task counts after these deaths of its workers.
fn deaths_after(place: &Place, deaths: usize) -> Result<u16> {
    for _ in 0..deaths {
        let words = format!("{} die", place.path().display());
        assert!(was_killed(in_child("mapped::tests::life::child", &words).status().unwrap()));
    }
    let arena = place.open();
    let mut counted = 0;
    arena.join()?.set("deadly")?.run(|call| {
        counted = call.deaths();
        []
    })?;
    Ok(counted)
}

#[test]
fn a_death_is_counted_unless_the_whole_job_has_ended() -> Result<()> {
    assert_eq!(deaths_after(&Place::new(), 3)?, 0);
    let place = Place::new();
    let living = place.open();
    assert_eq!(deaths_after(&place, 3)?, 3);
    drop(living);
    Ok(())
}

#[test]
fn a_task_of_a_worker_that_no_slot_knows_is_run_again() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("unknown")?;
    for (number, of) in [(1, worker.number()), (2, 3), (3, 999)] {
        set.add(number, CODE, &[])?;
        let task = TaskRef::open(arena.space(), worker.next().unwrap())?;
        let runner = Runner { worker: of as u16, incarnation: 77 };
        State::claim(&task.task.state, runner).unwrap();
    }
    set.run(|call| [call.deaths() as u8])?;
    for number in 1..4 {
        assert_eq!(set.result(number)?.unwrap(), [1]);
    }
    Ok(())
}
