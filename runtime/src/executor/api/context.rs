//! The context of a task: spawning tasks, asking which PEs are near.

use crate::executor::pe::processor::Processor;
use crate::executor::pe::worker::{send_now, turn_if_due};
use crate::executor::task::cancel::Canceller;
use crate::executor::task::origin::Origin;
use crate::executor::task::site::Site;
use crate::trace::TraceSpan;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

/// The longest that a worker polls for what is expected.
const EXPECTED_MAX: Duration = Duration::from_millis(2);

/// What a long task should know of its PE; see [`Context::poll_runtime`].
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Workers of this PE or of others may be out of work: one of them has found nothing here that
    /// it may take, or no task waits here. The task should spawn a part of its work.
    pub is_work_wanted: bool,
    /// Tasks wait that come before all others, or a time was up (of a [sleep](Context::sleep) or a
    /// [timeout](Context::timeout), maybe of this task), or this task is
    /// [cancelled](Context::is_cancelled): the task should [yield](Context::yield_now).
    pub is_turn_wanted: bool,
}

/// What a task can do on the PE that it runs on: above all, [spawn](Self::spawn) other tasks. Cheap
/// to clone.
///
/// ```
/// # use ultramarine_runtime::error::TaskError;
/// # use ultramarine_runtime::executor::Context;
/// # use ultramarine_topology::Distance;
/// /// The sum of the squares of two numbers. Any PE may compute one of them.
/// async fn sum_of_squares(cx: Context, (a, b): (u64, u64)) -> Result<u64, TaskError> {
///     let square = cx.spawn_fn(Distance::ONE, |n: u64| n * n, a);
///     Ok(square.await? + b * b)
/// }
/// # let _ = sum_of_squares;
/// ```
///
/// # Functions
///
/// The function of a task is a function item, or a closure that captures nothing: only its argument
/// travels. Pass what it needs as the argument:
///
/// ```
/// # use ultramarine_runtime::executor::{Context, Future};
/// # use ultramarine_topology::Distance;
/// fn passing(cx: &Context) -> Future<u64> {
///     let factor = 3;
///     cx.spawn_fn(Distance::ONE, |(n, factor): (u64, u64)| n * factor, (5, factor))
/// }
/// ```
///
/// A closure that captures a variable does not compile:
///
/// ```compile_fail
/// # use ultramarine_runtime::executor::{Context, Future};
/// # use ultramarine_topology::Distance;
/// fn capturing(cx: &Context) -> Future<u64> {
///     let factor = 3;
///     cx.spawn_fn(Distance::ONE, move |n: u64| n * factor, 5)
/// }
/// # let used: fn(&Context) -> Future<u64> = capturing;
/// ```
///
/// `cargo build` says "a task's function must not capture variables", and names the line. `cargo
/// check` and editors do not see this error: whether a closure has bytes is known only when machine
/// code is made of it. (They do refuse a closure that borrows a variable, or captures one that is
/// not `Copy`.)
///
/// A captured value without bytes compiles, but does not travel: the PE that runs the task assumes
/// a value of that type. So it must not stand for something that holds in one process only, such as
/// a token that proves that its CPU has a feature, or that a library has been initialised there.
/// Prove it again inside the task. (Under a launcher, rank 0 warns at the start if the CPUs of the
/// job's hosts differ.)
///
/// # Recursion
///
/// A task's function may spawn itself, but not as an `async fn`: whether its future is `Send` would
/// depend on itself. The compiler says "type annotations needed: cannot satisfy `impl Future<…>:
/// Send`" (E0283), or "future cannot be sent between threads safely". State it in the function's
/// type:
///
/// ```
/// # use ultramarine_runtime::error::TaskError;
/// # use ultramarine_runtime::executor::Context;
/// # use ultramarine_topology::Distance;
/// fn fibonacci(cx: Context, n: u64) -> impl Future<Output = Result<u64, TaskError>> + Send {
///     async move {
///         if n < 2 {
///             return Ok(n);
///         }
///         let one = cx.spawn(Distance::ONE, fibonacci, n - 1);
///         let other = cx.spawn(Distance::ONE, fibonacci, n - 2);
///         Ok(one.await?? + other.await??)
///     }
/// }
/// # let _ = fibonacci;
/// ```
///
/// # Supervision
///
/// A context is [supervised](Context::supervised) or not, and so are the tasks that it spawns. An
/// unsupervised task is lost with the PE that it is on. A supervised task survives: the PE that
/// spawned it, its *supervisor*, has it run again if the PE that had it dies (SymGridPar2 §5.2).
///
/// - The context of a supervised task is supervised: one call covers a whole computation.
/// - A task may be run twice, even at the same time. Its future gets one result.
/// - A task whose supervisor dies is dropped. The task in which it was spawned is run again by that
///   task's own supervisor.
/// - A task with which more than `max_replicas` PEs have died ends with
///   [`TaskError::GaveUp`](crate::error::TaskError::GaveUp): it may be the task that kills them. It
///   ends so sooner if more than three have, and only the root and the PE that spawned it are left.
///
/// Supervision costs a copy of the encoded argument, which the supervisor keeps while the task is
/// on another PE. A task that stays where it was spawned costs nothing.
///
/// # Deaths
///
/// If the PE that waits for a task dies, the task is stopped where it awaits something, and with it
/// the tasks on this PE whose futures it holds. If it was supervised, another PE runs it again.
#[derive(Clone)]
pub struct Context {
    pub(crate) pe: Arc<Processor>,
    pub(crate) origin: Origin,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut context = f.debug_struct("Context");
        context.field("pe", &self.pe()).field("is_supervised", &self.is_supervised());
        context.finish_non_exhaustive()
    }
}

