//! Tasks that come and go: sets of them, and the first of several.

use futures_util::future::{self, Either};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Placement, Portable};

/// Tasks of which each result is had as it comes. If the set is dropped, those that are left are
/// [cancelled](Future::abort).
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// Goes down to 1 by steps that others work out, a few at a time.
/// async fn steps(cx: &Context, starts: Vec<u64>) -> Result<usize, TaskError> {
///     let mut tasks = TaskSet::new().window(100);
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
pub struct TaskSet<R> {
    tasks: FuturesUnordered<Future<R>>,
    window: usize,
}

impl<R> Default for TaskSet<R> {
    fn default() -> Self {
        TaskSet { tasks: FuturesUnordered::new(), window: usize::MAX }
    }
}

impl<R: Portable> TaskSet<R> {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// It [is full](Self::is_full) with this number of tasks, at least one. (More can be spawned
    /// all the same.)
    #[must_use]
    pub fn window(mut self, tasks: usize) -> Self {
        self.window = tasks.max(1);
        self
    }

    /// Whether there are as many tasks as the [window](Self::window) has room for.
    pub fn is_full(&self) -> bool {
        self.len() >= self.window
    }

    /// How many tasks there are whose results have not been had.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Spawns a task, within a radius ([`Context::spawn`]) or on a PE ([`Context::spawn_at`]).
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

    /// Takes in a task that has been spawned.
    pub fn push(&mut self, task: Future<R>) {
        self.tasks.push(task);
    }

    /// The result of a task that has ended, or of the first that does; `None` if there are none.
    pub async fn next(&mut self) -> Option<Result<R, TaskError>> {
        self.tasks.next().await
    }

    /// Cancels all tasks. Each ends with [`TaskError::Cancelled`], unless it has ended before.
    pub fn abort_all(&self) {
        Future::abort_all(self.tasks.iter());
    }
}

impl<R> Drop for TaskSet<R> {
    fn drop(&mut self) {
        Future::abort_all(self.tasks.iter());
    }
}

/// What the first of two futures ends with. The other is dropped, and the tasks whose futures it
/// holds are [cancelled](Future::abort).
///
/// ```
/// use futures_util::future::Either;
/// use std::time::Duration;
/// use ultramarine::prelude::*;
///
/// /// Some squares, if they come in time.
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

/// What the first of several futures ends with; `None` if there are none. The others are dropped,
/// and the tasks whose futures they hold are [cancelled](Future::abort).
pub async fn race<T: std::future::Future>(
    futures: impl IntoIterator<Item = T>,
) -> Option<T::Output> {
    let mut all: FuturesUnordered<_> = futures.into_iter().map(AbortOnDrop::new).collect();
    all.next().await
}
