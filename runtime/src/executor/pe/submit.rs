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
use crate::executor::task::start::TakeBack;
use crate::executor::task::task_code::Function;
use std::sync::Arc;
use ultramarine_topology::{Distance, Pe};

impl Processor {
    pub(crate) fn spawn<A, R>(
        self: &Arc<Self>,
        parent: Origin,
        radius: Distance,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R>
    where
        A: Portable,
        R: Portable,
    {
        if self.is_ending() {
            return Future::failed(TaskError::ShuttingDown);
        }
        let task = Local::new(function, parent, radius, argument);
        self.submit(
            parent.home,
            Destination::Shelf(self.queues.radii.shelf(radius)),
            Arc::new(task),
        )
    }

    pub(crate) fn spawn_at<A, R>(
        self: &Arc<Self>,
        parent: Origin,
        pe: Pe,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R>
    where
        A: Portable,
        R: Portable,
    {
        let pes = self.topology.pes();
        if pe.number() >= pes {
            return Future::failed(TaskError::NoSuchPe { pe, pes });
        }
        if self.is_ending() {
            return Future::failed(TaskError::ShuttingDown);
        }
        let task = Local::new(function, parent, Distance::ZERO, argument);
        self.submit(parent.home, Destination::On(pe), Arc::new(task))
    }

    /// Has a PE run a task of the runtime before all others. The task is lost if that PE dies.
    pub(crate) fn ask<A, R>(
        self: &Arc<Self>,
        pe: Pe,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Future<R>
    where
        A: Portable,
        R: Portable,
    {
        let pes = self.topology.pes();
        if pe.number() >= pes {
            return Future::failed(TaskError::NoSuchPe { pe, pes });
        }
        if self.is_ending() {
            return Future::failed(TaskError::ShuttingDown);
        }
        let task = Local::new(function, self.own_origin(), Distance::ZERO, argument);
        self.submit(self.me(), Destination::First(pe), Arc::new(task))
    }

    /// Queues a task for a worker. A task that an [orphan](super::guests) spawns is
    /// [deferred](super::deferred).
    pub(crate) fn submit<A, R>(
        self: &Arc<Self>,
        home: Pe,
        destination: Destination,
        task: Arc<dyn TakeBack<Processor, A, R>>,
    ) -> Future<R>
    where
        A: 'static,
        R: 'static,
    {
        if self.is_orphaned(home) {
            return Future::new(Arc::new(Deferred::new(self, destination, task)));
        }
        self.enqueue(destination, task.clone());
        Future::new(task)
    }
}
