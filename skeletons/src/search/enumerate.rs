//! Visiting every node of a tree.

use super::task::{Kind, Onward, search};
use super::{Splitting, Tree};
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Key, Portable};

/// Visits each node of the tree below `root`, which is one of them: `visit` adds what it finds to
/// what its task has found so far, at first `R`'s default, and `merge` adds what another task has
/// found. In which order nodes are visited and findings merged is not said.
///
/// ```text
///       caller ●  visits from the root, depth first      ┈→ who steals a task visits its subtrees
///            ╱ │ ╲                                           with findings of its own
///           ●  ●  ○ ┈→ PE 3: ○ ┈→ PE 5
///       found ←── merge ──── found ← merge ── found      on the way back
/// ```
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use ultramarine::prelude::*;
///
/// /// A node is how many levels there are below it.
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
    const { (V::CHECKED, M::CHECKED) };
    let kind = Enumeration { visit, merge, found: PhantomData };
    search(cx, cx.new_key(), splitting, kind, tree, root).await
}

struct Enumeration<V, M, R> {
    visit: V,
    merge: M,
    found: PhantomData<fn() -> R>,
}

impl<V: Copy, M: Copy, R> Clone for Enumeration<V, M, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V: Copy, M: Copy, R> Copy for Enumeration<V, M, R> {}

impl<T, V, M, R> Kind<T> for Enumeration<V, M, R>
where
    T: Tree,
    V: Fn(&T, &T::Node, &mut R) + Stateless,
    M: Fn(&mut R, R) + Stateless,
    R: Portable + Default,
{
    type Found = R;
    type Desk = ();

    fn begin(self, _: &Context, _: Key) -> ((), R) {
        ((), R::default())
    }

    fn visit(self, (): &(), tree: &T, node: &T::Node, found: &mut R) -> Onward {
        (self.visit)(tree, node, found);
        Onward::Down
    }

    fn merge(self, found: &mut R, other: R) {
        (self.merge)(found, other);
    }
}
