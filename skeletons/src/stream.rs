//! A map that yields results as they come, for more items than fit into memory. It must never know
//! how many items there are: nothing is collected.

use futures_util::stream::{self, Stream, StreamExt};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::Distance;

/// Applies `f` to each item, wherever a PE is free, and yields each result when it is there: the
/// item's number, counted from 0, and what came out.
///
/// At most `window` items (at least one) are under way at a time; the next is taken from the iterator
/// when a result has been taken from the stream. A window of a few times the number of worker threads
/// of all PEs keeps them busy.
///
/// ```text
///    items x₁ x₂ x₃ x₄ … ──→ │ f x₂  f x₃  f x₄ │ ──→ (0, f x₁) …
///      taken one by one        window: 3 under way       as they end
/// ```
///
/// ```
/// use futures_util::StreamExt;
/// use std::pin::pin;
/// use ultramarine_runtime::{error::TaskError, executor::Context};
/// use ultramarine_skeletons::par_map_stream;
///
/// async fn first_square_beyond(cx: &Context, limit: u64) -> Result<Option<u64>, TaskError> {
///     let mut squares = pin!(par_map_stream(cx, 64, |n: u64| n * n, 0..u64::MAX));
///     while let Some(square) = squares.next().await {
///         let (_, square) = square?;
///         if square > limit {
///             return Ok(Some(square));
///         }
///     }
///     Ok(None)
/// }
/// ```
///
/// # Errors
///
/// An item whose task ended without a result yields the error in its place. The stream goes on with the
/// others: who asks for more after an error gets their results.
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
    let cx = cx.clone();
    let under_way = items.into_iter().enumerate().map(move |(number, item)| {
        let future = cx.spawn_fn(Distance::ONE, f, item);
        async move { Ok((number, future.await?)) }
    });
    stream::iter(under_way).buffer_unordered(window.max(1))
}
