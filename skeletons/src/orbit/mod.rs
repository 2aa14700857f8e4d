//! Orbits, and searches over states: all that can be reached from a state, each once.
//!
//! The search goes by levels. Each state belongs to a PE by its hash, like a key of a
//! [table](crate::table), and that PE finds what comes next when the level before is complete: so a
//! state has the level that is its distance from the start, whatever dies. If a PE dies, the level
//! is done again from what the table holds.
//!
//! A search must never know what its states are.

mod moves;
mod origin;
mod search;

pub use self::moves::{Action, Batches, Moves, Successors};
pub use self::origin::{By, From, Origin};
pub use self::search::{Found, Progress, Reachable, Reached};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Portable, Shared};

/// All states that can be reached from `start`: `successors` adds those that follow from a state.
/// It gets `data`, too, which travels once to each PE.
///
/// ```
/// use ultramarine_runtime::executor::Context;
/// use ultramarine_skeletons::orbit::reachable;
/// use ultramarine_skeletons::table::TableError;
///
/// /// How many numbers below `limit` follow from 1 by doubling, and by adding 3?
/// async fn numbers(cx: &Context, limit: u64) -> Result<u64, TableError> {
///     let next = |limit: &u64, n: &u64, next: &mut Vec<u64>| {
///         next.extend([2 * n, n + 3].into_iter().filter(|n| n < limit));
///     };
///     Ok(reachable(next, limit, 1).run(cx).await?.count())
/// }
/// ```
pub fn reachable<F, D, S>(successors: F, data: D, start: S) -> Reachable<Successors<F>, D, S, ()>
where
    F: Fn(&D, &S, &mut Vec<S>) + Stateless,
    D: Portable + Sync,
{
    const { F::CHECKED };
    Reachable::new(Successors(successors), data, start)
}

/// [`reachable`] for an async function of many states at once, such as one that asks another
/// program: it returns the list of successors of each, or why it cannot.
///
/// ```
/// use ultramarine_runtime::executor::{Context, Shared};
/// use ultramarine_skeletons::orbit::reachable_batched;
/// use ultramarine_skeletons::table::TableError;
///
/// async fn numbers(cx: &Context, limit: u64) -> Result<u64, TableError> {
///     let next = async |_: Context, limit: Shared<u64>, numbers: Vec<u64>| {
///         let next = |n: u64| [2 * n, n + 3].into_iter().filter(|n| n < &limit).collect();
///         Ok(numbers.into_iter().map(next).collect())
///     };
///     Ok(reachable_batched(next, limit, 1).batch(64).run(cx).await?.count())
/// }
/// ```
pub fn reachable_batched<F, D, S, T>(
    successors: F,
    data: D,
    start: S,
) -> Reachable<Batches<F>, D, S, ()>
where
    F: Fn(Context, Shared<D>, Vec<S>) -> T + Stateless,
    T: Future<Output = Result<Vec<Vec<S>>, String>> + Send,
    D: Portable + Sync,
{
    const { F::CHECKED };
    Reachable::new(Batches(successors), data, start)
}

/// The orbit of a point under the group that some generators make: `act` gives the image of a point
/// under one.
///
/// ```
/// use ultramarine_runtime::executor::Context;
/// use ultramarine_skeletons::orbit::orbit;
/// use ultramarine_skeletons::table::TableError;
///
/// /// How many pairs come of (0, 1) by these permutations?
/// async fn pairs(cx: &Context, generators: Vec<Vec<u32>>) -> Result<u64, TableError> {
///     let act = |images: &Vec<u32>, pair: &[u32; 2]| pair.map(|n| images[n as usize]);
///     Ok(orbit(act, generators, [0, 1]).run(cx).await?.count())
/// }
/// ```
pub fn orbit<F, G, S>(act: F, generators: Vec<G>, start: S) -> Reachable<Action<F>, Vec<G>, S, ()>
where
    F: Fn(&G, &S) -> S + Stateless,
    G: Portable + Sync,
{
    const { F::CHECKED };
    Reachable::new(Action(act), generators, start)
}
