//! A worker dies at each instruction in turn, and another finishes.

use std::path::Path;

use super::{Place, options};
use crate::mapped::collect::used;
use crate::mapped::task::TaskRef;
use crate::state::State;
use crate::test_process::{in_child, was_killed, words};
use crate::{Arena, Call, Result, Worker, crash};

const TASK: [u8; 16] = [1; 16];
const MORE: [u8; 16] = [2; 16];
const LAST: [u8; 16] = [3; 16];

/// Two sets, of which one awaits the other; tasks that await others, that add others, and that
/// change a cell; and a continuation. It can be called again and again.
fn work(worker: &Worker<'_>) -> Result<()> {
    let [first, second] = [worker.set("first")?, worker.set("second")?];
    first.then(LAST, b"after the first")?;
    first.add(1, MORE, &[])?;
    first.add(2, TASK, &[7; 100])?;
    first.after(&[first.task(1)?, first.task(2)?], 3, TASK, &[])?;
    first.after(&[first.task(1)?, first.task(3)?], 4, TASK, &[])?;
    second.after(&[first.end()?], 5, TASK, &[])?;
    let run = |call: &Call<'_>| {
        if call.code() == MORE {
            (10..13).for_each(|number| _ = first.add(number, TASK, &[]).unwrap());
        }
        let cell = first.cell(call.number() % 2).unwrap();
        cell.update(|old| {
            let number = call.number() as u8;
            let is_there = old.contains(&number);
            [old, &[number][usize::from(is_there)..]].concat()
        })
        .unwrap();
        result(call.number())
    };
    second.run(run)?;
    first.run(run)
}

/// A result that has a block of its own, but for one that lies in its task.
fn result(number: u64) -> Vec<u8> {
    match number {
        2 => b"a short result".to_vec(),
        _ => format!("the result of task number {number}").into_bytes(),
    }
}

/// Others see a short result while it is written: each of its words is a point to die at.
#[test]
fn each_word_of_a_short_result_counts() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    worker.set("short")?.add(1, TASK, &[])?;
    let task = TaskRef::open(arena.space(), worker.next().unwrap())?;
    let claimed = State::claim(&task.task.state, worker.runner).unwrap();
    let (finished, changes) = crash::count(|| task.finish(&worker.blocks, claimed, &result(2)));
    // Its length, two words, and the state.
    assert!(finished? && changes >= 4, "{changes}");
    Ok(())
}

fn check(worker: &Worker<'_>) {
    let [first, second] = ["first", "second"].map(|name| worker.set(name).unwrap());
    for number in [1, 2, 3, 4, 10, 11, 12] {
        assert_eq!(first.result(number).unwrap().unwrap(), result(number));
    }
    assert_eq!(second.result(5).unwrap().unwrap(), result(5));
    assert_eq!(first.outcome().unwrap().unwrap(), result(u64::MAX - 1));
    let mut done: Vec<_> = [0, 1].map(|cell| first.cell(cell).unwrap().read().unwrap()).concat();
    done.sort_unstable();
    assert_eq!(done, [1, 2, 3, 4, 5, 10, 11, 12, 254]);
}

fn live(path: &Path) -> Result<()> {
    let arena = Arena::open(path, &options())?;
    work(&arena.join()?)
}

/// How many changes a whole life makes, and how many blocks it leaves.
fn whole_life() -> (i64, (u64, u64)) {
    let place = Place::new();
    let (ended, changes) = crash::count(|| live(&place.path()));
    ended.unwrap();
    (changes, used(place.open().space()))
}

/// The process that dies.
#[test]
#[ignore = "a child of the others"]
fn child() {
    if let Some([path, changes]) = words().as_deref() {
        crash::after(changes.parse().unwrap());
        live(Path::new(path)).unwrap();
    }
}

fn dies_after(path: &Path, changes: i64) -> bool {
    let words = format!("{} {changes}", path.display());
    was_killed(in_child("mapped::tests::death::child", &words).status().unwrap())
}

/// After each death the next process has the arena alone.
fn alone(points: impl Iterator<Item = (i64, i64)>) {
    let (_, blocks) = whole_life();
    for (point, next) in points {
        let place = Place::new();
        assert!(dies_after(&place.path(), point), "no death after {point} changes");
        // The second one dies as well, somewhere else.
        dies_after(&place.path(), next);
        live(&place.path()).unwrap();
        let arena = place.open();
        check(&arena.join().unwrap());
        assert_eq!(used(arena.space()), blocks, "blocks in use after deaths at {point}, {next}");
    }
}

/// Another worker of the job lives on.
fn among_others(points: impl Iterator<Item = (i64, i64)>) {
    for (point, next) in points {
        let place = Place::new();
        let arena = place.open();
        let worker = arena.join().unwrap();
        dies_after(&place.path(), point);
        // Some of these die while they take over the first.
        dies_after(&place.path(), next);
        work(&worker).unwrap_or_else(|error| panic!("deaths at {point}, {next}: {error}"));
        check(&worker);
        let (small, large) = used(arena.space());
        drop(worker);
        drop(arena);
        let arena = place.open();
        let left = used(arena.space());
        check(&arena.join().unwrap());
        // See `blocks`: one that was about to be freed, for each death.
        assert!(small - left.0 <= 2 && large == left.1, "lost after deaths at {point}, {next}");
    }
}

/// All points of a life, each with one of the next.
fn points(shift: i64) -> impl Iterator<Item = (i64, i64)> {
    let (changes, _) = whole_life();
    println!("{changes} changes");
    (1..changes).map(move |point| (point, (point * 61 + 97 * shift) % changes + 1))
}

#[test]
fn deaths_at_some_instructions() {
    alone(points(0).step_by(7));
    among_others(points(0).step_by(7));
}

#[test]
#[ignore = "takes a minute: some thousands of processes die"]
fn deaths_at_all_instructions() {
    for shift in 0..4 {
        alone(points(shift));
        among_others(points(shift));
    }
}
