//! The parallel map family (SymGridPar2 §4.4, figure 5).
//!
//! Which of them runs decides who applies the function to what, never what comes out. They must never
//! know how tasks travel, nor which PEs have died: that is the context's.

use crate::share::{chunked, shares, sliced, unsliced};
use rayon::prelude::*;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Future, Portable};
use ultramarine_topology::{Distance, Pe};

/// Applies `f` to each item, wherever a PE is free: one stealable task per item.
///
/// ```text
///        caller's pool   f x₁  f x₂  f x₃  …
///                         │     │     └──→ a PE of the next rack
///       caller, neighbour ┘     └──→ a PE of the same rack
/// ```
///
/// ```
/// use ultramarine_runtime::{error::TaskError, executor::Context};
/// use ultramarine_skeletons::par_map;
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
    par_map_local(cx, Distance::ONE, f, items).await
}

/// [`par_map`] whose tasks stay within `radius` of the caller.
///
/// ```text
///        caller's pool   f x₁  f x₂  f x₃  …       radius 1/2: of the caller's rack, say
///                         │     └──→ a PE of the same rack
///                  caller ┘          (no PE of another rack)
/// ```
///
/// # Errors
///
/// The error of the first item, in the order of the items, whose task ended without a result.
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
    let futures = items.into_iter().map(|item| cx.spawn_fn(radius, f, item)).collect();
    gather(futures).await
}

/// Applies `f` to each item, the first on this PE, the next on the next PE, and so on around:
/// nothing is stolen.
///
/// ```text
///       caller PE 1: f x₁, f x₄ …     PE 2: f x₂, f x₅ …     PE 0: f x₃, f x₆ …
/// ```
///
/// # Errors
///
/// The error of the first item, in the order of the items, whose task ended without a result.
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
    let (me, pes) = (cx.pe().number(), cx.pes());
    let place = |(turn, item): (usize, A)| {
        let pe = (u64::from(me) + turn as u64) % u64::from(pes);
        cx.spawn_at(Pe::new(pe as u32), move |_, item| std::future::ready(f(item)), item)
    };
    let futures = items.into_iter().enumerate().map(place).collect();
    gather(futures).await
}

/// Applies `f` to each item on the threads of this PE, with rayon: nothing is sent anywhere, so `f` may
/// capture what it likes.
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

/// [`par_map`] with a task for each `size` items that follow each other: for items of too little work
/// each. A `size` of 0 counts as 1.
///
/// ```text
///       x₁ x₂ x₃ │ x₄ x₅ x₆ │ x₇          size 3
/// ```
///
/// # Errors
///
/// The error of the first task, in the order of the tasks, that ended without a result.
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
    let results = par_map(cx, all_of(f), chunked(size, items)).await?;
    Ok(results.into_iter().flatten().collect())
}

/// [`par_map`] with so many tasks, to which the items are dealt out in turn: for work that grows along
/// the items. Of 0 slices one is made.
///
/// ```text
///       x₁ x₄ x₇ │ x₂ x₅ │ x₃ x₆          3 slices
/// ```
///
/// # Errors
///
/// The error of the first task, in the order of the tasks, that ended without a result.
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
    Ok(unsliced(par_map(cx, all_of(f), sliced(slices, items)).await?))
}

/// [`push_map`] with a task for each `size` items that follow each other, as [`par_map_chunked`] has.
///
/// ```text
///       caller PE 1: x₁ x₂ x₃     PE 2: x₄ x₅ x₆     PE 0: x₇          size 3
/// ```
///
/// # Errors
///
/// The error of the first task, in the order of the tasks, that ended without a result.
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
    let results = push_map(cx, all_of(f), chunked(size, items)).await?;
    Ok(results.into_iter().flatten().collect())
}

