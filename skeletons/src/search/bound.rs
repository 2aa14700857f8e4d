//! Branch and bound: finding a node of the greatest value without visiting all.
//!
//! The greatest value found so far, the *incumbent*, is known on every PE, and subtrees that cannot
//! beat it are left out. A better node goes the following way:
//!
//! - The PE that finds it keeps it, uses its value at once, and sends it home, to the PE that began
//!   the search.
//! - Home keeps the best node, and tells its value to all who take part. Who joins them asks for
//!   it.
//! - When a task ends, its result is at least as good as the best node that its PE keeps.
//!
//! Why that is right when processes die: a subtree is left out because of a node that the PE keeps,
//! or one that home keeps. In the first case the task that leaves it out ends with a node as good,
//! or does not end, and is run again. The second is as good as found, since without home nobody
//! waits.
//!
//! Why nothing is left in memory: values still travel when the search has ended, and nobody knows
//! whether they come before the word to forget it or after. So only the search's own tasks, which
//! have ended by then, begin to share anything; who hears a value must have one already.

use super::task::{ForgetsAtEnd, Kind, Onward, search};
use super::{Splitting, Tree};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Key};
use ultramarine_topology::Pe;

/// A tree in which values are known, and limits of what is below.
pub trait Bounded: Tree<Node: Clone> {
    /// What a node is worth as a solution, less than [`u64::MAX`]; `None` if it is none.
    fn value(&self, node: &Self::Node) -> Option<u64>;

    /// What neither this node nor any below it exceeds. The lower, the more is left out.
    fn bound(&self, node: &Self::Node) -> u64;

    /// Whether the children of each node come with falling bounds. Then the first that is left out
    /// leaves out all siblings after it as well: they are not even generated. If the bounds do not
    /// fall, solutions may be missed.
    fn has_falling_bounds(&self) -> bool {
        false
    }
}

/// A node of the greatest value in the tree below `root`, which is one of them, and that value;
/// `None` if no node is a solution. Of several with that value it may be any. Children that are
/// likelier to be good should come first.
///
/// ```text
///    PE 3 finds a node of 17              PE 5 leaves out what is bound to 17
///      │ node, 17                          ↑ 17
///      └───→ home, who began the search, ──┴──→ 17: all others who take part
///            keeps the best node
/// ```
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use ultramarine::prelude::*;
///
/// /// Which of these weights to take, so that they come as near to the limit as they can. A node
/// /// is how many have been looked at, and what those taken weigh.
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Load {
///     weights: Vec<u64>,
///     limit: u64,
/// }
///
/// impl Tree for Load {
///     type Node = (usize, u64);
///     fn children(&self, (seen, load): Self::Node) -> impl Iterator<Item = Self::Node> + Send {
///         let next = self.weights.get(seen).map(|weight| [load + weight, load]);
///         let loads = next.into_iter().flatten().filter(|load| *load <= self.limit);
///         loads.map(move |load| (seen + 1, load))
///     }
/// }
///
/// impl Bounded for Load {
///     fn value(&self, (_, load): &(usize, u64)) -> Option<u64> {
///         Some(*load)
///     }
///     fn bound(&self, (seen, load): &(usize, u64)) -> u64 {
///         self.limit.min(load + self.weights[*seen..].iter().sum::<u64>())
///     }
/// }
///
/// async fn heaviest(cx: &Context, weights: Vec<u64>, limit: u64) -> Result<u64, TaskError> {
///     let load = Load { weights, limit };
///     let best = par_maximise(&cx.supervised(), Splitting::Budget(10_000), load, (0, 0)).await?;
///     Ok(best.map_or(0, |(load, _)| load))
/// }
/// ```
///
/// # Errors
///
/// A task ended without a result. Then, as when the search is dropped, its other tasks are
/// cancelled. One that is stopped only later, or that processes which died should have stopped, may
/// leave a little in a PE's memory until the job ends.
pub async fn par_maximise<T>(
    cx: &Context,
    splitting: Splitting,
    tree: T,
    root: T::Node,
) -> Result<Option<(u64, T::Node)>, TaskError>
where
    T: Bounded,
{
    let key = cx.new_key();
    let _forgets = ForgetsAtEnd(cx, key);
    let found = search(cx, key, splitting, Maximum, tree, root).await?;
    let kept = cx.known::<Best<T::Node>>(key).and_then(|best| best.get());
    Ok(better(found, kept))
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
        self.beyond.load(Ordering::Acquire) <= value
    }

    /// Takes a value in.
    fn raise(&self, value: u64) {
        self.beyond.fetch_max(value.saturating_add(1), Ordering::Release);
    }
}

