//! How tasks come into a PE, and workers to them.

use super::body::Body;
use super::context::Portable;
use super::engine::Letter;
use super::fork::Fork;
use super::future::Future;
use super::processor::Processor;
use super::queues::Work;
use super::task::Local;
use super::worker::work;
use crate::error::TaskError;
use crate::protocol::Message;
use async_task::Runnable;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use ultramarine_topology::{Distance, Pe};

impl Processor {
    pub(super) fn spawn<B, A>(
        self: &Arc<Self>,
        is_supervised: bool,
        radius: Distance,
        body: B,
        argument: A,
    ) -> Future<B::Output>
    where
        B: Body<A>,
        A: Portable,
    {
        if self.is_ending() {
            return Future::failed(TaskError::ShuttingDown);
        }
        let task = Arc::new(Local::new(body, radius, is_supervised, argument));
        self.queues.push(self.queues.radii.shelf(radius), task.clone());
        self.summon();
        Future::new(task)
    }

    pub(super) fn spawn_at<B, A>(
        self: &Arc<Self>,
        is_supervised: bool,
        pe: Pe,
        body: B,
        argument: A,
    ) -> Future<B::Output>
    where
        B: Body<A>,
        A: Portable,
    {
        let pes = self.topology.pes();
        if pe.number() >= pes {
            return Future::failed(TaskError::NoSuchPe { pe, pes });
        }
        if self.is_ending() {
            return Future::failed(TaskError::ShuttingDown);
        }
        let task: Arc<Local<B, A>> =
            Arc::new(Local::new(body, Distance::ZERO, is_supervised, argument));
        if pe == self.me() {
            self.queues.push_ready(Work::Start(task.clone()));
            self.summon();
        } else {
            self.leave_letter(Letter::Task(pe, task.clone()));
        }
        Future::new(task)
    }

    pub(super) fn fork<B, A>(
        self: &Arc<Self>,
        is_supervised: bool,
        radius: Distance,
        body: B,
        argument: A,
    ) -> Fork<'_, A, B::Output>
    where
        B: Body<A>,
        A: Portable,
    {
        let task = Arc::new(Local::fork(body, radius, is_supervised, argument));
        let shelf = self.queues.radii.shelf(radius);
        // Elsewhere it could not be pulled back, and what was taken back would pile up there.
        if self.queues.push_own(shelf, task.clone()) {
            self.summon();
        }
        Fork::new(self, shelf, task)
    }

    /// Runs a future as a task of this PE, beginning now if the calling thread is a worker.
    pub(super) fn run_async<T>(self: &Arc<Self>, future: T)
    where
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        let pe = self.clone();
        let (runnable, task) = async_task::spawn(future, move |runnable| pe.resume(runnable));
        task.detach();
        if self.queues.is_worker() {
            runnable.run();
        } else {
            self.resume(runnable);
        }
    }

    fn resume(self: &Arc<Self>, runnable: Runnable) {
        if self.is_closed() {
            return;
        }
        // Also while the job ends, when nobody resumes anything: to be dropped one by one, rather
        // than here, where the drop of a future might wake the next, and so on, ever deeper.
        self.queues.push_ready(Work::Resume(runnable));
        if !self.is_ending() {
            self.summon();
        }
    }

    /// Writes a message, which goes out at the next turn.
    pub(super) fn send(&self, to: Pe, message: Message) {
        if !self.is_ending() {
            self.leave_letter(Letter::Message(to, message));
        }
    }

    fn leave_letter(&self, letter: Letter) {
        self.outbox.push(letter);
        if !self.queues.is_worker() {
            self.nudge();
        }
    }

    /// Calls another worker, if there is one without work.
    pub(super) fn summon(self: &Arc<Self>) {
        if self.settings.threads == 1 && self.queues.is_worker() {
            // The only worker is the caller. It will look into the queues again.
            return;
        }
        // After the push, before looking: either we see that the worker has gone, or it saw what
        // we pushed before it went (see `work`).
        fence(Ordering::SeqCst);
        if self.enlist() {
            let pe = self.clone();
            self.called.fetch_add(1, Ordering::Relaxed);
            if !self.call_worker(move || work(&pe)) {
                self.active.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Counts one more worker as active, unless all are.
    pub(super) fn enlist(&self) -> bool {
        let most = self.settings.threads + self.airlock.kept();
        let more = |active| (active < most).then_some(active + 1);
        self.active.load(Ordering::Relaxed) < most
            && self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }
}