/// [`push_map`] with so many tasks, to which the items are dealt out as by [`par_map_sliced`].
///
/// ```text
///       caller PE 1: x₁ x₄ x₇     PE 2: x₂ x₅     PE 0: x₃ x₆          3 slices
/// ```
///
/// # Errors
///
/// The error of the first task, in the order of the tasks, that ended without a result.
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
    Ok(unsliced(push_map(cx, all_of(f), sliced(slices, items)).await?))
}

/// Applies `f` to each item in two steps: each part of the ball with radius `r1` around the
/// caller gets a share of the items at once, in proportion to its compute power, at a PE that
/// coordinates it; the coordinator spawns a task per item that PEs within `r2` of it may steal.
///
/// ```text
///                    caller, items x₁ … xₙ
///        placed at once │                 │
///            coordinator q₀          coordinator q₁        pairwise r1 apart
///             x₁ x₃ x₄ …                x₂ x₅ …
///       stolen ↙   ↘ within r2      ↙    ↘ within r2
/// ```
///
/// With `r2 < r1` the items of one part are never stolen by another.
///
/// # Errors
///
/// A coordinator's or an item's task ended without a result: of several such errors, one.
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
    let mut items: Vec<Option<A>> = items.into_iter().map(Some).collect();
    let basis = cx.equidistant_basis(r1);
    let weights: Vec<u64> = basis.iter().map(|(_, power)| *power).collect();
    let shares = shares(items.len(), &weights);
    let coordinate = move |cx: Context, (r2, items): (Distance, Vec<A>)| async move {
        par_map_local(&cx, r2, f, items).await
    };
    let mut parts = Vec::new();
    // The caller's own part last: placing it begins nothing before the others are on their way.
    for ((coordinator, _), share) in basis.into_iter().zip(shares).rev() {
        if !share.is_empty() {
            let own = share.iter().filter_map(|item| items[*item].take()).collect();
            parts.push((cx.spawn_at(coordinator, coordinate, (r2, own)), share));
        }
    }
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for (part, share) in parts {
        for (item, result) in share.into_iter().zip(part.await??) {
            results[item] = Some(result);
        }
    }
    // Each item is in one share, so that no result is missing.
    Ok(results.into_iter().flatten().collect())
}

/// [`par_map_2level_scheme`] in which no task leaves its part: `r2` is half of `radius`.
///
/// ```text
///           caller's rack            │           another rack        radius 1
///      caller q₀: x₁ x₃ x₄ …         │        coordinator q₁: x₂ x₅ …
///    stolen ↙   ↘ in this rack only  │      stolen ↙   ↘ in that rack only
/// ```
///
/// ```
/// use ultramarine_runtime::{error::TaskError, executor::Context};
/// use ultramarine_skeletons::par_map_2level;
/// use ultramarine_topology::Distance;
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     par_map_2level(&cx.supervised(), Distance::ONE, |n: u64| n * n, 0..10_000).await
/// }
/// ```
///
/// # Errors
///
/// As of [`par_map_2level_scheme`].
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
    par_map_2level_scheme(cx, radius, radius.half(), f, items).await
}

/// [`par_map_2level_scheme`] in which a part that runs out of work steals from the others, within
/// the same `radius`.
///
/// ```text
///           caller's rack            │           another rack        radius 1
///      caller q₀: x₁ x₃ x₄ …       ←─┼─→      coordinator q₁: x₂ x₅ …
///    stolen ↙   ↘ here first         │      stolen ↙   ↘ there first
/// ```
///
/// # Errors
///
/// As of [`par_map_2level_scheme`].
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
    par_map_2level_scheme(cx, radius, radius, f, items).await
}

/// The function that applies `f` to each of a few items.
fn all_of<F, A, R>(f: F) -> impl Fn(Vec<A>) -> Vec<R> + Stateless
where
    F: Fn(A) -> R + Stateless,
{
    move |items: Vec<A>| items.into_iter().map(f).collect()
}

async fn gather<R>(futures: Vec<Future<R>>) -> Result<Vec<R>, TaskError> {
    let mut results = Vec::with_capacity(futures.len());
    for future in futures {
        results.push(future.await?);
    }
    Ok(results)
}
