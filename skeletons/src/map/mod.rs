//! The parallel maps (SymGridPar2 §4.4, figure 5; HdpH-RS A.9). A [`Map`] is built step by step:
//! the function and the items, the PEs that run the tasks, the number of items in a task, and the
//! form of the result. All maps compute the same results.
//!
//! | question | module |
//! |---|---|
//! | What is done with an item? | `operation` |
//! | Which PE runs which task? | `spread` |
//! | How do results come one by one? | `stream` |
//! | How do results outlive the job? | `journal` |
//! | Which map has which name in the papers? | `names` |

mod journal;
mod names;
mod operation;
mod spread;
mod stream;

pub use names::{
    fork_map, par_map, par_map_2level, par_map_2level_relaxed, par_map_2level_scheme,
    par_map_chunked, par_map_local, par_map_reduce, par_map_sliced, par_map_stream, push_map,
    push_map_chunked, push_map_sliced,
};
pub use operation::{
    Apply, ApplyAsync, ApplyAsyncWith, ApplyWith, IntoShared, Operation, SharedHandle, Unshared,
};

use self::spread::Spread;
use crate::share::{chunked, sliced, unsliced};
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, Shared};
use ultramarine_topology::Distance;

/// Applies `f` to each item, on all PEs. The [methods of `Map`](Map) set the details;
/// [`run`](Map::run), [`try_run`](Map::try_run), [`stream`](Map::stream) or [`reduce`](Map::reduce)
/// start it.
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     map(|n: u64| n * n, 0..100_000).chunks(1000).run(&cx.supervised()).await
/// }
/// ```
pub fn map<F, I, R>(f: F, items: I) -> Map<Apply<F>, (), I>
where
    F: Fn(I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(Apply(f), (), items)
}

