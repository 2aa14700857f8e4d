//! A PE's tasks of one radius, which its engine gives to thieves and its workers take to run.

use super::futures::LocalTask;
use super::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
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
    pub(crate) fn push(&self, task: QueuedTask) {
        lock(&self.0).push_back(task);
    }
}

impl Shelf for SharedShelf {
    type Task = QueuedTask;
    fn take_youngest(&mut self) -> Option<QueuedTask> {
        lock(&self.0).pop_back()
    }
    fn take_oldest(&mut self) -> Option<QueuedTask> {
        lock(&self.0).pop_front()
    }
    fn len(&self) -> usize {
        lock(&self.0).len()
    }
}
