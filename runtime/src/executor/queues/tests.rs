//! Who takes what from whose queues.

use super::*;
use crate::executor::packing::{Effort, Packed};
use crate::executor::processor::Processor;
use ultramarine_topology::Topology;

struct Numbered(usize);

impl Start for Numbered {
    fn start(self: Arc<Self>, _: &Arc<Processor>) {}
    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed> {
        None
    }
    fn call_off(&self) {}
    fn is_fork(&self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// Has that worker put this many tasks on its shelf. (The odd ones are no forks.)
fn push(queues: &Arc<Queues>, worker: Deques, tasks: usize) {
    let queues = queues.clone();
    let pushing = std::thread::spawn(move || {
        let index = worker.index;
        queues.seat(worker);
        (0..tasks).for_each(|_| _ = queues.push(0, Arc::new(Numbered(index))));
    });
    pushing.join().expect("no panic");
}

fn queues(threads: usize) -> (Arc<Queues>, Vec<Deques>) {
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
fn what_is_stolen_comes_from_all_workers_in_turn() {
    let (queues, deques) = queues(2);
    deques.into_iter().for_each(|worker| push(&queues, worker, 3));
    let mut pool = queues.common(1);
    let from = std::iter::from_fn(|| Some(usize::from(!pool.select_remote(0)?.is_fork())));
    assert_eq!(from.collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0]);
}

#[test]
fn messages_begin_before_placed_tasks_and_these_before_others() {
    let (queues, mut deques) = queues(1);
    queues.seat(deques.remove(0));
    let tasks: [Waiting; 3] = [(); 3].map(|()| Arc::new(Numbered(1)) as Waiting);
    let [message, placed, own] = tasks.clone();
    queues.push(0, own);
    queues.place(placed);
    queues.place_first(message);
    let order = std::iter::from_fn(|| match queues.next()? {
        Work::Start(next) => tasks.iter().position(|task| Arc::ptr_eq(task, &next)),
        Work::Resume(_) => None,
    });
    assert_eq!(order.collect::<Vec<_>>(), [0, 1, 2]);
}
