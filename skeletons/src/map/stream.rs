//! A map that yields results as they come, for more items than fit into memory. It must never know
//! how many items there are: nothing is collected.

use super::operation::{Given, Operation};
use super::{Grain, Map};
use futures_util::future::{Either, TryFutureExt};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use std::pin::pin;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Portable};
use ultramarine_topology::Distance;

/// How many tasks are under way for each worker thread, unless the program says how many.
const TASKS_PER_WORKER: usize = 4;

fn one<R>(result: R) -> Vec<R> {
    vec![result]
}

impl<O, G, I> Map<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: Given,
    O: Operation<I::Item, Given = G::Handle>,
{
    /// Each result when it is there: the item's number, counted from 0, and what came out.
    ///
    /// As many tasks as fit the [`window`](Self::window) are under way; the items of the next are
    /// taken when the results of one have been taken from the stream. With
    /// [`chunks`](Self::chunks) the results of a chunk come together. A stream that is dropped
    /// cancels what is under way.
    ///
    /// ```text
    ///    items x₁ x₂ x₃ x₄ … ──→ │ f x₂  f x₃  f x₄ │ ──→ (0, f x₁) …
    ///      taken one by one        window: 3 under way       as they end
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
    /// The number beside a result is its item's, also with [`chunks`](Map::chunks) or
    /// [`slices`](Map::slices). To end early when something happens, use `take_until` of
    /// `futures_util::StreamExt`: `stream.take_until(shutdown_requested())` ends when the job is
    /// asked to, and its drop cancels the rest.
    ///
    /// # Errors
    ///
    /// A task that ended without a result yields the error in its place. The stream goes on with
    /// the others: who asks for more after an error gets their results.
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

    /// All results, in the order of the items, of a function that may fail; or the first error that
    /// comes, of whatever item: the rest is cancelled. All tasks are under way at once, and
    /// [`slices`](Self::slices) are as many tasks as there are items.
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
    /// The outer: a task ended without a result. The inner: that of the function.
    pub async fn try_run<R, E>(self, cx: &Context) -> Result<Result<Vec<R>, E>, TaskError>
    where
        O: Operation<I::Item, Output = Result<R, E>>,
    {
        let mut found: Vec<Option<R>> = Vec::new();
        // A window would leave workers idle that wait for the results of others.
        let mut results = pin!(self.window(usize::MAX).stream(cx));
        while let Some((number, result)) = results.try_next().await? {
            match result {
                Ok(value) => {
                    found.resize_with(found.len().max(number + 1), || None);
                    found[number] = Some(value);
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        // Each item has a result, or there would have been an error.
        Ok(Ok(found.into_iter().flatten().collect()))
    }
}
