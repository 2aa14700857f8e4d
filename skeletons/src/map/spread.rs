//! Who does the tasks of a map: it must never know what they do.

use super::operation::Carry;
use crate::share::shares;
use std::vec;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Future, Placement, Portable};
use ultramarine_topology::{Distance, Pe};

/// How tasks are spread over PEs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    /// They wait at the caller for PEs within this radius.
    Within(Distance),
    /// They are dealt out to all PEs in turn.
    InTurn,
    /// Coordinators get their shares.
    TwoLevel {
        /// How far around the caller.
        dealt: Distance,
        /// How far from its coordinator a task may be stolen.
        stolen: Distance,
    },
}

impl Spread {
    /// Where the task of this number goes, if they are spawned one by one by the caller.
    pub(super) fn place(self, cx: &Context, number: usize) -> Placement {
        match self {
            Spread::Within(radius) | Spread::TwoLevel { dealt: radius, .. } => radius.into(),
            Spread::InTurn => {
                let pe = (u64::from(cx.pe().number()) + number as u64) % u64::from(cx.pes());
                Pe::new(pe as u32).into()
            }
        }
    }

    /// Has all tasks done; the results are in their order.
    pub(super) async fn run<C, U, V>(
        self,
        cx: &Context,
        given: C,
        units: Vec<U>,
        spawn: impl Fn(&Context, Placement, C, U) -> Future<V> + Stateless,
    ) -> Result<Vec<V>, TaskError>
    where
        C: Carry,
        U: Portable,
        V: Portable,
    {
        let Spread::TwoLevel { dealt, stolen } = self else {
            let futures = units.into_iter().enumerate();
            let futures =
                futures.map(|(n, unit)| spawn(cx, self.place(cx, n), given.clone(), unit));
            return Gathering::of(futures.collect()).gather().await;
        };
        let mut units: Vec<Option<U>> = units.into_iter().map(Some).collect();
        let basis = cx.equidistant_basis(dealt);
        let weights: Vec<u64> = basis.iter().map(|(_, power)| *power).collect();
        let shares = shares(units.len(), &weights);
        let coordinate = move |cx: Context, both| async move {
            let (given, (stolen, units)) = C::part::<(Distance, Vec<U>)>(both);
            let spawn = |unit| spawn(&cx, Placement::Within(stolen), given.clone(), unit);
            Gathering::of(units.into_iter().map(spawn).collect()).gather().await
        };
        let (mut parts, mut numbers) = (Vec::new(), Vec::new());
        // The caller's own part last: placing it begins nothing before the others are on their way.
        for ((coordinator, _), share) in basis.into_iter().zip(shares).rev() {
            if !share.is_empty() {
                let own: Vec<U> = share.iter().filter_map(|unit| units[*unit].take()).collect();
                let argument = given.clone().with((stolen, own));
                parts.push(cx.spawn_at(coordinator, coordinate, argument));
                numbers.push(share);
            }
        }
        let mut results: Vec<Option<V>> = units.iter().map(|_| None).collect();
        let mut parts = Gathering::of(parts);
        for share in numbers {
            if let Some(part) = parts.next().await {
                for (unit, result) in share.into_iter().zip(part??) {
                    results[unit] = Some(result);
                }
            }
        }
        // Each unit is in one share, so that no result is missing.
        Ok(results.into_iter().flatten().collect())
    }
}

/// Tasks whose results are awaited in order. If this is dropped, those that are left are cancelled.
struct Gathering<V>(vec::IntoIter<Future<V>>);

impl<V: Portable> Gathering<V> {
    fn of(futures: Vec<Future<V>>) -> Self {
        Gathering(futures.into_iter())
    }

    async fn next(&mut self) -> Option<Result<V, TaskError>> {
        // It stays among the others until it has ended.
        let result = std::future::poll_fn(|waker| match self.0.as_mut_slice().first_mut() {
            Some(future) => std::pin::Pin::new(future).poll(waker).map(Some),
            None => std::task::Poll::Ready(None),
        });
        let result = result.await;
        drop(self.0.next());
        result
    }

    async fn gather(mut self) -> Result<Vec<V>, TaskError> {
        let mut results = Vec::with_capacity(self.0.len());
        while let Some(result) = self.next().await {
            results.push(result?);
        }
        Ok(results)
    }
}

impl<V> Drop for Gathering<V> {
    fn drop(&mut self) {
        Future::abort_all(self.0.as_slice());
    }
}
