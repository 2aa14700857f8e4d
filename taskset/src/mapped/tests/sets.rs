//! Sets, tasks and what they await, in one process.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::Place;
use crate::closing::{Attempt, keep_open};
use crate::mapped::arena::Space;
use crate::mapped::blocks::Kind;
use crate::mapped::collect::used;
use crate::mapped::set::SetRef;
use crate::mapped::sweep::Swept;
use crate::mapped::task::TaskRef;
use crate::state::State;
use crate::sync::fill;
use crate::{Error, Result, TaskSet};

const CODE: [u8; 16] = [5; 16];

#[test]
fn a_set_runs_once_and_keeps_its_results() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("once")?;
    for number in [7, 1 << 40, u64::MAX - 2] {
        assert!(set.add(number, CODE, &number.to_le_bytes())?);
        assert!(!set.add(number, CODE, &number.to_le_bytes())?);
    }
    assert_eq!(set.result(7)?, None);
    let mut runs = 0;
    set.run(|call| {
        runs += 1;
        assert_eq!((call.code(), call.deaths()), (CODE, 0));
        assert_eq!(call.argument().unwrap(), call.number().to_le_bytes());
        vec![runs; runs.into()]
    })?;
    set.run(|_| -> [u8; 0] { panic!("all are done") })?;
    assert_eq!(runs, 3);
    assert!(set.is_finished()?);
    let lengths =
        [7, 1 << 40, u64::MAX - 2].map(|number| set.result(number).unwrap().unwrap().len());
    assert_eq!(lengths.iter().sum::<usize>(), 6);
    Ok(())
}

#[test]
fn numbers_codes_and_names_are_checked() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("checked")?;
    set.add(1, CODE, &[])?;
    assert!(matches!(set.add(1, [6; 16], &[]), Err(Error::OtherTask(1))));
    assert!(matches!(set.add(u64::MAX, CODE, &[]), Err(Error::Number(_))));
    assert!(matches!(set.task(2), Err(Error::NoTask(2))));
    assert!(matches!(set.result(2), Err(Error::NoTask(2))));
    assert!(matches!(set.after(&[set.end()?], 3, CODE, &[]), Err(Error::Circle(3))));
    assert!(matches!(worker.set(""), Err(Error::Name(0))));
    assert!(matches!(worker.set(&"n".repeat(129)), Err(Error::Name(129))));
    set.run(|_| {
        assert!(matches!(set.run(|_| [0; 0]), Err(Error::Nested)));
        [0; 0]
    })?;
    assert!(matches!(set.add(9, CODE, &[]), Err(Error::Finished(9))));
    assert!(!set.add(1, CODE, &[])?);
    Ok(())
}

#[test]
fn tasks_run_after_what_they_await() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let [early, late] = [worker.set("early")?, worker.set("late")?];
    early.then(CODE, b"then")?;
    // More than a word of bits.
    for number in 0..70 {
        early.add(number, CODE, &[])?;
    }
    let all: Vec<_> = (0..70).map(|number| early.task(number)).collect::<Result<_>>()?;
    early.after(&all, 70, CODE, &[])?;
    early.after(&[early.task(70)?, early.task(3)?], 71, CODE, &[])?;
    late.after(&[early.end()?], 100, CODE, &[])?;
    let mut order = Vec::new();
    // The other set is run for this one.
    late.run(|call| {
        order.push(call.number());
        [0; 0]
    })?;
    assert_eq!(order[70..], [70, 71, u64::MAX - 1, 100]);
    assert!(early.is_finished()? && early.outcome()?.is_some());
    // What has finished holds up nothing.
    let last = worker.set("last")?;
    last.after(&[late.task(100)?, late.end()?], 1, CODE, &[])?;
    last.run(|_| [0; 0])?;
    Ok(())
}

/// A sweep would find them, too, but late.
#[test]
fn tasks_are_queued_when_what_they_await_has_finished() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("chain")?;
    set.add(0, CODE, &[])?;
    for number in 1..100 {
        let awaited: Vec<_> = (0..number).map(|other| set.task(other)).collect::<Result<_>>()?;
        set.after(&awaited, number, CODE, &[])?;
    }
    for number in 0..100 {
        assert_eq!(set.result(number)?, None);
        worker.execute(worker.next().unwrap(), &mut |call| {
            Ok::<_, Error>(call.number().to_le_bytes())
        })?;
        assert_eq!(set.result(number)?.unwrap(), number.to_le_bytes());
    }
    assert_eq!(worker.next(), None);
    Ok(())
}

