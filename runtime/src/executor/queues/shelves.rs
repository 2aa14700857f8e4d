//! The shelves of a worker's own, and those of everybody.

use super::Waiting;
use crate::protocol::Shelf;
use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use std::sync::Arc;

pub(super) struct Own(pub(super) Deque<Waiting>);

impl Shelf for Own {
    type Task = Waiting;
    fn take_youngest(&mut self) -> Option<Waiting> {
        self.0.pop()
    }
    fn take_oldest(&mut self) -> Option<Waiting> {
        take(|| self.0.stealer().steal())
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The tasks of one radius on the whole PE.
#[derive(Clone)]
pub(in super::super) struct Common {
    pub(super) arrived: Arc<Injector<Waiting>>,
    pub(super) workers: Box<[Stealer<Waiting>]>,
    /// The worker to take from next: not always from the same.
    pub(super) next: usize,
}

impl Shelf for Common {
    type Task = Waiting;
    /// The youngest can be taken only by the worker that put it there: takes the oldest.
    fn take_youngest(&mut self) -> Option<Waiting> {
        self.take_oldest()
    }
    fn take_oldest(&mut self) -> Option<Waiting> {
        take(|| self.arrived.steal()).or_else(|| {
            let count = self.workers.len();
            let mut workers = (self.next..self.next + count).map(|worker| worker % count);
            workers.find_map(|worker| {
                let task = take(|| self.workers[worker].steal())?;
                self.next = worker + 1;
                Some(task)
            })
        })
    }
    fn len(&self) -> usize {
        self.arrived.len() + self.workers.iter().map(Stealer::len).sum::<usize>()
    }
    fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.workers.iter().all(Stealer::is_empty)
    }
}

/// Steals until it is clear whether there is something.
pub(super) fn take<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(found) => return Some(found),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
