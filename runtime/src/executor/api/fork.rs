//! Forks: tasks that their parent takes back unless a thread has started them.

use crate::executor::pe::processor::Processor;
use crate::executor::pe::spawn::Destination;
use crate::executor::task::caught::discard;
use crate::executor::task::future::Future;
use crate::executor::task::local::Local;
use crate::executor::task::origin::Origin;
use crate::executor::task::portable::Portable;
use crate::executor::task::site::Site;
use crate::executor::task::start::TakeBack;
use crate::executor::task::task_code::Function;
use std::sync::Arc;
use ultramarine_topology::{Distance, Pe};

/// The task of a [`Fork`], which its parent may take back.
type ForkedTask<A, R> = Arc<dyn TakeBack<Processor, A, R>>;

/// A task that waits for a thief until its parent [takes it back](Fork::take_back).
///
/// This divides work without paying for it. The parent forks all parts but one, does that one, and
/// then takes the others back one by one, the youngest first. A part that was not stolen it runs
/// like any call of a function; only stolen parts must be awaited. (Lazy task creation: Mohr, Kranz
/// and Halstead 1991; the work-first principle of Cilk.)
///
/// ```
/// # use ultramarine_runtime::error::TaskError;
/// # use ultramarine_runtime::executor::Context;
/// # use ultramarine_topology::Distance;
/// fn sum(numbers: &[u64]) -> u64 {
///     numbers.iter().sum()
/// }
///
/// async fn sum_of_both(cx: &Context, left: Vec<u64>, right: Vec<u64>) -> Result<u64, TaskError> {
///     let right = cx.fork(Distance::ONE, async |_, numbers: Vec<u64>| sum(&numbers), right);
///     let left = sum(&left);
///     Ok(left + match right.take_back() {
///         Ok(numbers) => sum(&numbers),
///         Err(stolen) => stolen.await?,
///     })
/// }
/// ```
#[must_use = "a fork that is dropped is not run, and aborted if a thread has started it"]
pub struct Fork<'pe, A, R> {
    pe: &'pe Arc<Processor>,
    /// The PE for which the task runs.
    home: Pe,
    shelf: usize,
    /// Whether other threads can take the task.
    is_queued: bool,
    /// `None` once it has been taken back or found to be gone.
    task: Option<ForkedTask<A, R>>,
}

impl<'pe, A, R> Fork<'pe, A, R> {
    pub(crate) fn new(
        pe: &'pe Arc<Processor>,
        home: Pe,
        shelf: usize,
        task: ForkedTask<A, R>,
        is_queued: bool,
    ) -> Self {
        Fork { pe, home, shelf, is_queued, task: Some(task) }
    }

    /// Whether other threads can take the task.
    pub(super) fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// The argument, or the task if a thread has started it.
    fn pull_back(&mut self) -> Option<Result<A, ForkedTask<A, R>>> {
        let task = self.task.take()?;
        if self.is_queued {
            let own = Arc::as_ptr(&task);
            self.pe.queues.pull_back(self.shelf, |task| std::ptr::addr_eq(Arc::as_ptr(task), own));
        }
        Some(task.take_back().ok_or(task))
    }
}

/// After a panic, for example. Its result is not needed: if it has started, it is
/// [aborted](Future::abort).
impl<A, R> Drop for Fork<'_, A, R> {
    fn drop(&mut self) {
        match self.pull_back() {
            // During a panic another one would end the process.
            Some(Ok(argument)) => discard(argument),
            Some(Err(started)) => Future::new(started).abort(),
            None => {}
        }
    }
}

impl<A: 'static, R: Send + 'static> Fork<'_, A, R> {
    /// The task's argument, if no thread has started the task: the caller may now do the work
    /// itself. Otherwise the future of its result.
    ///
    /// The PE does not handle its messages meanwhile: a task that forks much should [poll the
    /// runtime](crate::executor::Context::poll_runtime).
    // Inlined, this and `leave` cost 4 of the 22 ns that a division takes when nothing is stolen.
    #[inline(never)]
    pub fn take_back(mut self) -> Result<A, Future<R>> {
        if self.pe.is_ending() {
            self.task.iter().for_each(|task| task.call_off());
        }
        match self.pull_back() {
            Some(Ok(argument)) => Ok(argument),
            Some(Err(gone)) => Err(Future::new(gone)),
            None => unreachable!("a fork is taken back once"),
        }
    }

    /// Leaves the task to the first thread that takes it, like a spawned task. That may be a worker
    /// of this PE.
    #[inline(never)]
    pub fn leave(mut self) -> Future<R> {
        let Some(task) = self.task.take() else { unreachable!("a fork is left once") };
        if !self.is_queued {
            return self.pe.submit(self.home, Destination::Shelf(self.shelf), task);
        }
        Future::new(task)
    }
}

impl<A, R> std::fmt::Debug for Fork<'_, A, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fork").field("pe", &self.pe.me()).finish_non_exhaustive()
    }
}

impl Processor {
    pub(crate) fn fork<A, R>(
        self: &Arc<Self>,
        parent: Origin,
        radius: Distance,
        function: &'static dyn Function<Processor, A, R>,
        argument: A,
    ) -> Fork<'_, A, R>
    where
        A: Portable,
        R: Portable,
    {
        let task = Arc::new(Local::new(function, parent, radius, argument).into_fork());
        let shelf = self.queues.radii.shelf(radius);
        let is_queued =
            !self.is_orphaned(parent.home) && self.queues.push_fork(shelf, task.clone());
        if is_queued {
            self.wake_worker();
        }
        Fork::new(self, parent.home, shelf, task, is_queued)
    }
}