#[test]
fn threads_share_the_tasks_that_tasks_add() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let (threads, tasks) = (3, 2000);
    let runs: Vec<_> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let (ends, first) = (AtomicU64::new(0), arena.join()?);
    first.set("tree")?.then(CODE, &[])?;
    first.set("tree")?.add(1, CODE, &[])?;
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let worker = arena.join().unwrap();
                let set = worker.set("tree").unwrap();
                set.run(|call| {
                    let Some(count) = runs.get(call.number() as usize) else {
                        ends.fetch_add(1, Ordering::Relaxed);
                        return [9; 16];
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    for child in [2 * call.number(), 2 * call.number() + 1] {
                        if child < tasks {
                            set.add(child, CODE, &[]).unwrap();
                        }
                    }
                    [1; 16]
                })
                .unwrap();
            });
        }
    });
    assert!(runs[1..].iter().all(|count| count.load(Ordering::Relaxed) == 1));
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    assert_eq!(first.set("tree")?.outcome()?.unwrap(), [9; 16]);
    Ok(())
}

#[test]
fn a_task_that_is_added_late_keeps_its_set_open() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let adder = arena.join()?;
    let names: Vec<_> = (0..100).map(|round| format!("late {round}")).collect();
    let sets: Vec<_> = names.iter().map(|name| adder.set(name)).collect::<Result<_>>()?;
    sets.iter().try_for_each(|set| set.add(0, CODE, &[]).map(drop))?;
    let begin = Barrier::new(2);
    let added = thread::scope(|scope| -> Result<Vec<u64>> {
        let run = scope.spawn(|| {
            let worker = arena.join()?;
            names.iter().try_for_each(|name| {
                begin.wait();
                worker.set(name)?.run(|_| [1; 1])
            })
        });
        // Each task is either run or refused.
        let add_some = |set: &TaskSet<'_>| {
            begin.wait();
            for number in 1..1000 {
                match set.add(number, CODE, &[]) {
                    Err(Error::Finished(_)) => return Ok(number),
                    added => added?,
                };
            }
            Ok(1000)
        };
        let added = sets.iter().map(add_some).collect();
        run.join().unwrap()?;
        added
    })?;
    for (set, added) in sets.iter().zip(added) {
        assert!((0..added).all(|number| set.result(number).unwrap().is_some()));
    }
    Ok(())
}

#[test]
fn an_attempt_to_end_a_set_fails_if_a_task_is_added() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("open")?;
    let end = &SetRef::named(arena.space(), &worker.blocks, "open")?.end.task.state;
    let attempt = Attempt::begin(end).unwrap();
    set.add(1, CODE, &[])?;
    assert!(!attempt.finish(end));
    set.run(|_| [1; 1])?;
    assert!(Attempt::begin(end).is_none() && !keep_open(end));
    Ok(())
}

#[test]
fn a_panic_gives_the_task_to_another() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let other = arena.join()?;
    other.set("panics")?.add(1, CODE, &[])?;
    let ended = thread::scope(|scope| {
        let run = || {
            let worker = arena.join().unwrap();
            worker.set("panics").unwrap().run(|_| -> [u8; 1] { panic!("on purpose") })
        };
        scope.spawn(run).join()
    });
    assert!(ended.is_err());
    let set = other.set("panics")?;
    set.run(|call| call.deaths().to_le_bytes())?;
    assert_eq!(set.result(1)?.unwrap(), [1, 0]);
    Ok(())
}

#[test]
fn removed_sets_give_their_memory_back() -> Result<()> {
    let place = Place::new();
    let fill = |name| -> Result<()> {
        let arena = place.open();
        let worker = arena.join()?;
        let set = worker.set(name)?;
        for number in 0..1000 {
            set.add(number, CODE, &[1; 300])?;
        }
        assert!(!set.remove()?);
        set.run(|call| [call.number() as u8; 3000])?;
        set.cell(1)?.update(|_| vec![1; 200_000])?;
        assert!(set.remove()?);
        Ok(())
    };
    fill("a")?;
    let once = place.open().space().committed();
    let empty = used(place.open().space());
    assert!(empty.0 < 50, "{empty:?}");
    for name in ["b", "c", "a", "d"] {
        fill(name)?;
    }
    let arena = place.open();
    assert_eq!(arena.space().committed(), once);
    assert_eq!(used(arena.space()), empty);
    let worker = arena.join()?;
    assert!(matches!(worker.set("a")?.result(1), Err(Error::NoTask(1))));
    Ok(())
}

#[test]
fn near_victims_come_first() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let workers: Vec<_> = (0..4).map(|_| arena.join()).collect::<Result<_>>()?;
    for worker in &workers[1..] {
        worker.set("near")?.add(worker.number() as u64, CODE, &[])?;
    }
    workers[0].set_victims(&[2, 9, 3]);
    let mut order = Vec::new();
    workers[0].set("near")?.run(|call| {
        order.push(call.number());
        [0; 0]
    })?;
    assert_eq!(order, [2, 3, 1]);
    Ok(())
}