/// [`map()`] for a function that needs another value beside its item, the same for all items. The
/// value is sent once to each process, like a [`Shared`]. Put several values into one tuple or
/// struct. Data that differs from item to item belongs in the item.
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn lookups(cx: &Context, table: Vec<f64>) -> Result<Vec<f64>, TaskError> {
///     map_with(table, |table: &Vec<f64>, n: usize| table[n], 0..100).run(cx).await
/// }
/// ```
pub fn map_with<G, F, I, R>(given: G, f: F, items: I) -> Map<ApplyWith<F, G>, Unshared<G>, I>
where
    G: Portable + Sync,
    F: Fn(&G, I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(ApplyWith(f, PhantomData), Unshared(given), items)
}

/// [`map_with`] for a value that is [shared](Context::share) already: several maps use it, and each
/// process still gets it only once.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// The smallest distance to each place.
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
pub fn map_shared<G, F, I, R>(
    given: &Shared<G>,
    f: F,
    items: I,
) -> Map<ApplyWith<F, G>, Shared<G>, I>
where
    G: Portable + Sync,
    F: Fn(&G, I::Item) -> R + Stateless,
    I: IntoIterator<Item: Portable>,
    R: Portable,
{
    const { F::CHECKED };
    Map::new(ApplyWith(f, PhantomData), given.clone(), items)
}

/// [`map()`] for an async function of the context and the item, which may spawn tasks and wait.
///
/// ```
/// use std::time::Duration;
/// use ultramarine::prelude::*;
///
/// /// The PE that ran each of 100 tasks.
/// async fn places(cx: &Context) -> Result<Vec<u32>, TaskError> {
///     let place = async |cx: Context, n: u64| {
///         cx.sleep(Duration::from_millis(n)).await;
///         cx.pe().number()
///     };
///     map_async(place, 0..100).run(cx).await
/// }
/// ```
pub fn map_async<F, I, T>(f: F, items: I) -> Map<ApplyAsync<F>, (), I>
where
    F: Fn(Context, I::Item) -> T + Stateless,
    I: IntoIterator<Item: Portable>,
    T: Future<Output: Portable> + Send + 'static,
{
    const { F::CHECKED };
    Map::new(ApplyAsync(f), (), items)
}

/// [`map_async`] for a function that needs another value beside its item, as in [`map_with`]. The
/// function gets a handle of the value, a [`Shared`], where that of `map_with` gets a reference: it
/// may pass the handle on to tasks that it spawns.
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn lookups(cx: &Context, table: Vec<f64>) -> Result<Vec<f64>, TaskError> {
///     let lookup = async |_: Context, table: Shared<Vec<f64>>, n: usize| table[n];
///     map_async_with(table, lookup, 0..100).run(cx).await
/// }
/// ```
pub fn map_async_with<G, F, I, T>(
    given: G,
    f: F,
    items: I,
) -> Map<ApplyAsyncWith<F, G>, Unshared<G>, I>
where
    G: Portable + Sync,
    F: Fn(Context, Shared<G>, I::Item) -> T + Stateless,
    I: IntoIterator<Item: Portable>,
    T: Future<Output: Portable> + Send + 'static,
{
    const { F::CHECKED };
    Map::new(ApplyAsyncWith(f, PhantomData), Unshared(given), items)
}

/// A map that has not started: made by [`map()`], [`map_with`], [`map_shared`], [`map_async`] or
/// [`map_async_with`].
///
/// | method | meaning |
/// |---|---|
/// | **which PE runs a task** | default: any PE may steal tasks from the caller |
/// | [`within`](Map::within) | PEs within a radius of the caller may steal tasks |
/// | [`push`](Map::push) | tasks are placed on all PEs in turn; none is stolen |
/// | [`two_level`](Map::two_level) | each part of the machine gets its share at once, at a coordinator; PEs of this part steal from it |
/// | [`relaxed`](Map::relaxed) | like `two_level`; a part that runs out of work steals from other parts |
/// | **the items of a task** | default: one |
/// | [`chunks`](Map::chunks) | some consecutive items |
/// | [`slices`](Map::slices) | every n-th item |
/// | **how many tasks at a time** | default: all; for a stream four times the number of workers |
/// | [`window`](Map::window) | at most this number |
/// | **the result** | |
/// | [`run`](Map::run) | all results, in the order of the items |
/// | [`try_run`](Map::try_run) | like `run`, for a function that returns a `Result`; or its first error |
/// | [`stream`](Map::stream) | each result when its task ends |
/// | [`reduce`](Map::reduce) | one value |
/// | [`journal`](Map::journal) | `run` or `reduce` with the results kept in a file |
///
/// A map that fails, or is dropped before its end, cancels its remaining tasks.
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

    /// Tasks wait at the caller; PEs within this radius may steal them.
    ///
    /// ```text
    ///        caller's pool   f x₁  f x₂  f x₃  …       radius 1/2, for example the caller's rack
    ///                         │     └──→ a PE of the same rack
    ///                  caller ┘          (no PE of another rack)
    /// ```
    pub fn within(mut self, radius: Distance) -> Self {
        self.spread = Spread::Within(radius);
        self
    }

    /// The first task goes to the calling PE, the next to the next PE, and so on, round and round.
    /// No task is stolen.
    ///
    /// ```text
    ///       caller PE 1: f x₁, f x₄ …     PE 2: f x₂, f x₅ …     PE 0: f x₃, f x₆ …
    /// ```
    pub fn push(mut self) -> Self {
        self.spread = Spread::InTurn;
        self
    }

    /// Two steps: each part of the ball of this radius around the caller gets a share at once, in
    /// proportion to its compute power. One PE of the part, its coordinator, receives the share.
    /// PEs within half the radius around the coordinator steal from it; PEs of other parts do not.
    ///
    /// ```text
    ///           caller's rack            │           another rack        radius 1
    ///      caller q₀: x₁ x₃ x₄ …         │        coordinator q₁: x₂ x₅ …
    ///    stolen ↙   ↘ in this rack only  │      stolen ↙   ↘ in that rack only
    /// ```
    ///
    /// [`stream`](Map::stream) and [`try_run`](Map::try_run) use no coordinators: their tasks wait
    /// at the caller, and PEs within this radius may steal them.
    pub fn two_level(self, radius: Distance) -> Self {
        self.two_level_scheme(radius, radius.half())
    }

    /// [`two_level`](Self::two_level) with two radii: shares go to the parts of the ball of radius
    /// `dealt` around the caller, and tasks may be stolen within `stolen` around their coordinator.
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

    /// Makes a task of each `size` consecutive items, for items with too little work each. A `size`
    /// of 0 counts as 1.
    ///
    /// As with [`slice::chunks`], the argument is a size and not a number of chunks.
    /// [`split_range`](crate::split_range) makes a given number of ranges, for a function that
    /// takes a range; [`slices`](Map::slices) makes a given number of tasks.
    ///
    /// ```text
    ///       x₁ x₂ x₃ │ x₄ x₅ x₆ │ x₇          size 3
    /// ```
    pub fn chunks(mut self, size: usize) -> Self {
        self.grain = Grain::Chunks(size);
        self
    }

    /// Makes `count` tasks and deals the items out to them in turn, for work that grows along the
    /// items. A `count` of 0 counts as 1. A [`stream`](Map::stream) does not know the number of
    /// items, so it makes a task of each item.
    ///
    /// ```text
    ///       x₁ x₄ x₇ │ x₂ x₅ │ x₃ x₆          3 slices
    /// ```
    pub fn slices(mut self, count: usize) -> Self {
        self.grain = Grain::Slices(count);
        self
    }

    /// The largest number of tasks that exist at a time, at least 1: for items that share something
    /// scarce, such as licences, files or memory, and for async items, of which a PE otherwise
    /// begins all that it has. Default: all tasks, and for a [`stream`](Map::stream) four times the
    /// number of worker threads of all PEs.
    ///
    /// With a window, [`two_level`](Self::two_level) uses no coordinators: tasks wait at the
    /// caller, and PEs within its radius may steal them.
    ///
    /// ```
    /// use ultramarine::prelude::*;
    ///
    /// /// Asks for pages, eight at a time, and keeps what has come.
    /// async fn pages(cx: &Context) -> Result<Vec<u64>, JournalError> {
    ///     let fetch = async |cx: Context, page: u64| {
    ///         cx.sleep(std::time::Duration::from_millis(1)).await;
    ///         page
    ///     };
    ///     map_async(fetch, 0..100).window(8).journal("pages.journal").run(cx).await
    /// }
    /// ```
    pub fn window(mut self, tasks: usize) -> Self {
        self.window = Some(tasks);
        self
    }
}

impl<O, G, I> Map<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: IntoShared,
    O: Operation<I::Item, Handle = G::Handle>,
{
    /// Runs the map. Returns all results in the order of the items.
    ///
    /// # Errors
    ///
    /// The error of the first task, in the order of the tasks, that ended without a result; with
    /// [`two_level`](Self::two_level) the error of any such task. The other tasks are cancelled.
    pub async fn run(self, cx: &Context) -> Result<Vec<O::Output>, TaskError> {
        let Map { operation, items, spread, window, .. } = self;
        let given = self.given.share(cx);
        let group =
            move |cx: &Context, place, given, items| operation.spawn_group(cx, place, given, items);
        match self.grain {
            Grain::One => {
                let one =
                    move |cx: &Context, place, given, item| operation.spawn(cx, place, given, item);
                spread.run(cx, window, given, items.into_iter().collect(), one).await
            }
            Grain::Chunks(size) => {
                let results = spread.run(cx, window, given, chunked(size, items), group).await?;
                Ok(results.into_iter().flatten().collect())
            }
            Grain::Slices(count) => {
                let results = spread.run(cx, window, given, sliced(count, items), group).await?;
                Ok(unsliced(results))
            }
        }
    }

    /// Runs the map and combines all results with `reduce`. Each task combines its own results; the
    /// caller combines the results of the tasks in their order.
    ///
    /// ```text
    ///       x₁ x₂ x₃ ┈→ stolen     x₄ x₅ x₆ ┈→ stolen     x₇        chunks of 3
    ///          r₁                     r₂                  r₃        reduced by the caller
    /// ```
    ///
    /// `reduce` must be associative, and `identity` its neutral element, which is also the result
    /// for no items. With [`slices`](Self::slices), `reduce` must also be commutative.
    ///
    /// ```
    /// use ultramarine::prelude::*;
    ///
    /// async fn sum_of_squares(cx: &Context) -> Result<u64, TaskError> {
    ///     map(|n: u64| n * n, 0..100_000).chunks(1000).reduce(|| 0, |a, b| a + b, cx).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
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
        let Map { operation, items, spread, window, .. } = self;
        let groups = match self.grain {
            Grain::One => chunked(1, items),
            Grain::Chunks(size) => chunked(size, items),
            Grain::Slices(count) => sliced(count, items),
        };
        let reduced = move |cx: &Context, place, given, items| {
            operation.spawn_reduced(cx, place, given, items, (identity, reduce))
        };
        let results = spread.run(cx, window, self.given.share(cx), groups, reduced).await?;
        Ok(results.into_iter().fold(identity(), reduce))
    }
}
