//! How a spawned task enters its PE.

use super::deferred::Deferred;
use super::processor::Processor;
use super::spawn::Destination;
use crate::error::TaskError;
use crate::executor::task::future::Future;
use crate::executor::task::local::Local;
use crate::executor::task::origin::Origin;
use crate::executor::task::portable::Portable;
use crate::executor::task::site::Site;
use crate::executor::task::start::Spawned;
use crate::executor::task::task_code::Function;
use std::sync::Arc;
use ultramarine_topology::{Distance, Pe};

impl Processor {
    pub(crate) fn spawn<A: Portable, R: Portable>(
        self: &Arc<Self>,
        parent: Origin,
        radius: Distance,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R> {
        let task = Arc::new(Local::new(function, parent, radius, argument));
        self.submit(parent.home, Destination::Shelf(self.queues.radii.shelf(radius)), task)
    }

    pub(crate) fn spawn_at<A: Portable, R: Portable>(
        self: &Arc<Self>,
        parent: Origin,
        pe: Pe,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R> {
        let task = Arc::new(Local::new(function, parent, Distance::ZERO, argument));
        self.submit(parent.home, Destination::On(pe), task)
    }

    /// Has a PE run a task of the runtime before all others. The task is lost if that PE dies.
    pub(crate) fn ask<A: Portable, R: Portable>(
        self: &Arc<Self>,
        pe: Pe,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R> {
        let task = Local::new(function, self.own_origin(), Distance::ZERO, argument);
        self.submit(self.me(), Destination::First(pe), Arc::new(task.into_uncounted()))
    }

    /// Queues a task for a worker. A task that an [orphan](super::guests) spawns is
    /// [deferred](super::deferred).
    pub(crate) fn submit<R: 'static>(
        self: &Arc<Self>,
        home: Pe,
        destination: Destination,
        task: Arc<dyn Spawned<Processor, R>>,
    ) -> Future<R> {
        if let Some(error) = self.refusal(destination) {
            task.refuse(error);
            return Future::new(task);
        }
        if self.is_orphaned(home) {
            return Future::new(Arc::new(Deferred::new(self, destination, task)));
        }
        self.enqueue(destination, task.clone());
        Future::new(task)
    }

    /// Why no task can go there, if none can.
    fn refusal(&self, destination: Destination) -> Option<TaskError> {
        let pes = self.topology.pes();
        match destination {
            Destination::On(pe) | Destination::First(pe) if pe.number() >= pes => {
                Some(TaskError::NoSuchPe { pe, pes })
            }
            _ => self.is_ending().then_some(TaskError::ShuttingDown),
        }
    }
}
