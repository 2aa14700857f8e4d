//! Maps by their names in the papers (SymGridPar2 figures 5 and 10; HdpH-RS A.9). Each is a
//! [`map()`] with certain settings, and its docs say which.

use super::map;
use futures_util::stream::Stream;
use rayon::prelude::*;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::Distance;

/// Applies `f` to each item: one task for each item, which any PE may steal. The same as
/// [`map()`] and [`run`](super::Map::run).
///
/// ```text
///        caller's pool   f x₁  f x₂  f x₃  …
///                         │     │     └──→ a PE of the next rack
///       caller, neighbour ┘     └──→ a PE of the same rack
/// ```
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     par_map(&cx.supervised(), |n: u64| n * n, 0..100).await
/// }
/// ```
///
/// # Errors
///
/// The error of the first task, in the order of the items, that ended without a result.
pub async fn par_map<F, A, R>(
    cx: &Context,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).run(cx).await
}

/// [`par_map`] with tasks that only PEs [`within`](super::Map::within) `radius` of the caller may
/// steal.
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_local<F, A, R>(
    cx: &Context,
    radius: Distance,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).within(radius).run(cx).await
}

/// Applies `f` to each item; the tasks are placed on all PEs in turn ([`push`](super::Map::push)),
/// and none is stolen.
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn push_map<F, A, R>(
    cx: &Context,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).push().run(cx).await
}

/// Applies `f` to each item on the threads of this PE, with rayon. Nothing is sent, so `f` may
/// capture variables.
///
/// ```text
///       caller's PE   thread 0: f x₁, f x₂ …     thread 1: f x₅, f x₆ …     (no other PE)
/// ```
///
/// ```
/// let factor = 3;
/// assert_eq!(ultramarine_skeletons::fork_map(|n| n * factor, vec![1, 2, 4]), [3, 6, 12]);
/// ```
///
/// # Panics
///
/// If `f` panics, with its message.
pub fn fork_map<A, R>(f: impl Fn(A) -> R + Sync + Send, items: Vec<A>) -> Vec<R>
where
    A: Send,
    R: Send,
{
    items.into_par_iter().map(f).collect()
}

/// [`par_map`] with a task for each [chunk](super::Map::chunks) of `size` consecutive items.
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_chunked<F, A, R>(
    cx: &Context,
    size: usize,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).chunks(size).run(cx).await
}

/// [`par_map`] with this number of tasks, to which the items are dealt out in turn
/// ([`slices`](super::Map::slices)).
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_sliced<F, A, R>(
    cx: &Context,
    slices: usize,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).slices(slices).run(cx).await
}

/// [`push_map`] with a task for each [chunk](super::Map::chunks) of `size` consecutive items.
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn push_map_chunked<F, A, R>(
    cx: &Context,
    size: usize,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).push().chunks(size).run(cx).await
}

/// [`push_map`] with this number of tasks, to which the items are dealt out in turn
/// ([`slices`](super::Map::slices)).
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn push_map_sliced<F, A, R>(
    cx: &Context,
    slices: usize,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).push().slices(slices).run(cx).await
}

/// Applies `f` to each item in two steps: coordinators within `r1` of the caller get shares at
/// once, and PEs within `r2` of a coordinator steal from it
/// ([`two_level_scheme`](super::Map::two_level_scheme)).
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_2level_scheme<F, A, R>(
    cx: &Context,
    r1: Distance,
    r2: Distance,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).two_level_scheme(r1, r2).run(cx).await
}

/// [`par_map_2level_scheme`] in which no task leaves its part: `r1` is `radius` and `r2` half of it
/// ([`two_level`](super::Map::two_level)).
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_2level<F, A, R>(
    cx: &Context,
    radius: Distance,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).two_level(radius).run(cx).await
}

/// [`par_map_2level_scheme`] in which a part that runs out of work steals from the other parts:
/// `r1` and `r2` are `radius` ([`relaxed`](super::Map::relaxed)).
///
/// # Errors
///
/// Those of [`Map::run`](super::Map::run).
pub async fn par_map_2level_relaxed<F, A, R>(
    cx: &Context,
    radius: Distance,
    f: F,
    items: impl IntoIterator<Item = A>,
) -> Result<Vec<R>, TaskError>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    const { F::CHECKED };
    map(f, items).two_level(radius).relaxed().run(cx).await
}

/// [`par_map`] as a [`stream`](super::Map::stream) with this [`window`](super::Map::window).
///
/// # Errors
///
/// If a task ends without a result, the stream yields its error in place of the result.
pub fn par_map_stream<F, A, R, I>(
    cx: &Context,
    window: usize,
    f: F,
    items: I,
) -> impl Stream<Item = Result<(usize, R), TaskError>> + use<F, A, R, I>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
    I: IntoIterator<Item = A>,
{
    const { F::CHECKED };
    map(f, items).window(window).stream(cx)
}

/// [`par_map_chunked`] whose results are combined where they arise
/// ([`reduce`](super::Map::reduce)).
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_map_reduce<A, R, I, M, C>(
    cx: &Context,
    size: usize,
    items: impl IntoIterator<Item = A>,
    identity: I,
    f: M,
    reduce: C,
) -> Result<R, TaskError>
where
    A: Portable,
    R: Portable,
    I: Fn() -> R + Stateless,
    M: Fn(A) -> R + Stateless,
    C: Fn(R, R) -> R + Stateless,
{
    const { (I::CHECKED, M::CHECKED, C::CHECKED) };
    map(f, items).chunks(size).reduce(identity, reduce, cx).await
}
