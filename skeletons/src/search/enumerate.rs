//! Enumeration: visits every node of a tree.

use super::task::{Pruning, SearchType};
use super::{Search, Splitting, Tree};
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Key, Portable};

/// Visits each node of the tree of `root`, `root` included, and accumulates a result.
///
/// Each task has an accumulator, which begins as `R::default()`. `visit` adds a node to it, and
/// `merge` adds the accumulator of another task. The order of visits and merges is unspecified.
///
/// ```text
///       caller ●  visits from the root, depth first      ┈→ a thief visits the subtrees of the
///            ╱ │ ╲                                           task that it steals
///           ●  ●  ○ ┈→ PE 3: ○ ┈→ PE 5
///       found ←── merge ──── found ← merge ── found      on the way back
/// ```
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use ultramarine::prelude::*;
///
/// /// A complete binary tree. A node is the number of levels below it.
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Binary;
///
/// impl Tree for Binary {
///     type Node = u32;
///     fn children(&self, levels: u32) -> impl Iterator<Item = u32> + Send {
///         std::iter::repeat_n(levels.wrapping_sub(1), if levels > 0 { 2 } else { 0 })
///     }
/// }
///
/// async fn count(cx: &Context) -> Result<u64, TaskError> {
///     let count = |_: &Binary, _: &u32, found: &mut u64| *found += 1;
///     let add = |found: &mut u64, other| *found += other;
///     par_enumerate(&cx.supervised(), Splitting::StealDriven, count, add, Binary, 20).await
/// }
/// ```
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_enumerate<T, R, V, M>(
    cx: &Context,
    splitting: Splitting,
    visit: V,
    merge: M,
    tree: T,
    root: T::Node,
) -> Result<R, TaskError>
where
    T: Tree,
    R: Portable + Default,
    V: Fn(&T, &T::Node, &mut R) + Stateless,
    M: Fn(&mut R, R) + Stateless,
{
    // Here, so that the compiler's error names the caller's line.
    const { (V::CHECKED, M::CHECKED) };
    enumerate(splitting, visit, merge, tree, root).run(cx).await
}

/// [`par_enumerate`] with the context last, for a search with a [journal](Search::journal).
///
/// ```no_run
/// use ultramarine::prelude::*;
///
/// async fn count<T: Tree>(cx: &Context, tree: T, root: T::Node) -> Result<u64, JournalError> {
///     let count = |_: &T, _: &T::Node, found: &mut u64| *found += 1;
///     let add = |found: &mut u64, other| *found += other;
///     let nodes = enumerate(Splitting::StealDriven, count, add, tree, root);
///     nodes.journal("nodes.journal").run(&cx.supervised()).await
/// }
/// ```
pub fn enumerate<T, R, V, M>(
    splitting: Splitting,
    visit: V,
    merge: M,
    tree: T,
    root: T::Node,
) -> Search<T, Enumerate<V, M, R>>
where
    T: Tree,
    R: Portable + Default,
    V: Fn(&T, &T::Node, &mut R) + Stateless,
    M: Fn(&mut R, R) + Stateless,
{
    const { (V::CHECKED, M::CHECKED) };
    let kind = Enumerate { visit, merge, found: PhantomData };
    Search { kind, splitting, tree, root, listener: None }
}

/// The type of search of [`enumerate()`].
#[derive(Debug)]
pub struct Enumerate<V, M, R> {
    visit: V,
    merge: M,
    found: PhantomData<fn() -> R>,
}

impl<V: Copy, M: Copy, R> Clone for Enumerate<V, M, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V: Copy, M: Copy, R> Copy for Enumerate<V, M, R> {}

impl<T, V, M, R> SearchType<T> for Enumerate<V, M, R>
where
    T: Tree,
    V: Fn(&T, &T::Node, &mut R) + Stateless,
    M: Fn(&mut R, R) + Stateless,
    R: Portable + Default,
{
    type Found = R;
    type Output = R;
    type Knowledge = ();

    fn begin(self, _: &Context, _: Key) {}

    fn visit(self, (): &(), tree: &T, node: &T::Node, bound: u64, found: &mut R) -> Pruning {
        (self.visit)(tree, node, found);
        Pruning::Nothing { bound }
    }

    fn merge(self, found: &mut R, other: R) {
        (self.merge)(found, other);
    }

    fn output(self, found: R) -> R {
        found
    }
}
