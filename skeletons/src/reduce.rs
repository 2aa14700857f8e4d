//! Map and reduce over a range: results are combined where they arise, so that few of them are sent
//! (HdpH-RS §6.1.2 and A.9).

use crate::divide::{Algorithm, DivideAndConquer, conquer, place_on};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Placement, Portable, Shared};
use ultramarine_topology::{Distance, Pe};

/// Applies `map` to each number of a range and combines the results with `reduce`. The range is
/// halved until at most `threshold` numbers are left (0 counts as 1); a task maps these in order.
/// Halves wait to be stolen, by any PE.
///
/// `map` must capture nothing. Its other argument is `given`, which is sent once to each process.
/// `reduce` must be associative, and `identity` its neutral element, which is also the result for
/// an empty range.
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
/// # use ultramarine::prelude::*;
/// async fn sum_of_powers(cx: &Context, upto: u64, power: u32) -> Result<u64, TaskError> {
///     let (none, term) = (|| 0, |power: &u32, n: u64| n.pow(*power));
///     par_map_reduce_range_thresh(cx, 1000, 0..upto, power, none, term, |a, b| a + b).await
/// }
/// ```
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_map_reduce_range_thresh<E, R, I, M, C>(
    cx: &Context,
    threshold: u64,
    range: Range<u64>,
    given: E,
    identity: I,
    map: M,
    reduce: C,
) -> Result<R, TaskError>
where
    E: Portable + Sync,
    R: Portable,
    I: Fn() -> R + Stateless,
    M: Fn(&E, u64) -> R + Stateless,
    C: Fn(R, R) -> R + Stateless,
{
    const { (I::CHECKED, M::CHECKED, C::CHECKED) };
    let halving = halving(identity, map, reduce);
    let span = Span { range, given: cx.share(given), threshold, pes: None };
    conquer(cx, |_, _| Placement::Within(Distance::ONE), halving, span).await
}

/// [`par_map_reduce_range_thresh`] with placement instead of stealing. The PEs are halved together
/// with the range, and each half of the range is placed at once on the first PE of its half, until
/// each PE has its own range. PEs are numbered in hierarchy order, so a smaller range stays nearer
/// to the PE that supervises it. No task is stolen by another PE.
///
/// ```text
///           0..8 on PEs 0 to 3
///          ╱                  ╲
///   0..4 on 0 and 1     4..8 on 2 and 3
///     ╱         ╲          ╱         ╲
///  0..2 on 0  2..4 on 1  4..6 on 2  6..8 on 3
/// ```
///
/// ```
/// # use ultramarine::prelude::*;
/// # use ultramarine::skeletons::push_map_reduce_range_thresh;
/// async fn sum_of_squares(cx: &Context, upto: u64) -> Result<u64, TaskError> {
///     let (none, square) = (|| 0, |(): &(), n: u64| n * n);
///     push_map_reduce_range_thresh(cx, 1000, 0..upto, (), none, square, |a, b| a + b).await
/// }
/// ```
///
/// # Errors
///
/// A task ended without a result.
pub async fn push_map_reduce_range_thresh<E, R, I, M, C>(
    cx: &Context,
    threshold: u64,
    range: Range<u64>,
    given: E,
    identity: I,
    map: M,
    reduce: C,
) -> Result<R, TaskError>
where
    E: Portable + Sync,
    R: Portable,
    I: Fn() -> R + Stateless,
    M: Fn(&E, u64) -> R + Stateless,
    C: Fn(R, R) -> R + Stateless,
{
    const { (I::CHECKED, M::CHECKED, C::CHECKED) };
    let (pe, pes) = (cx.pe().number(), cx.pes());
    let placement = |cx: &Context, part: &Span<E>| match part.pes {
        Some((first, _)) => place_on(cx, Pe::new(first % cx.pes())),
        None => Placement::Within(Distance::ZERO),
    };
    let span = Span { range, given: cx.share(given), threshold, pes: Some((pe, pes)) };
    conquer(cx, placement, halving(identity, map, reduce), span).await
}

/// A problem: a range, and the PEs that it is for.
#[derive(Serialize, Deserialize)]
#[serde(bound = "E: Portable + Sync")]
struct Span<E> {
    range: Range<u64>,
    given: Shared<E>,
    threshold: u64,
    /// The first PE and the number of PEs, modulo the number of PEs of the job. `None` if the range
    /// stays where it is until it is stolen.
    pes: Option<(u32, u32)>,
}

impl<E> Span<E> {
    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn halves(&self) -> [Self; 2] {
        let Span { ref range, ref given, threshold, pes } = *self;
        let half = |range, pes| Span { range, given: given.clone(), threshold, pes };
        let part = |share: u32, of: u32| {
            range.start + (u128::from(self.length()) * u128::from(share) / u128::from(of)) as u64
        };
        match pes {
            // All PEs get equal parts.
            Some((first, count)) if count > 1 => {
                let near = count.div_ceil(2);
                let middle = part(near, count);
                let far = Some((first + near, count - near));
                [half(range.start..middle, Some((first, near))), half(middle..range.end, far)]
            }
            _ => {
                let middle = part(1, 2);
                [half(range.start..middle, None), half(middle..range.end, None)]
            }
        }
    }
}

fn halving<E: Portable + Sync, R: Portable>(
    identity: impl Fn() -> R + Stateless,
    map: impl Fn(&E, u64) -> R + Stateless,
    reduce: impl Fn(R, R) -> R + Stateless,
) -> impl Algorithm<Problem = Span<E>, Solution = R> {
    DivideAndConquer::new(
        |span: &Span<E>| span.length() <= span.threshold.max(1),
        move |Span { range, given, .. }| range.map(|n| map(&given, n)).fold(identity(), reduce),
        Span::halves,
        move |_, [low, high]| reduce(low, high),
    )
}
