//! The shelves of one worker, and the common shelves of a PE.

use crate::protocol::Shelf;
use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use std::sync::Arc;

pub(crate) struct WorkerShelf<T>(pub(crate) Deque<T>);

impl<T> Shelf for WorkerShelf<T> {
    type Task = T;
    fn take_youngest(&mut self) -> Option<T> {
        self.0.pop()
    }
    fn take_oldest(&mut self) -> Option<T> {
        take(|| self.0.stealer().steal())
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// All tasks of one radius on the PE.
pub(crate) struct CommonShelf<T> {
    pub(crate) arrived: Arc<Injector<T>>,
    pub(crate) workers: Box<[Stealer<T>]>,
    /// The worker to take from next, so that all are taken from in turn.
    pub(crate) next: usize,
}

impl<T> Shelf for CommonShelf<T> {
    type Task = T;
    /// Takes the oldest: only the worker that pushed a task can take the youngest.
    fn take_youngest(&mut self) -> Option<T> {
        self.take_oldest()
    }
    fn take_oldest(&mut self) -> Option<T> {
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

/// Repeats a steal until it succeeds or there is nothing.
pub(crate) fn take<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(found) => return Some(found),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