#[test]
fn idle_workers_are_given_tasks() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let [rich, idle] = [arena.join()?, arena.join()?];
    let set = rich.set("given")?;
    idle.set_idle(idle.number(), true);
    for number in 0..3 {
        set.add(number, CODE, &[])?;
    }
    // The first is the giver's own; the second is given; then the other is not known to be idle.
    let given = idle.slot.inbox.given.load(crate::sync::Ordering::Relaxed);
    assert_eq!(TaskRef::open(arena.space(), given)?.number(), 1);
    // A thief takes what was given, too.
    let mut runs = 0;
    set.run(|_| {
        runs += 1;
        [0; 0]
    })?;
    assert_eq!(runs, 3);
    Ok(())
}

#[test]
fn what_was_given_to_a_worker_that_leaves_is_queued() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let [rich, idle] = [arena.join()?, arena.join()?];
    idle.set_idle(idle.number(), true);
    (0..2).try_for_each(|number| rich.set("left")?.add(number, CODE, &[]).map(drop))?;
    let given = idle.slot.inbox.given.load(crate::sync::Ordering::Relaxed);
    drop(idle);
    let next = [rich.next(), rich.next()];
    assert!(given != 0 && next[0].is_some() && next[1] == Some(given), "{given} {next:?}");
    Ok(())
}

/// How many pages are in use.
fn pages(space: &Space) -> usize {
    let pages = (0..space.committed()).filter_map(|at| space.page(at));
    pages.filter(|page| Kind::of(page) != Kind::Free).count()
}

#[test]
fn freed_blocks_and_pages_of_the_last_worker_are_used_again() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let worker = arena.join()?;
        let set = worker.set("again")?;
        // Small blocks and larger ones in turn.
        for bytes in [9, 100, 9, 100] {
            (0..1500).try_for_each(|cell| set.cell(cell)?.update(|_| vec![1; bytes]))?;
            counts.push(pages(arena.space()));
        }
    }
    assert!(counts[1..].iter().all(|count| *count == counts[1]), "{counts:?}");
    Ok(())
}

#[test]
fn a_damaged_task_holds_up_no_other_and_is_an_error() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("damaged")?;
    (0..3).try_for_each(|number| set.add(number, CODE, &[]).map(drop))?;
    let offset = worker.next().unwrap();
    let words = arena.space().words_at(offset, 11)?;
    // The upper half of its code.
    words[6].store(1, crate::sync::Ordering::Relaxed);
    let mut runs = 0;
    let ended = set.run(|_| {
        runs += 1;
        [0; 0]
    });
    let is_it = |at| at == offset;
    assert!(matches!(ended, Err(Error::Damaged { what: "task", offset }) if is_it(offset)));
    assert_eq!(runs, 2);
    Ok(())
}

/// What a task awaits is removed while it awaits something else.
#[test]
fn what_has_finished_is_not_looked_at_again() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let [early, late, waiting] = ["early", "late", "waiting"].map(|name| worker.set(name).unwrap());
    late.add(1, CODE, &[])?;
    waiting.after(&[early.end()?, late.end()?], 2, CODE, &[])?;
    let gone = SetRef::named(arena.space(), &worker.blocks, "early")?.offset();
    assert_eq!(worker.sweep(SetRef::open(arena.space(), gone)?)?, Swept::Finished);
    assert!(early.remove()?);
    drop(worker);
    drop(arena);
    let arena = place.open();
    let worker = arena.join()?;
    // Something else is there now.
    arena.space().words_at(gone, 3)?.iter().for_each(|word| fill(word, 7));
    assert!(TaskRef::open(arena.space(), gone).is_err());
    let waiting = SetRef::named(arena.space(), &worker.blocks, "waiting")?;
    assert_eq!(worker.sweep(waiting)?, Swept::Work);
    Ok(())
}

#[test]
fn a_task_may_await_one_whose_set_is_removed() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let [early, late] = [worker.set("early")?, worker.set("late")?];
    early.add(1, CODE, &[])?;
    late.after(&[early.task(1)?], 2, CODE, &[])?;
    // Finished by a worker that dies before it tells the other.
    let task = TaskRef::open(arena.space(), worker.next().unwrap())?;
    let claimed = State::claim(&task.task.state, worker.runner).unwrap();
    assert!(task.finish(&worker.blocks, claimed, &[])?);
    let awaited = task.offset;
    early.run(|_| -> [u8; 0] { panic!("all is done") })?;
    assert!(early.remove()?);
    drop(worker);
    drop(arena);
    let arena = place.open();
    let worker = arena.join()?;
    // Where the awaited task was.
    worker.set("early")?.cell(1)?.update(|_| vec![1; 100])?;
    assert!(TaskRef::open(arena.space(), awaited).is_err());
    let late = worker.set("late")?;
    late.run(|_| [8; 1])?;
    assert_eq!(late.result(2)?.unwrap(), [8]);
    Ok(())
}
