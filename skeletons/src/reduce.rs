//! Map and reduce in one: results are combined where they arise, so that only few travel (HdpH-RS
//! §6.1.2 and A.9).

use crate::divide::{Algorithm, DivideAndConquer, Placing, par_divide_and_conquer, place};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, Spawner};
use ultramarine_topology::{Distance, Pe};

/// Reduces what `map` makes of the numbers of a range: halves it until at most `threshold` numbers
/// (at least one) are left, which are worked off in order. Halves wait to be stolen.
///
/// `reduce` must be associative, and `identity` its neutral element, which is also the result for an
/// empty range.
///
/// ```text
///                0..8                     threshold 2
///            ╱         ╲
///         0..4          4..8  ┈→ stolen
///        ╱    ╲        ╱    ╲
///     0, 1    2, 3   4, 5   6, 7     reduced here, then on the way up
/// ```
///
/// ```
/// # use ultramarine_runtime::{error::TaskError, executor::Context};
/// # use ultramarine_skeletons::par_map_reduce_range_thresh;
/// async fn sum_of_squares(cx: &Context, upto: u64) -> Result<u64, TaskError> {
///     let numbers = 0..upto;
///     par_map_reduce_range_thresh(cx, 1000, numbers, || 0, |n| n * n, |a, b| a + b).await
/// }
/// ```
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_map_reduce_range_thresh<S, R>(
    spawner: &S,
    threshold: u64,
    range: Range<u64>,
    identity: impl Fn() -> R + Stateless,
    map: impl Fn(u64) -> R + Stateless,
    reduce: impl Fn(R, R) -> R + Stateless,
) -> Result<R, TaskError>
where
    S: Spawner,
    R: Portable,
{
    let halving = halving(identity, map, reduce);
    let span = Span { range, threshold, pes: (0, 1) };
    par_divide_and_conquer(spawner, |_| Distance::ONE, halving, span).await
}

/// [`par_map_reduce_range_thresh`] in which halves are placed at once: as the range is halved, so are the
/// PEs, until each has a range of its own. They are numbered in the order of the hierarchy, so that the
/// smaller a range is, the nearer it stays to the PE that supervises it. Nothing is stolen.
///
/// ```text
///           0..8 on PEs 0 to 3
///          ╱                  ╲
///   0..4 on 0 and 1     4..8 on 2 and 3
///     ╱         ╲          ╱         ╲
///  0..2 on 0  2..4 on 1  4..6 on 2  6..8 on 3
/// ```
///
/// # Errors
///
/// A task ended without a result.
pub async fn push_map_reduce_range_thresh<S, R>(
    spawner: &S,
    threshold: u64,
    range: Range<u64>,
    identity: impl Fn() -> R + Stateless,
    map: impl Fn(u64) -> R + Stateless,
    reduce: impl Fn(R, R) -> R + Stateless,
) -> Result<R, TaskError>
where
    S: Spawner,
    R: Portable,
{
    let (pe, pes) = (spawner.context().pe().number(), spawner.context().pes());
    let placing = Placing {
        stays: |span: &Span| span.pes.1 == 1,
        whither: |cx: &Context, part: &Span| Pe::new(part.pes.0 % cx.pes()),
    };
    let span = Span { range, threshold, pes: (pe, pes) };
    place(spawner, placing, halving(identity, map, reduce), span).into_future().await
}

/// Reduces what `map` makes of the items: tasks of `size` items (at least one) that follow each other
/// are stolen, map and reduce theirs; what they send back is reduced in order.
///
/// ```text
///       x₁ x₂ x₃ ┈→ stolen     x₄ x₅ x₆ ┈→ stolen     x₇        size 3
///          r₁                     r₂                  r₃        reduced by the caller
/// ```
///
/// `reduce` must be associative, and `identity` its neutral element.
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_map_reduce<S, A, R>(
    spawner: &S,
    size: usize,
    items: impl IntoIterator<Item = A>,
    identity: impl Fn() -> R + Stateless,
    map: impl Fn(A) -> R + Stateless,
    reduce: impl Fn(R, R) -> R + Stateless,
) -> Result<R, TaskError>
where
    S: Spawner,
    A: Portable,
    R: Portable,
{
    let whole = move |items: Vec<A>| items.into_iter().map(map).fold(identity(), reduce);
    let parts = crate::par_map(spawner, whole, crate::share::chunked(size, items)).await?;
    Ok(parts.into_iter().fold(identity(), reduce))
}

/// A range, when to stop halving it, and whose it is.
#[derive(Clone, Serialize, Deserialize)]
struct Span {
    range: Range<u64>,
    threshold: u64,
    /// The first of its PEs, and how many there are, counted round.
    pes: (u32, u32),
}

impl Span {
    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn halves(&self) -> [Span; 2] {
        let Span { ref range, threshold, pes: (first, count) } = *self;
        let near = count.div_ceil(2);
        // Each PE is to have as much as any other.
        let share = |near: u32, count: u32| {
            u128::from(self.length()) * u128::from(near) / u128::from(count)
        };
        let middle = range.start + if count > 1 { share(near, count) } else { share(1, 2) } as u64;
        let half = |range, first, count: u32| Span { range, threshold, pes: (first, count.max(1)) };
        let far = if count > 1 { first + near } else { first };
        [half(range.start..middle, first, near), half(middle..range.end, far, count - near)]
    }
}

fn halving<R: Portable>(
    identity: impl Fn() -> R + Stateless,
    map: impl Fn(u64) -> R + Stateless,
    reduce: impl Fn(R, R) -> R + Stateless,
) -> impl Algorithm<Problem = Span, Solution = R> {
    DivideAndConquer::new(
        |span: &Span| span.length() <= span.threshold.max(1),
        move |span: Span| span.range.map(map).fold(identity(), reduce),
        Span::halves,
        move |_, [low, high]| reduce(low, high),
    )
}
