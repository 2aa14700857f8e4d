//! Tasks that an orphan spawns: they wait until their results are asked for.

use super::processor::Processor;
use super::spawn::Destination;
use crate::error::TaskError;
use crate::executor::task::cancel::Batch;
use crate::executor::task::future::Promise;
use crate::executor::task::start::Spawned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// A task that an orphan has spawned. It waits until its result is asked for. The orphan is stopped
/// when it does that; but it may share the future with tasks that are no orphans.
pub(crate) struct Deferred<R> {
    pe: Arc<Processor>,
    destination: Destination,
    task: Arc<dyn Spawned<Processor, R>>,
    is_enqueued: AtomicBool,
}

impl<R: 'static> Deferred<R> {
    pub(crate) fn new(
        pe: &Arc<Processor>,
        destination: Destination,
        task: Arc<dyn Spawned<Processor, R>>,
    ) -> Self {
        Deferred { pe: pe.clone(), destination, task, is_enqueued: AtomicBool::new(false) }
    }

    fn enqueue_once(&self) -> &dyn Spawned<Processor, R> {
        if self.pe.is_ending() {
            self.task.call_off();
        } else if !self.is_enqueued.swap(true, Ordering::Relaxed) {
            self.pe.enqueue(self.destination, self.task.clone());
        }
        &*self.task
    }
}

impl<R: 'static> Promise<R> for Deferred<R> {
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>> {
        self.enqueue_once().poll(waker)
    }

    fn is_ready(&self) -> bool {
        self.enqueue_once().is_ready()
    }

    fn cancel(&self, batch: &mut Batch) {
        self.task.cancel(batch);
    }
}
