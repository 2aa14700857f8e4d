//! Which worker takes which task from which queue.

use super::*;
use std::cell::Cell;
use ultramarine_topology::Topology;

struct Numbered(usize);

thread_local! {
    static SEAT: RefCell<Option<Seat<Numbered>>> = const { RefCell::new(None) };
    static CALLED_OFF: Cell<u32> = const { Cell::new(0) };
}

impl Queued for Numbered {
    fn function(&self) -> Option<Name> {
        None
    }

    fn call_off(self) {
        CALLED_OFF.set(CALLED_OFF.get() + 1);
    }

    fn with_seat<R>(act: impl FnOnce(&RefCell<Option<Seat<Self>>>) -> R) -> R {
        SEAT.with(act)
    }
}

/// Has that worker put this number of tasks on its shelf. Each has the worker's number.
fn push(queues: &Arc<Queues<Numbered>>, worker: Deques<Numbered>, tasks: usize) {
    let queues = queues.clone();
    let pushing = std::thread::spawn(move || {
        let index = worker.index;
        queues.seat(worker);
        (0..tasks).for_each(|_| _ = queues.push(0, Numbered(index)));
    });
    pushing.join().expect("no panic");
}

fn queues(threads: usize) -> (Arc<Queues<Numbered>>, Vec<Deques<Numbered>>) {
    Queues::new(Radii::of(&Topology::flat(1)), threads)
}

#[test]
fn a_worker_looks_at_others_in_turn() {
    let (queues, mut deques) = queues(2 * GLANCES);
    queues.seat(deques.remove(0));
    assert!(queues.sees_none_to_steal());
    for worker in deques {
        push(&queues, worker, 1);
        let seen = [(); 2].map(|()| !queues.sees_none_to_steal());
        assert!(seen.contains(&true), "it looks at {GLANCES} of {} each time", 2 * GLANCES - 1);
        while queues.common(0).select_remote(0).is_some() {}
    }
}

#[test]
fn thieves_take_from_all_workers_in_turn() {
    let (queues, deques) = queues(2);
    deques.into_iter().for_each(|worker| push(&queues, worker, 3));
    let mut pool = queues.common(1);
    let from = std::iter::from_fn(|| Some(pool.select_remote(0)?.0));
    assert_eq!(from.collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0]);
}

/// So not all that are out of work come to the same one first.
#[test]
fn each_worker_takes_from_the_next_one_first() {
    for worker in 0..3 {
        let (queues, mut deques) = queues(3);
        let own = deques.remove(worker);
        deques.into_iter().for_each(|other| push(&queues, other, 2));
        queues.seat(own);
        queues.push(0, Numbered(worker));
        let order = [(); 6].map(|()| next(&queues));
        let [second, third] = [1, 2].map(|further| Some((worker + further) % 3));
        assert_eq!(order, [Some(worker), second, third, second, third, None]);
    }
}

#[test]
fn messages_start_before_placed_tasks_and_these_before_others() {
    let (queues, mut deques) = queues(1);
    queues.seat(deques.remove(0));
    queues.push(0, Numbered(2));
    queues.place(Numbered(1));
    queues.place_first(Numbered(0));
    let order = std::iter::from_fn(|| match queues.next()? {
        Work::Start(Numbered(next)) => Some(next),
        Work::Resume(_) => None,
    });
    assert_eq!(order.collect::<Vec<_>>(), [0, 1, 2]);
}

/// The number of a task; that of something that can go on is 100.
fn number(work: &Work<Numbered>) -> usize {
    match work {
        Work::Start(Numbered(number)) => *number,
        Work::Resume(_) => 100,
    }
}

fn next(queues: &Queues<Numbered>) -> Option<usize> {
    queues.next().as_ref().map(number)
}

/// Queues of one worker, which is the calling thread.
fn alone() -> Arc<Queues<Numbered>> {
    let (queues, mut deques) = queues(1);
    queues.seat(deques.remove(0));
    queues
}

