//! Maps that yield each result when its task ends, for more items than fit into memory. They never
//! collect items or results, and must never know the number of items.

use super::operation::{IntoShared, Operation};
use super::{Grain, Map};
use futures_util::future::{Either, TryFutureExt};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use std::pin::pin;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Portable};
use ultramarine_topology::Distance;

/// The default window: this number of tasks for each worker thread.
const TASKS_PER_WORKER: usize = 4;

fn one<R>(result: R) -> Vec<R> {
    vec![result]
}

impl<O, G, I> Map<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: IntoShared,
    O: Operation<I::Item, Handle = G::Handle>,
{
    /// Runs the map as a stream: yields each result when its task ends, with the number of its item
    /// (counted from 0).
    ///
    /// At most [`window`](Self::window) tasks exist at a time. The stream takes the items of the
    /// next task when the program has taken the results of one. With [`chunks`](Self::chunks) the
    /// results of a chunk come together. Dropping the stream cancels its tasks.
    ///
    /// ```text
    ///    items x₁ x₂ x₃ x₄ … ──→ │ f x₂  f x₃  f x₄ │ ──→ (0, f x₁) …
    ///      taken one by one        window of 3 tasks         as they end
    /// ```
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// use std::pin::pin;
    /// use ultramarine::prelude::*;
    ///
    /// async fn first_square_beyond(cx: &Context, limit: u64) -> Result<Option<u64>, TaskError> {
    ///     let mut squares = pin!(map(|n: u64| n * n, 0..u64::MAX).window(64).stream(cx));
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
    /// The number is that of the item also with [`chunks`](Map::chunks) and
    /// [`slices`](Map::slices). To end early on an event, use `take_until` of
    /// `futures_util::StreamExt`: `stream.take_until(shutdown_requested())` ends when the job is
    /// asked to, and its drop cancels the remaining tasks.
    ///
    /// # Errors
    ///
    /// If a task ends without a result, the stream yields its error in place of the results. A
    /// program that goes on with the stream gets the results of the other tasks.
    pub fn stream(
        self,
        cx: &Context,
    ) -> impl Stream<Item = Result<(usize, O::Output), TaskError>> + use<O, G, I> {
        let Map { operation, items, spread, grain, window, given } = self;
        let (cx, given) = (cx.clone(), given.share(cx));
        let size = if let Grain::Chunks(size) = grain { size.max(1) } else { 1 };
        let workers = cx.topology().power_of(cx.topology().ball(cx.pe(), Distance::ONE)) as usize;
        let window = window.unwrap_or(TASKS_PER_WORKER * workers).max(1);
        let mut items = items.into_iter();
        let mut number = 0;
        let tasks = std::iter::from_fn(move || {
            let chunk: Vec<_> = items.by_ref().take(size).collect();
            let (first, count) = (number * size, chunk.len());
            if count == 0 {
                return None;
            }
            let place = spread.place(&cx, number);
            number += 1;
            let given = given.clone();
            let task = match <[_; 1]>::try_from(chunk) {
                Ok([item]) => Either::Left(operation.spawn(&cx, place, given, item).map_ok(one)),
                Err(chunk) => Either::Right(operation.spawn_group(&cx, place, given, chunk)),
            };
            let task = AbortOnDrop::new(task);
            Some(async move {
                let results = match task.await {
                    Ok(results) => results.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                };
                let numbered = (first..).zip(results);
                stream::iter(numbered.map(|(number, result)| Ok((number, result?))))
            })
        });
        stream::iter(tasks).buffer_unordered(window).flatten()
    }

    /// Runs a map whose function returns a `Result`. Returns all values in the order of the items,
    /// or the error that comes first, of any item; then it cancels the other tasks. All tasks exist
    /// at once, unless there is a [`window`](Self::window). [`slices`](Self::slices) has no effect:
    /// each item is a task.
    ///
    /// ```
    /// use ultramarine::prelude::*;
    ///
    /// type Numbers = Result<Vec<u64>, String>;
    ///
    /// async fn numbers(cx: &Context, words: Vec<String>) -> Result<Numbers, TaskError> {
    ///     let parse = |word: String| word.parse::<u64>().map_err(|why| format!("{word}: {why}"));
    ///     map(parse, words).try_run(cx).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The outer error: a task ended without a result. The inner error: that of the function.
    pub async fn try_run<R, E>(self, cx: &Context) -> Result<Result<Vec<R>, E>, TaskError>
    where
        O: Operation<I::Item, Output = Result<R, E>>,
    {
        let mut found: Vec<Option<R>> = Vec::new();
        // With that of a stream, workers would wait idly for the results of others.
        let window = self.window.unwrap_or(usize::MAX);
        let mut results = pin!(self.window(window).stream(cx));
        while let Some((number, result)) = results.try_next().await? {
            match result {
                Ok(value) => {
                    found.resize_with(found.len().max(number + 1), || None);
                    found[number] = Some(value);
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        // Each item has a result, or the loop would have returned an error.
        Ok(Ok(found.into_iter().flatten().collect()))
    }
}