/// Where a task is, and which PEs are near it:
///
/// ```
/// # use ultramarine_runtime::executor::Context;
/// # use ultramarine_topology::{Distance, Pe};
/// # fn look_around(cx: &Context) {
/// println!("{} of {}, with {} workers", cx.pe(), cx.pes(), cx.threads());
/// println!("on {:?}", cx.topology().place(cx.pe()).host());
/// println!("{} from the root", cx.distance(Pe::ROOT, cx.pe()));
/// // One PE in each of the parts of the machine that are farthest from each other.
/// for (pe, workers) in cx.equidistant_basis(Distance::ONE) {
///     println!("{pe} stands for {workers} workers");
/// }
/// let anywhere = cx.random_within(Distance::ONE);
/// if !cx.is_dead(anywhere) {
///     println!("{anywhere} lives, as far as this PE knows; {} have died", cx.dead());
/// }
/// # }
/// ```
///
/// A task that computes for long shares its work, lets others run, and stops when it is not wanted:
///
/// ```
/// # use ultramarine_runtime::error::TaskError;
/// # use ultramarine_runtime::executor::Context;
/// # use ultramarine_topology::Distance;
/// /// The number of nodes below these, of a tree that is searched.
/// fn count(
///     cx: Context,
///     mut nodes: Vec<u64>,
/// ) -> impl Future<Output = Result<u64, TaskError>> + Send {
///     async move {
///         let (mut visited, mut given) = (0, Vec::new());
///         while let Some(node) = nodes.pop() {
///             visited += 1;
///             if node > 0 {
///                 nodes.extend([node / 2, node / 3]);
///             }
///             let Some(demand) = cx.poll_runtime() else { continue };
///             if cx.is_cancelled() {
///                 break;
///             }
///             // No more than ten of its tasks are out at a time.
///             if demand.is_work_wanted && nodes.len() > 1 && cx.away() < 10 {
///                 let part = nodes.split_off(nodes.len() / 2);
///                 given.push(cx.spawn(Distance::ONE, count, part));
///             }
///             if demand.is_turn_wanted {
///                 cx.yield_now().await;
///             }
///         }
///         for part in given {
///             visited += part.await??;
///         }
///         Ok(visited)
///     }
/// }
/// # let _ = count;
/// ```
impl Context {
    pub(crate) fn of(pe: &Arc<Processor>, origin: Origin) -> Self {
        Context { pe: pe.clone(), origin }
    }

