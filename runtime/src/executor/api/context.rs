//! What a task can do: spawn other tasks, place them, ask who is near.

use crate::executor::pe::processor::Processor;
use crate::executor::pe::worker::breathe;
use crate::executor::task::origin::Origin;
use crate::executor::task::site::Site;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use ultramarine_topology::{Distance, Pe, Topology};

/// What goes on around a task that has much to do.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Workers of this PE or others may be out of work, and none waits here: part of the task
    /// should become one.
    pub is_work_wanted: bool,
    /// Tasks wait that come before all others: the task should [yield](Context::yield_now).
    pub is_turn_wanted: bool,
}

/// A task's view of the PE that it runs on: here it spawns other tasks. Cheap to clone.
///
/// # Functions
///
/// The function of a task must be a function item or a closure that captures nothing, because only
/// its argument travels:
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
/// ```
/// # use ultramarine_runtime::executor::{Context, Future};
/// # use ultramarine_topology::Distance;
/// fn passing(cx: &Context) -> Future<u64> {
///     let factor = 3;
///     cx.spawn_fn(Distance::ONE, |(n, factor): (u64, u64)| n * factor, (5, factor))
/// }
/// ```
///
/// `cargo build` refuses a closure that captures, with "a task's function must not capture
/// variables", and names the line where it stands. `cargo check` and editors do not see it: whether
/// a closure has bytes is known only when machine code is made of it. (They do refuse a closure
/// that borrows a variable, or takes one that is not `Copy`.)
///
/// A captured value without bytes is no variable, and compiles. But it does not travel: the PE that
/// runs the task takes a value of that type for granted. So it must not stand for anything that
/// holds in one process only, such as a token that proves that its CPU has a feature, or that a
/// library has been initialised there. Prove it again inside the task. (Under a launcher, rank 0
/// warns at the start if the CPUs of the job's hosts differ.)
///
/// ## Recursion
///
/// A task's function may spawn itself, but not as an `async fn`: whether its future is `Send` would
/// depend on itself. The compiler says "type annotations needed: cannot satisfy `impl Future<…>:
/// Send`" (E0283), or "future cannot be sent between threads safely". Say it in the function's
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
/// A context is [supervised](Context::supervised) or not, and so are the tasks that it spawns.
/// Tasks that are not are lost with the PE that they are on. Supervised ones survive its death
/// (SymGridPar2 §5.2): the PE that spawns a task supervises it, and has it run again if the PE
/// that had it dies.
///
/// - The context of a supervised task is supervised: one word covers a whole computation.
/// - A task may be run twice, even at the same time; its future gets one result.
/// - A task whose supervisor dies is dropped: the PE that supervises the task in which it was
///   spawned has that one run again.
/// - A task with which more than `max_replicas` PEs have died ends with
///   [`TaskError::GaveUp`](crate::error::TaskError::GaveUp), and sooner if more than three have
///   and only the root and the PE that spawned it are left: it may be the task that kills them.
///
/// It costs a copy of the encoded argument, kept by the supervisor while the task is on another PE;
/// a task that stays where it was spawned costs nothing.
///
/// # Deaths
///
/// If the PE that waits for the task dies, the task is stopped where it awaits something, and with
/// it the tasks on this PE whose futures it holds: another PE runs it again, if it was supervised.
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

impl Context {
    pub(crate) fn of(pe: &Arc<Processor>, origin: Origin) -> Self {
        Context { pe: pe.clone(), origin }
    }

    /// The PE that this task runs on.
    pub fn pe(&self) -> Pe {
        self.pe.me()
    }

    /// How many PEs the job has. They are numbered from 0 in the order of the hierarchy.
    pub fn pes(&self) -> u32 {
        self.pe.topology.pes()
    }

    /// How many worker threads this PE has.
    pub fn threads(&self) -> usize {
        self.pe.settings.threads
    }

    /// The hierarchy of the machine, as far as the job occupies it.
    pub fn topology(&self) -> &Topology {
        &self.pe.topology
    }

    /// How far apart two PEs are (`dist` in SymGridPar2 §4.3).
    ///
    /// # Panics
    ///
    /// If the job has no such PE.
    pub fn distance(&self, p: Pe, q: Pe) -> Distance {
        self.pe.topology.distance(p, q)
    }

    /// PEs that stand for the parts, pairwise `radius` apart, of the ball of that radius around
    /// this PE, each with the compute power (worker threads) of its part. The first is this PE;
    /// of the other parts any PE may be chosen (`equiDist` in SymGridPar2 §4.3).
    pub fn equidistant_basis(&self, radius: Distance) -> Vec<(Pe, u64)> {
        let mut random = || self.pe.random();
        self.pe.topology.equidistant_basis(self.pe(), radius, &mut random)
    }

    /// A PE drawn from those within this radius of this one, which is one of them.
    pub fn random_within(&self, radius: Distance) -> Pe {
        self.pe.topology.ball(self.pe(), radius).pick(self.pe.random())
    }

    /// The same, but that the tasks which it spawns survive the death of the PEs that they are
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

    /// The same, but that the tasks which it spawns are lost with the PE that they are on. Their
    /// futures end with [`TaskError::Lost`](crate::error::TaskError::Lost) then.
    #[must_use]
    pub fn unsupervised(&self) -> Context {
        Context::of(&self.pe, Origin { is_supervised: false, ..self.origin })
    }

    /// Whether the tasks that it spawns are supervised.
    pub fn is_supervised(&self) -> bool {
        self.origin.is_supervised
    }

    /// What a task that has much to do should know meanwhile, every few microseconds; `None` most
    /// of the times. To be asked often, since this is also where the PE looks after its messages.
    #[inline]
    pub fn poll_runtime(&self) -> Option<Demand> {
        breathe(&self.pe).then(|| self.demand())
    }

    fn demand(&self) -> Demand {
        Demand {
            is_work_wanted: self.pe.queues.sees_none_to_steal(),
            // What is not wanted any more stops where it yields.
            is_turn_wanted: self.pe.queues.has_ready() || self.is_cancelled(),
        }
    }

    /// How many tasks that were spawned on this PE were on others when it last looked after its
    /// messages: for those who would not have too many at a time.
    pub fn away(&self) -> usize {
        self.pe.away.load(Ordering::Relaxed)
    }

    /// How many tasks of this worker's wait for somebody to run them: for those who would offer
    /// others enough, and no more. On a thread that is no worker, or stands in for one and has no
    /// queues of its own, as many as there can be.
    pub fn offered(&self) -> usize {
        self.pe.queues.own_len()
    }

    /// Lets the tasks go first that were placed here, and those that waited for something.
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
    /// job ends. A task that awaits something is stopped there; one that computes for long should
    /// ask now and then.
    pub fn is_cancelled(&self) -> bool {
        let Origin { task, home, .. } = self.origin;
        self.pe.cancelled.contains(task) || self.pe.is_orphaned(home) || self.pe.is_ending()
    }

    /// Whether this PE has heard that another has died.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.pe.is_dead(pe)
    }

    /// How many PEs this one has heard have died.
    pub fn dead(&self) -> u32 {
        (0..self.pes()).filter(|pe| self.is_dead(Pe::new(*pe))).count() as u32
    }
}
