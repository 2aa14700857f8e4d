//! Decides which PE runs which task of a map. It must never know what a task does.

use super::operation::SharedHandle;
use crate::share::Deal;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use std::pin::pin;
use std::vec;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Placement, Portable};
use ultramarine_topology::{Distance, Pe};

/// How tasks are spread over PEs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    /// Tasks wait at the caller; PEs within this radius may steal them.
    Within(Distance),
    /// Tasks are placed on all PEs in turn.
    InTurn,
    /// Coordinators get shares of the tasks.
    TwoLevel {
        /// The radius around the caller within which coordinators are.
        dealt: Distance,
        /// The radius around a coordinator within which its tasks may be stolen.
        stolen: Distance,
    },
}

impl Spread {
    /// The placement of the task of this number, if the caller spawns tasks one by one.
    pub(super) fn place(self, cx: &Context, number: usize) -> Placement {
        match self {
            Spread::Within(radius) | Spread::TwoLevel { dealt: radius, .. } => radius.into(),
            Spread::InTurn => {
                let pe = (u64::from(cx.pe().number()) + number as u64) % u64::from(cx.pes());
                Pe::new(pe as u32).into()
            }
        }
    }

    /// Runs all tasks, at most `window` at a time; returns their results in the order of the tasks.
    pub(super) async fn run<C, U, V>(
        self,
        cx: &Context,
        window: Option<usize>,
        given: C,
        units: Vec<U>,
        spawn: impl Fn(&Context, Placement, C, U) -> Future<V> + Stateless,
    ) -> Result<Vec<V>, TaskError>
    where
        C: SharedHandle,
        U: Portable,
        V: Portable,
    {
        if let Some(window) = window {
            let mut results: Vec<Option<V>> = units.iter().map(|_| None).collect();
            let tasks = units.into_iter().enumerate().map(|(n, unit)| {
                let task = AbortOnDrop::new(spawn(cx, self.place(cx, n), given.clone(), unit));
                async move { Ok::<_, TaskError>((n, task.await?)) }
            });
            let mut ended = pin!(stream::iter(tasks).buffer_unordered(window.max(1)));
            while let Some((n, result)) = ended.try_next().await? {
                results[n] = Some(result);
            }
            // Each has come.
            return Ok(results.into_iter().flatten().collect());
        }
        let Spread::TwoLevel { dealt, stolen } = self else {
            let futures = units.into_iter().enumerate();
            let futures =
                futures.map(|(n, unit)| spawn(cx, self.place(cx, n), given.clone(), unit));
            return OrderedResults::of(futures.collect()).all().await;
        };
        let basis = cx.equidistant_basis(dealt);
        let weights: Vec<u64> = basis.iter().map(|(_, power)| *power).collect();
        let deal = Deal::new(units.len(), &weights);
        let coordinate = move |cx: Context, both| async move {
            let (given, (stolen, units)) = C::unbundle::<(Distance, Vec<U>)>(both);
            let spawn = |unit| spawn(&cx, Placement::Within(stolen), given.clone(), unit);
            OrderedResults::of(units.into_iter().map(spawn).collect()).all().await
        };
        let (mut parts, mut numbers) = (Vec::new(), Vec::new());
        let shares = basis.into_iter().zip(deal.split(units)).enumerate();
        // The caller's own part comes last, so that it does not start before the others are sent.
        for (number, ((coordinator, _), own)) in shares.rev() {
            if !own.is_empty() {
                let argument = given.clone().bundle((stolen, own));
                parts.push(cx.spawn_at(coordinator, coordinate, argument));
                numbers.push(number);
            }
        }
        let mut results: Vec<Vec<V>> = weights.iter().map(|_| Vec::new()).collect();
        let mut parts = OrderedResults::of(parts);
        for number in numbers {
            if let Some(part) = parts.next().await {
                results[number] = part??;
            }
        }
        // Each unit is in exactly one share, so no result is missing.
        Ok(deal.join(results))
    }
}

/// Awaits the results of tasks in order. Its drop cancels the remaining tasks.
struct OrderedResults<V>(vec::IntoIter<Future<V>>);

impl<V: Portable> OrderedResults<V> {
    fn of(futures: Vec<Future<V>>) -> Self {
        OrderedResults(futures.into_iter())
    }

    async fn next(&mut self) -> Option<Result<V, TaskError>> {
        // The future stays in the list until it has ended, so that a drop cancels it, too.
        let result = std::future::poll_fn(|waker| match self.0.as_mut_slice().first_mut() {
            Some(future) => std::pin::Pin::new(future).poll(waker).map(Some),
            None => std::task::Poll::Ready(None),
        });
        let result = result.await;
        drop(self.0.next());
        result
    }

    async fn all(mut self) -> Result<Vec<V>, TaskError> {
        let mut results = Vec::with_capacity(self.0.len());
        while let Some(result) = self.next().await {
            results.push(result?);
        }
        Ok(results)
    }
}

impl<V> Drop for OrderedResults<V> {
    fn drop(&mut self) {
        Future::abort_all(self.0.as_slice());
    }
}