    /// The PE that this task runs on.
    pub fn pe(&self) -> Pe {
        self.pe.me()
    }

    /// The number of PEs of the job. They are numbered from 0 in the order of the hierarchy.
    pub fn pes(&self) -> u32 {
        self.pe.topology.pes()
    }

    /// The PE that runs the main task: at first [`Pe::ROOT`], and in a job that outlives its root
    /// the PE that has taken its place, once this PE has heard so.
    pub fn root(&self) -> Pe {
        self.pe.liveness.root()
    }

    /// Which time this is that the main task was started, from 1, as far as this PE knows: it
    /// counts the PEs of which it has heard that they took the root's place. Always 1 where the job
    /// ends with its root.
    pub fn attempt(&self) -> u32 {
        self.pe.liveness.successions() + 1
    }

    /// In the main task of a job that [outlives its root](../ultramarine/fn.run_restartable.html):
    /// waits until enough of the other PEs have agreed that the job ends here. From then on no
    /// other PE starts the main task again, unless this process is seen to die. So call it before
    /// you print the result: a root that is cut off from the others gets no further, while those go
    /// on without it. It takes a few milliseconds, or longer while PEs are stopped that others are
    /// asked through. (The runtime does the same when the main task has returned.)
    ///
    /// Call it in the main task, when nothing is left to compute: if the root's host falls silent
    /// after that, the others end the job. A second call returns at once, as does one on another PE
    /// than the root, or in a job that ends with its root.
    pub async fn agree_to_end(&self) {
        self.pe.agree_to_end().await;
    }

    /// Begins something that has a name in the trace of the job, if one is recorded. It lasts until
    /// the value is dropped.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::Context;
    /// # fn reduce(matrix: &mut [f64]) {}
    /// async fn solve(cx: Context, mut matrix: Vec<f64>) -> Vec<f64> {
    ///     let span = cx.trace_span("reduce");
    ///     reduce(&mut matrix);
    ///     drop(span);
    ///     matrix
    /// }
    /// ```
    #[inline]
    pub fn trace_span(&self, name: &'static str) -> TraceSpan {
        TraceSpan::begin(name)
    }

    /// The number of worker threads of this PE.
    pub fn threads(&self) -> usize {
        self.pe.settings.threads
    }

    /// The mean time between failures of a host, a setting.
    pub fn host_mtbf(&self) -> Duration {
        self.pe.settings.host_mtbf
    }