#[test]
fn a_worker_pulls_back_its_youngest_task_only() {
    let queues = alone();
    assert!(queues.is_worker() && queues.push_fork(0, Numbered(1)) && queues.push(0, Numbered(2)));
    queues.pull_back(0, |task| task.0 == 1);
    assert_eq!((queues.own_len(), queues.started()), (2, 0), "that is not the youngest");
    queues.pull_back(0, |task| task.0 == 2);
    assert_eq!((queues.own_len(), queues.started()), (1, 1));
    assert_eq!((next(&queues), next(&queues), queues.started()), (Some(1), None, 2));
    queues.pull_back(0, |_| unreachable!("there is none"));
}

#[test]
fn a_thread_without_a_seat_adds_a_fork_only_if_no_task_waits() {
    let (queues, _deques) = queues(2);
    assert!(!queues.is_worker());
    assert_eq!([1, 2].map(|n| queues.push_fork(0, Numbered(n))), [true, false]);
    assert!(!queues.push(0, Numbered(3)), "it waits for another thread");
    queues.pull_back(0, |_| unreachable!("it has no shelves"));
    assert!(next(&queues).is_none() && queues.next_to_resume().is_none());
    assert_eq!(queues.own_len(), usize::MAX);
    assert!(!queues.has_none_to_steal() && !queues.sees_none_to_steal() && !queues.has_ready());
    queues.seat_substitute();
    assert_eq!([(); 3].map(|()| next(&queues)), [Some(1), Some(3), None]);
    assert_eq!(queues.started(), 2);
    assert!(queues.is_empty());
}

#[test]
fn what_can_go_on_comes_before_shelves_and_after_what_was_placed() {
    let queues = alone();
    assert!(queues.is_empty() && !queues.has_ready() && !queues.can_resume());
    queues.push(0, Numbered(3));
    assert!(!queues.is_empty() && !queues.has_ready() && !queues.has_urgent());
    queues.push_ready(Ready::Main);
    assert!(queues.has_ready() && queues.can_resume() && !queues.has_urgent());
    assert_eq!([(); 2].map(|()| next(&queues)), [Some(100), Some(3)]);
    queues.place(Numbered(2));
    assert!(queues.has_ready() && !queues.can_resume() && !queues.has_urgent());
    queues.push_ready(Ready::Main);
    assert_eq!([(); 3].map(|()| next(&queues)), [Some(2), Some(100), None]);
    queues.place_first(Numbered(1));
    assert!(queues.has_ready() && queues.has_urgent());
    assert_eq!(queues.next_urgent().map(|task| task.0), Some(1));
    assert!(queues.is_empty() && queues.next_urgent().is_none());
    assert_eq!(queues.started(), 3);
}

/// Another worker, or none, has put it there.
#[test]
fn any_worker_goes_on_with_what_can() {
    let (queues, mut deques) = queues(3);
    let (first, second) = (deques.remove(0), deques.remove(0));
    let other = queues.clone();
    let pushing = std::thread::spawn(move || {
        other.push_ready(Ready::Main);
        other.seat(second);
        other.push_ready(Ready::Main);
    });
    pushing.join().expect("no panic");
    queues.push(0, Numbered(1));
    queues.seat(first);
    assert!(queues.can_resume());
    let resumed = [(); 3].map(|()| queues.next_to_resume().as_ref().map(number));
    assert_eq!(resumed, [Some(100), Some(100), None]);
    queues.seat_substitute();
    queues.push_ready(Ready::Main);
    assert_eq!(queues.next_to_resume().as_ref().map(number), Some(100));
    assert_eq!(next(&queues), Some(1));
}

/// Else tasks that keep placing others would keep it from ever going on.
#[test]
fn what_can_go_on_does_so_though_more_is_always_placed() {
    let queues = alone();
    queues.push_ready(Ready::Main);
    let mut placed = (0..256).take_while(|_| {
        queues.place(Numbered(1));
        next(&queues) == Some(1)
    });
    assert!(placed.by_ref().count() < 256);
    assert!(!queues.can_resume());
}

#[test]
fn all_that_waits_is_called_off() {
    let (queues, mut deques) = queues(2);
    queues.push(0, Numbered(0));
    queues.push_ready(Ready::Main);
    queues.seat(deques.remove(0));
    queues.push(0, Numbered(0));
    queues.push_ready(Ready::Main);
    queues.place(Numbered(0));
    queues.place_first(Numbered(0));
    queues.clear();
    assert_eq!(CALLED_OFF.get(), 4);
    assert!(queues.is_empty() && next(&queues).is_none());
}
