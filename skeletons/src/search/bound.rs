//! Branch and bound: finding a node of the greatest value without visiting all.
//!
//! The greatest value found so far, the *incumbent*, is known on every PE, and subtrees that cannot
//! beat it are left out. It goes the following way:
//!
//! - A task that finds a better node at once uses its value on its own PE, and sends the node home, to
//!   the PE that began the search.
//! - Home keeps the best node, and tells all others its value.
//!
//! So another PE leaves out a subtree only because of a node that home *has*. That is why it holds
//! when processes die: whatever a dead PE had found and not sent is found again by whoever runs its
//! tasks again, since nobody else has heard of it; and what it left out because of its own find was
//! left out by its own tasks, which are either lost with it, or had ended, while the task with the
//! better node is run again in any case.

use super::task::{Kind, Onward, forget, search};
use super::{Splitting, Tree};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Key, Spawner};
use ultramarine_topology::Pe;

/// A tree in which values are known, and limits of what is below.
pub trait Bounded: Tree<Node: Clone> {
    /// What a node is worth as a solution; `None` if it is none.
    fn value(&self, node: &Self::Node) -> Option<u64>;

    /// What neither this node nor any below it exceeds. The lower, the more is left out.
    fn bound(&self, node: &Self::Node) -> u64;

    /// Whether the children of each node come with falling bounds. Then, after the first that is left
    /// out, its siblings need not even be generated.
    fn has_falling_bounds(&self) -> bool {
        false
    }
}

/// A node of the greatest value in the tree below `root`, which is one of them, and that value;
/// `None` if no node is a solution. Of several with that value it may be any. Children that are
/// likelier to be good should come first.
///
/// # Errors
///
/// A task ended without a result.
pub async fn par_maximise<S, T>(
    spawner: &S,
    splitting: Splitting,
    tree: T,
    root: T::Node,
) -> Result<Option<(u64, T::Node)>, TaskError>
where
    S: Spawner,
    T: Bounded,
{
    let cx = spawner.context();
    let key = cx.new_key();
    let found = search(spawner, key, splitting, Maximum, tree, root).await;
    // A task that was run again may have left out a node because home had it already.
    let kept = cx.shared(key, Best::<T::Node>::default);
    let kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    forget(cx, key);
    Ok(better(found?, kept))
}

/// The incumbent as one PE knows it.
#[derive(Default)]
struct Incumbent {
    /// One more than the value; 0 if there is none.
    beyond: AtomicU64,
}

impl Incumbent {
    /// Whether a node of this value, or a subtree of this bound, is better.
    fn is_below(&self, value: u64) -> bool {
        self.beyond.load(Ordering::Relaxed) <= value
    }

    /// Takes a value in. Whether it is better.
    fn raise(&self, value: u64) -> bool {
        let beyond = value.saturating_add(1);
        self.beyond.fetch_max(beyond, Ordering::Relaxed) < beyond
    }
}

/// The best node that home has.
struct Best<N>(Mutex<Option<(u64, N)>>);

impl<N> Default for Best<N> {
    fn default() -> Self {
        Best(Mutex::new(None))
    }
}

/// What travels home.
#[derive(Serialize, Deserialize)]
struct Find<N> {
    key: Key,
    value: u64,
    node: N,
}

pub(super) struct Desk {
    cx: Context,
    key: Key,
    incumbent: Arc<Incumbent>,
}

#[derive(Clone, Copy)]
struct Maximum;

impl<T: Bounded> Kind<T> for Maximum {
    type Found = Option<(u64, T::Node)>;
    type Desk = Desk;

    fn begin(self, cx: &Context, key: Key) -> (Desk, Self::Found) {
        let incumbent = cx.shared(key, Incumbent::default);
        (Desk { cx: cx.clone(), key, incumbent }, None)
    }

    fn visit(self, desk: &Desk, tree: &T, node: &T::Node, found: &mut Self::Found) -> Onward {
        let value = tree.value(node).filter(|value| desk.incumbent.raise(*value));
        if let Some(value) = value {
            *found = Some((value, node.clone()));
            let find = Find { key: desk.key, value, node: node.clone() };
            // Nobody waits for that: if it is lost, so is this task.
            drop(desk.cx.spawn_at(desk.key.home, keep::<T::Node>, find));
        }
        if desk.incumbent.is_below(tree.bound(node)) {
            Onward::Down
        } else if tree.has_falling_bounds() {
            Onward::Up
        } else {
            Onward::Across
        }
    }

    fn merge(self, found: &mut Self::Found, other: Self::Found) {
        *found = better(found.take(), other);
    }
}

/// The one of greater value.
fn better<N>(one: Option<(u64, N)>, other: Option<(u64, N)>) -> Option<(u64, N)> {
    let value = |found: &Option<(u64, N)>| found.as_ref().map(|(value, _)| *value);
    if value(&other) > value(&one) { other } else { one }
}

/// Keeps a find at home, and tells all others its value, if it is the best.
async fn keep<N: Send + 'static>(cx: Context, find: Find<N>) {
    let Find { key, value, node } = find;
    let best = cx.shared(key, Best::<N>::default);
    let mut best = best.0.lock().unwrap_or_else(PoisonError::into_inner);
    if best.as_ref().is_some_and(|(known, _)| *known >= value) {
        return;
    }
    *best = Some((value, node));
    drop(best);
    let raise = async |cx: Context, (key, value): (Key, u64)| {
        cx.shared(key, Incumbent::default).raise(value);
    };
    for pe in (0..cx.pes()).map(Pe::new) {
        drop(cx.spawn_at(pe, raise, (key, value)));
    }
}
