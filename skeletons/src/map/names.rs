//! The papers' names for maps (SymGridPar2 figures 5 and 10; HdpH-RS A.9): each is a [`map()`] of
//! one kind.

use super::map;
use futures_util::stream::Stream;
use rayon::prelude::*;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::Distance;

/// Applies `f` to each item, wherever a PE is free: one stealable task per item.
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
/// The error of the first item, in the order of the items, whose task ended without a result.
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

/// [`par_map`] whose tasks stay [`within`](super::Map::within) `radius` of the caller.
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// Applies `f` to each item, dealt out to all PEs in turn ([`push`](super::Map::push)): nothing is
/// stolen.
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// Applies `f` to each item on the threads of this PE, with rayon: nothing is sent anywhere, so `f`
/// may capture what it likes.
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
/// If `f` panics: with what it says.
pub fn fork_map<A, R>(f: impl Fn(A) -> R + Sync + Send, items: Vec<A>) -> Vec<R>
where
    A: Send,
    R: Send,
{
    items.into_par_iter().map(f).collect()
}

/// [`par_map`] by [`chunks`](super::Map::chunks) of `size` items.
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`par_map`] by this number of [`slices`](super::Map::slices).
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`push_map`] by [`chunks`](super::Map::chunks) of `size` items.
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`push_map`] by this number of [`slices`](super::Map::slices).
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// Applies `f` to each item in two steps: coordinators within `r1` get their shares at once, and
/// tasks are stolen within `r2` around them ([`two_level_scheme`](super::Map::two_level_scheme)).
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`par_map_2level_scheme`] in which no task leaves its part: `r2` is half of `radius`
/// ([`two_level`](super::Map::two_level)).
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`par_map_2level_scheme`] in which a part that runs out of work steals from the others, within
/// the same `radius` ([`relaxed`](super::Map::relaxed)).
///
/// # Errors
///
/// As of [`Map::run`](super::Map::run).
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

/// [`map()`]'s [`stream`](super::Map::stream) of this [`window`](super::Map::window).
///
/// # Errors
///
/// An item whose task ended without a result yields the error in its place.
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

/// [`map()`] by [`chunks`](super::Map::chunks) of `size` items, and [reduced](super::Map::reduce).
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
