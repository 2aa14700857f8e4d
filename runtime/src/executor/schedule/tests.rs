//! Which worker takes which task from which queue.

use super::*;
use ultramarine_topology::Topology;

struct Numbered(usize);

thread_local! {
    static SEAT: RefCell<Option<Seat<Numbered>>> = const { RefCell::new(None) };
}

impl Queued for Numbered {
    fn function(&self) -> Option<Name> {
        None
    }

    fn call_off(self) {}

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