/// The best node that a PE keeps.
struct Best<N>(Mutex<Option<(u64, N)>>);

impl<N: Clone> Best<N> {
    fn get(&self) -> Option<(u64, N)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a node if it is better.
    fn raise(&self, value: u64, node: &N) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(known, _)| *known < value) {
            *kept = Some((value, node.clone()));
        }
    }
}

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

pub(super) struct Desk<N> {
    cx: Context,
    key: Key,
    incumbent: Arc<Incumbent>,
    best: Arc<Best<N>>,
}

#[derive(Clone, Copy)]
struct Maximum;

impl<T: Bounded> Kind<T> for Maximum {
    type Found = Option<(u64, T::Node)>;
    type Desk = Desk<T::Node>;

    fn begin(self, cx: &Context, key: Key) -> (Desk<T::Node>, Self::Found) {
        let mut is_first = false;
        let best = cx.shared(key, Best::default);
        let incumbent = cx.shared(key, || {
            is_first = true;
            Incumbent::default()
        });
        if is_first && key.home != cx.pe() {
            // What home told all others before is known here, too, as soon as the answer is there.
            let _ = cx.tell(key.home, brief::<T::Node>, (key, cx.pe()));
        }
        (Desk { cx: cx.clone(), key, incumbent, best }, None)
    }

    fn visit(self, desk: &Desk<T::Node>, tree: &T, node: &T::Node, _: &mut Self::Found) -> Onward {
        let value = tree.value(node).filter(|value| desk.incumbent.is_below(*value));
        if let Some(value) = value {
            // In this order: nobody leaves anything out because of a node that is not kept.
            desk.best.raise(value, node);
            desk.incumbent.raise(value);
            let find = Find { key: desk.key, value, node: node.clone() };
            // If it cannot be told, the task's result has it, too.
            let _ = desk.cx.tell(desk.key.home, keep::<T::Node>, find);
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

    fn end(self, desk: &Desk<T::Node>, found: &mut Self::Found) {
        *found = better(found.take(), desk.best.get());
    }
}

/// The one of greater value.
fn better<N>(one: Option<(u64, N)>, other: Option<(u64, N)>) -> Option<(u64, N)> {
    let value = |found: &Option<(u64, N)>| found.as_ref().map(|(value, _)| *value);
    if value(&other) > value(&one) { other } else { one }
}

/// Keeps a find at home, and tells all who take part its value, if it is the best.
async fn keep<N: Clone + Send + 'static>(cx: Context, find: Find<N>) {
    let Find { key, value, node } = find;
    // Unless the search has ended.
    let Some(best) = cx.known::<Best<N>>(key) else { return };
    // Home's own finds are kept already.
    best.raise(value, &node);
    if best.get().is_some_and(|(known, _)| known == value) {
        let _ = cx.tell_all(hear, (key, value));
    }
}

/// Tells a PE that has joined the value of what home keeps. Asked after home has told all others,
/// so that the PE hears of each find in one way or the other.
async fn brief<N: Clone + Send + 'static>(cx: Context, (key, pe): (Key, Pe)) {
    let kept = cx.known::<Best<N>>(key).and_then(|best| best.get());
    if let Some((value, _)) = kept {
        let _ = cx.tell(pe, hear, (key, value));
    }
}

/// Hears what home keeps, if this PE takes part.
async fn hear(cx: Context, (key, value): (Key, u64)) {
    let incumbent = cx.known::<Incumbent>(key);
    incumbent.iter().for_each(|incumbent| incumbent.raise(value));
}
