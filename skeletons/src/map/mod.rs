//! The parallel maps (SymGridPar2 §4.4, figure 5; HdpH-RS A.9): which function, who applies it to
//! what, and what comes out, each said apart.

mod names;
mod operation;
mod spread;
mod stream;

pub use names::{
    fork_map, par_map, par_map_2level, par_map_2level_relaxed, par_map_2level_scheme,
    par_map_chunked, par_map_local, par_map_reduce, par_map_sliced, par_map_stream, push_map,
    push_map_chunked, push_map_sliced,
};
pub use operation::{Async, AsyncWith, Carry, Common, Given, Operation, Plain, With};

use self::spread::Spread;
use crate::share::{chunked, sliced, unsliced};
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, Shared};
use ultramarine_topology::Distance;

/// Applies `f` to each item, on all PEs: say how with the [methods](Map), and begin with
/// [`run`](Map::run), [`stream`](Map::stream) or [`reduce`](Map::reduce).
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     map(|n: u64| n * n, 0..100_000).chunks(1000).run(&cx.supervised()).await
/// }
/// ```
pub fn map<F, I, R>(f: F, items: I) -> Map<Plain<F>, (), I>
where
    F: Fn(I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(Plain(f), (), items)
}

/// [`map()`] for a function that needs something beside its item. It travels like a [`Shared`]:
/// once to each process. All items are given the same: if there are several things, make one tuple
/// or struct of them. What differs from item to item is a part of the item.
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn lookups(cx: &Context, table: Vec<f64>) -> Result<Vec<f64>, TaskError> {
///     map_with(table, |table: &Vec<f64>, n: usize| table[n], 0..100).run(cx).await
/// }
/// ```
pub fn map_with<G, F, I, R>(given: G, f: F, items: I) -> Map<With<F, G>, Common<G>, I>
where
    G: Portable + Sync,
    F: Fn(&G, I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(With(f, PhantomData), Common(given), items)
}

/// [`map_with`] for what is [shared](Context::share) already: the value that several maps need goes
/// to each process once for them all.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// The least of the distances to each place.
/// async fn nearest(cx: &Context, from: Vec<f64>, to: Vec<f64>) -> Result<Vec<f64>, TaskError> {
///     let from: Shared<Vec<f64>> = cx.share(from);
///     let mut all = Vec::new();
///     for to in to {
///         let distance = |from: &Vec<f64>, (n, to): (usize, f64)| (from[n] - to).abs();
///         let distances = map_shared(&from, distance, (0..from.len()).map(|n| (n, to)));
///         all.push(distances.chunks(1000).reduce(|| f64::INFINITY, f64::min, cx).await?);
///     }
///     Ok(all)
/// }
/// ```
pub fn map_shared<G, F, I, R>(given: &Shared<G>, f: F, items: I) -> Map<With<F, G>, Shared<G>, I>
where
    G: Portable + Sync,
    F: Fn(&G, I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(With(f, PhantomData), given.clone(), items)
}

/// [`map()`] for a function that needs the context, to spawn tasks of its own or to wait for
/// something.
///
/// ```
/// use std::time::Duration;
/// use ultramarine::prelude::*;
///
/// /// Where each of some tasks ran.
/// async fn places(cx: &Context) -> Result<Vec<u32>, TaskError> {
///     let place = async |cx: Context, n: u64| {
///         cx.sleep(Duration::from_millis(n)).await;
///         cx.pe().number()
///     };
///     map_async(place, 0..100).run(cx).await
/// }
/// ```
pub fn map_async<F, I, T>(f: F, items: I) -> Map<Async<F>, (), I>
where
    F: Fn(Context, I::Item) -> T + Stateless,
    I: IntoIterator<Item: Portable>,
    T: Future<Output: Portable> + Send + 'static,
{
    const { F::CHECKED };
    Map::new(Async(f), (), items)
}

/// [`map_async`] for a function that needs something beside its item, as [`map_with`] has it.
pub fn map_async_with<G, F, I, T>(given: G, f: F, items: I) -> Map<AsyncWith<F, G>, Common<G>, I>
where
    G: Portable + Sync,
    F: Fn(Context, Shared<G>, I::Item) -> T + Stateless,
    I: IntoIterator<Item: Portable>,
    T: Future<Output: Portable> + Send + 'static,
{
    const { F::CHECKED };
    Map::new(AsyncWith(f, PhantomData), Common(given), items)
}

/// A map that has not begun: made by [`map()`], [`map_with`], [`map_shared`], [`map_async`] or
/// [`map_async_with`].
///
/// | what | says |
/// |---|---|
/// | **who does it** | unless one of these is said, any PE steals tasks from the caller |
/// | [`within`](Map::within) | PEs within a radius steal them |
/// | [`push`](Map::push) | they are dealt out to all PEs in turn, and nothing is stolen |
/// | [`two_level`](Map::two_level) | a coordinator in each part of the machine gets its share at once, and PEs around it steal from it |
/// | [`relaxed`](Map::relaxed) | the same, and who runs out of work steals from other parts too |
/// | **how much is a task** | unless one of these is said, one item |
/// | [`chunks`](Map::chunks) | some that follow each other |
/// | [`slices`](Map::slices) | every n-th |
/// | **what comes out** | |
/// | [`run`](Map::run) | all results, in the order of the items |
/// | [`try_run`](Map::try_run) | the same, or the first error of the program's own |
/// | [`stream`](Map::stream) | each result as it comes |
/// | [`reduce`](Map::reduce) | one value |
///
/// A map that is dropped before its end cancels what is left of it, and so does one that fails.
#[must_use = "a map does nothing until it is run"]
#[derive(Debug)]
pub struct Map<O, G, I> {
    operation: O,
    given: G,
    items: I,
    spread: Spread,
    grain: Grain,
    window: Option<usize>,
}

/// How many items make a task.
#[derive(Clone, Copy, Debug)]
enum Grain {
    One,
    Chunks(usize),
    Slices(usize),
}

impl<O, G, I> Map<O, G, I> {
    fn new(operation: O, given: G, items: I) -> Self {
        let spread = Spread::Within(Distance::ONE);
        Map { operation, given, items, spread, grain: Grain::One, window: None }
    }

    /// Tasks wait at the caller, for PEs within this radius to steal them.
    ///
    /// ```text
    ///        caller's pool   f x₁  f x₂  f x₃  …       radius 1/2: of the caller's rack, say
    ///                         │     └──→ a PE of the same rack
    ///                  caller ┘          (no PE of another rack)
    /// ```
    pub fn within(mut self, radius: Distance) -> Self {
        self.spread = Spread::Within(radius);
        self
    }

    /// The first task goes to this PE, the next to the next PE, and so on around. Nothing is
    /// stolen.
    ///
    /// ```text
    ///       caller PE 1: f x₁, f x₄ …     PE 2: f x₂, f x₅ …     PE 0: f x₃, f x₆ …
    /// ```
    pub fn push(mut self) -> Self {
        self.spread = Spread::InTurn;
        self
    }

    /// In two steps: each part of the ball of this radius around the caller gets a share at once,
    /// in proportion to its compute power, at a PE that coordinates it. PEs within half of the
    /// radius around the coordinator steal from it, and none of another part.
    ///
    /// ```text
    ///           caller's rack            │           another rack        radius 1
    ///      caller q₀: x₁ x₃ x₄ …         │        coordinator q₁: x₂ x₅ …
    ///    stolen ↙   ↘ in this rack only  │      stolen ↙   ↘ in that rack only
    /// ```
    ///
    /// A [`stream`](Map::stream) or [`try_run`](Map::try_run) has no coordinators: its tasks wait
    /// at the caller, for PEs within this radius.
    pub fn two_level(self, radius: Distance) -> Self {
        self.two_level_scheme(radius, radius.half())
    }

    /// The same with two radii: shares are dealt out within `dealt` around the caller, and tasks
    /// are stolen within `stolen` around their coordinators.
    pub fn two_level_scheme(mut self, dealt: Distance, stolen: Distance) -> Self {
        self.spread = Spread::TwoLevel { dealt, stolen };
        self
    }

    /// After [`two_level`](Self::two_level): a part that runs out of work steals from the others.
    ///
    /// ```text
    ///           caller's rack            │           another rack        radius 1
    ///      caller q₀: x₁ x₃ x₄ …       ←─┼─→      coordinator q₁: x₂ x₅ …
    ///    stolen ↙   ↘ here first         │      stolen ↙   ↘ there first
    /// ```
    pub fn relaxed(mut self) -> Self {
        if let Spread::TwoLevel { dealt, stolen } = &mut self.spread {
            *stolen = *dealt;
        }
        self
    }

    /// A task for each `size` items that follow each other: for items of too little work each. A
    /// `size` of 0 counts as 1.
    ///
    /// ```text
    ///       x₁ x₂ x₃ │ x₄ x₅ x₆ │ x₇          size 3
    /// ```
    pub fn chunks(mut self, size: usize) -> Self {
        self.grain = Grain::Chunks(size);
        self
    }

    /// This many tasks, to which the items are dealt out in turn: for work that grows along the
    /// items. Of 0 slices one is made. A [`stream`](Map::stream) does not know how many items there
    /// are, and has a task for each.
    ///
    /// ```text
    ///       x₁ x₄ x₇ │ x₂ x₅ │ x₃ x₆          3 slices
    /// ```
    pub fn slices(mut self, count: usize) -> Self {
        self.grain = Grain::Slices(count);
        self
    }

    /// At most `tasks` (at least one) of a [`stream`](Map::stream) are under way at a time.
    /// Default: four times the number of worker threads of all PEs.
    pub fn window(mut self, tasks: usize) -> Self {
        self.window = Some(tasks);
        self
    }
}

impl<O, G, I> Map<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: Given,
    O: Operation<I::Item, Given = G::Handle>,
{
    /// All results, in the order of the items.
    ///
    /// # Errors
    ///
    /// The error of the first task, in the order of the tasks, that ended without a result; with
    /// [`two_level`](Self::two_level) that of one of them. The rest is cancelled.
    pub async fn run(self, cx: &Context) -> Result<Vec<O::Output>, TaskError> {
        let Map { operation, items, spread, .. } = self;
        let given = self.given.share(cx);
        let group =
            move |cx: &Context, place, given, items| operation.spawn_group(cx, place, given, items);
        match self.grain {
            Grain::One => {
                let one =
                    move |cx: &Context, place, given, item| operation.spawn(cx, place, given, item);
                spread.run(cx, given, items.into_iter().collect(), one).await
            }
            Grain::Chunks(size) => {
                let results = spread.run(cx, given, chunked(size, items), group).await?;
                Ok(results.into_iter().flatten().collect())
            }
            Grain::Slices(count) => {
                Ok(unsliced(spread.run(cx, given, sliced(count, items), group).await?))
            }
        }
    }

    /// One value: what the function makes of the items, reduced by `reduce`. Each task reduces its
    /// own, and the caller what comes from the tasks, in order.
    ///
    /// ```text
    ///       x₁ x₂ x₃ ┈→ stolen     x₄ x₅ x₆ ┈→ stolen     x₇        chunks of 3
    ///          r₁                     r₂                  r₃        reduced by the caller
    /// ```
    ///
    /// `reduce` must be associative, and `identity` its neutral element, which is also the result
    /// for no items. With [`slices`](Self::slices) it must be commutative, too.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub async fn reduce<N, C>(
        self,
        identity: N,
        reduce: C,
        cx: &Context,
    ) -> Result<O::Output, TaskError>
    where
        N: Fn() -> O::Output + Stateless,
        C: Fn(O::Output, O::Output) -> O::Output + Stateless,
    {
        const { (N::CHECKED, C::CHECKED) };
        let Map { operation, items, spread, .. } = self;
        let groups = match self.grain {
            Grain::One => chunked(1, items),
            Grain::Chunks(size) => chunked(size, items),
            Grain::Slices(count) => sliced(count, items),
        };
        let reduced = move |cx: &Context, place, given, items| {
            operation.spawn_reduced(cx, place, given, items, (identity, reduce))
        };
        let results = spread.run(cx, self.given.share(cx), groups, reduced).await?;
        Ok(results.into_iter().fold(identity(), reduce))
    }
}