    /// The hierarchy of the machine, as far as the job occupies it.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.pe.topology
    }

    /// The distance between two PEs (`dist` in SymGridPar2 §4.3).
    ///
    /// # Panics
    ///
    /// If the job has no such PE.
    pub fn distance(&self, p: Pe, q: Pe) -> Distance {
        self.pe.topology.distance(p, q)
    }

    /// One PE for each part of the ball of this radius around this PE, where the parts are pairwise
    /// `radius` apart. Each PE comes with its part's compute power, in worker threads. The first is
    /// this PE; in the other parts the PE is chosen at random (`equiDist` in SymGridPar2 §4.3).
    pub fn equidistant_basis(&self, radius: Distance) -> Vec<(Pe, u64)> {
        let mut random = || self.pe.kept.random();
        self.pe.topology.equidistant_basis(self.pe(), radius, &mut random)
    }

    /// A random PE within this radius of this one, which may be this one itself.
    pub fn random_within(&self, radius: Distance) -> Pe {
        self.pe.topology.ball(self.pe(), radius).pick(self.pe.kept.random())
    }

    /// The same context, but the tasks that it spawns survive the death of the PEs that they are
    /// on. See [Supervision](#supervision).
    ///
    /// ```
    /// # use ultramarine_runtime::executor::Context;
    /// # use ultramarine_topology::Distance;
    /// # async fn main_task(cx: Context) -> Result<(), ultramarine_runtime::error::TaskError> {
    /// let square = cx.supervised().spawn_fn(Distance::ONE, |n: u64| n * n, 7).await?;
    /// assert_eq!(square, 49);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn supervised(&self) -> Context {
        Context::of(&self.pe, Origin { is_supervised: true, ..self.origin })
    }

    /// The same context, but the tasks that it spawns are lost with the PE that they are on. Their
    /// futures then end with [`TaskError::Lost`](crate::error::TaskError::Lost).
    #[must_use]
    pub fn unsupervised(&self) -> Context {
        Context::of(&self.pe, Origin { is_supervised: false, ..self.origin })
    }

    /// A context for work that this PE does for itself, and not for the PE that waits for this
    /// task. So it goes on when that one dies, or when this task is cancelled. It is unsupervised.
    #[must_use]
    pub fn independent(&self) -> Context {
        Context::of(&self.pe, self.pe.own_origin())
    }

    /// Whether the tasks that this context spawns are supervised.
    pub fn is_supervised(&self) -> bool {
        self.origin.is_supervised
    }

    /// What a long task should know of its PE. Call it often, between small pieces of work: the PE
    /// also handles its messages here. Returns `None` most of the time, and a new [`Demand`] every
    /// few microseconds, or as soon as a thief asks for work.
    #[inline]
    pub fn poll_runtime(&self) -> Option<Demand> {
        (turn_if_due(&self.pe) || self.pe.queues.wanted.is_set()).then(|| self.demand())
    }

    /// Has what this task has sent go out now, and not when it awaits something or ends. For a task
    /// that sends and then computes for long.
    pub fn send_now(&self) {
        send_now(&self.pe);
    }

    /// Something will come from other PEs within about this time. So long, but at most 2 ms, a
    /// worker that finds no work goes on polling, if that is longer than the setting `spin`. (A PE
    /// that sleeps is late by the time that it takes to wake, so that the next one sleeps, and so
    /// on: a stencil with 130 µs a step took 1.8 times as long as with MPI, and so 1.35 times.)
    pub fn expect_soon(&self, within: Duration) {
        self.pe.expect(within.min(EXPECTED_MAX));
    }

    #[cold]
    #[inline(never)]
    fn demand(&self) -> Demand {
        let is_asked = self.pe.queues.wanted.take();
        Demand {
            is_work_wanted: is_asked || self.pe.queues.sees_none_to_steal(),
            // A cancelled task stops where it yields.
            is_turn_wanted: self.pe.queues.has_ready()
                || self.is_cancelled()
                || self.pe.kept.timers.have_fired(),
        }
    }

    /// The number of tasks that were spawned on this PE and were on other PEs when this one last
    /// handled its messages. Use it to limit the tasks that are out at a time.
    pub fn away(&self) -> usize {
        self.pe.away()
    }

    /// The longest value that fits into a message, in bytes: somewhat less than the setting
    /// `message_bytes_max`.
    pub fn value_bytes_max(&self) -> usize {
        Site::value_bytes_max(&*self.pe)
    }

    /// The number of tasks of this worker that wait to be run. Use it to offer enough tasks to
    /// others, and no more. It is `usize::MAX` on a thread without queues: a thread that is
    /// no worker, or that replaces a stuck worker.
    pub fn offered(&self) -> usize {
        self.pe.queues.own_len()
    }

    /// Lets other tasks run first: those that were placed here, and those that waited for
    /// something. While tasks only yield, again and again, one that was spawned here starts after
    /// 256 times.
    pub async fn yield_now(&self) {
        let mut has_yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Whether this task is not wanted any more: it was
    /// [cancelled](crate::executor::Future::abort), or the PE that waits for it has died, or the
    /// job ends. A task that awaits something is stopped there. One that computes for long should
    /// ask now and then.
    pub fn is_cancelled(&self) -> bool {
        let Origin { task, home, .. } = self.origin;
        self.pe.cancelled().contains(task) || self.pe.is_orphaned(home) || self.pe.is_ending()
    }

    /// Whether this PE has heard that another has died.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.pe.is_dead(pe)
    }

    /// The number of PEs of whose death this PE has heard.
    pub fn dead(&self) -> u32 {
        self.pe.liveness.dead().count() as u32
    }
}
