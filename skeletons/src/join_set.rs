//! Tasks that a program spawns and awaits one by one: sets of tasks, and the first of several
//! futures.

use futures_util::future::{self, Either};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Placement, Portable};

/// A set of tasks, whose results come in the order in which the tasks end. Dropping the set
/// [cancels](Future::abort) the remaining tasks.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// Halves each number until it is 1 or 0, with at most 100 tasks at a time. Counts the steps.
/// async fn steps(cx: &Context, starts: Vec<u64>) -> Result<usize, TaskError> {
///     let mut tasks = JoinSet::new().window(100);
///     let (mut starts, mut steps) = (starts.into_iter(), 0);
///     loop {
///         while !tasks.is_full()
///             && let Some(n) = starts.next()
///         {
///             tasks.spawn(cx, Distance::ONE, async |_, n: u64| n / 2, n);
///         }
///         let Some(half) = tasks.next().await else { return Ok(steps) };
///         steps += 1;
///         match half? {
///             0 | 1 => {}
///             half => tasks.spawn(cx, Distance::ONE, async |_, n: u64| n / 2, half),
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct JoinSet<R> {
    tasks: FuturesUnordered<Future<R>>,
    window: usize,
}

impl<R> Default for JoinSet<R> {
    fn default() -> Self {
        JoinSet { tasks: FuturesUnordered::new(), window: usize::MAX }
    }
}

impl<R: Portable> JoinSet<R> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of tasks with which the set [is full](Self::is_full), at least 1. Default:
    /// no limit. A full set still accepts tasks; the program decides when to stop.
    #[must_use]
    pub fn window(mut self, tasks: usize) -> Self {
        self.window = tasks.max(1);
        self
    }

    /// Whether the number of tasks has reached the [window](Self::window).
    pub fn is_full(&self) -> bool {
        self.len() >= self.window
    }

    /// The number of tasks whose results the program has not taken.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are no such tasks.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Spawns a task within a radius ([`Context::spawn`]) or on a PE ([`Context::spawn_at`]), and
    /// adds it.
    pub fn spawn<F, A, T>(&mut self, cx: &Context, place: impl Into<Placement>, f: F, argument: A)
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future<Output = R> + Send + 'static,
    {
        const { F::CHECKED };
        self.push(match place.into() {
            Placement::On(pe) => cx.spawn_at(pe, f, argument),
            Placement::Within(radius) => cx.spawn(radius, f, argument),
        });
    }

    /// Adds a task that is spawned already.
    pub fn push(&mut self, task: Future<R>) {
        self.tasks.push(task);
    }

    /// Waits for a task to end, removes it and returns its result; `None` if the set is empty.
    ///
    /// # Errors
    ///
    /// The inner error: the task ended without a result.
    pub async fn next(&mut self) -> Option<Result<R, TaskError>> {
        self.tasks.next().await
    }

    /// Cancels all tasks. A task that has not ended ends with [`TaskError::Cancelled`].
    pub fn abort_all(&self) {
        Future::abort_all(self.tasks.iter());
    }
}

impl<R> Drop for JoinSet<R> {
    fn drop(&mut self) {
        Future::abort_all(self.tasks.iter());
    }
}

/// Waits for the first of two futures to end and returns its output, as the side of an
/// [`Either`] (that of `futures_util`). Drops the other future, which [cancels](Future::abort) the
/// tasks whose futures it holds.
///
/// ```
/// use futures_util::future::Either;
/// use std::time::Duration;
/// use ultramarine::prelude::*;
///
/// /// Some squares, unless they take more than a minute.
/// async fn squares(cx: &Context) -> Result<Option<Vec<u64>>, TaskError> {
///     let squares = par_map(cx, |n: u64| n * n, 0..1000);
///     match select(squares, cx.sleep(Duration::from_secs(60))).await {
///         Either::Left(squares) => squares.map(Some),
///         Either::Right(()) => Ok(None),
///     }
/// }
/// ```
pub async fn select<A, B>(one: A, other: B) -> Either<A::Output, B::Output>
where
    A: std::future::Future,
    B: std::future::Future,
{
    let (one, other) = (pin!(AbortOnDrop::new(one)), pin!(AbortOnDrop::new(other)));
    match future::select(one, other).await {
        Either::Left((result, _)) => Either::Left(result),
        Either::Right((result, _)) => Either::Right(result),
    }
}

/// Waits for the first of several futures to end and returns its output; `None` if there are no
/// futures. Drops the others, which [cancels](Future::abort) the tasks whose futures they hold.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// The first answer of several heuristics that run at the same time.
/// async fn first_of_three(cx: &Context, n: u64) -> Result<u64, TaskError> {
///     let tasks = (0..3).map(|seed| cx.spawn_fn(Distance::ONE, |(n, seed)| n * seed, (n, seed)));
///     race(tasks).await.expect("there are three")
/// }
/// ```
pub async fn race<T: std::future::Future>(
    futures: impl IntoIterator<Item = T>,
) -> Option<T::Output> {
    let mut all: FuturesUnordered<_> = futures.into_iter().map(AbortOnDrop::new).collect();
    all.next().await
}
