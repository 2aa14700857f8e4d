//! A PE's tasks of one radius, which its engine gives to thieves and its workers take to run.

use super::futures::LocalTask;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine_runtime::protocol::{Parcel, Shelf};

/// A task in the pool.
#[derive(Debug)]
pub(crate) enum QueuedTask {
    /// It has not left its PE.
    Local(LocalTask),
    /// It came from another PE, and is in bytes.
    Guest(Parcel),
}

/// See the [module](self).
#[derive(Clone, Default)]
pub(crate) struct SharedShelf(Arc<Mutex<VecDeque<QueuedTask>>>);

impl SharedShelf {
    fn tasks(&self) -> MutexGuard<'_, VecDeque<QueuedTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: QueuedTask) {
        self.tasks().push_back(task);
    }
}

impl Shelf for SharedShelf {
    type Task = QueuedTask;
    fn take_youngest(&mut self) -> Option<QueuedTask> {
        self.tasks().pop_back()
    }
    fn take_oldest(&mut self) -> Option<QueuedTask> {
        self.tasks().pop_front()
    }
    fn len(&self) -> usize {
        self.tasks().len()
    }
}
