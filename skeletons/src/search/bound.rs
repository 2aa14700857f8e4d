//! Branch and bound: finds a node of the greatest value without visiting all nodes.
//!
//! The greatest value found so far, the *incumbent*, is known on every PE. A search prunes subtrees
//! whose bound does not exceed it. A better node travels as follows:
//!
//! - The PE that finds it keeps it, uses its value at once, and sends it to the *home* PE, which
//!   began the search.
//! - The home PE keeps the best node and sends its value to all PEs that take part. A PE that joins
//!   asks the home PE for the value.
//! - When a task ends, its result is at least as good as the best node that its PE keeps.
//!
//! Why pruning is safe when processes die: a task prunes a subtree because of a node that either
//! its own PE or the home PE keeps. In the first case the task returns a node as good, or its PE
//! dies and the task runs again. In the second case the node is as good as found, because without
//! the home PE no task waits for the result.
//!
//! Why no values stay in memory: values may still be on their way when the search has ended, before
//! or after the message that tells a PE to forget them. So only the caller and the search's own
//! tasks, which have ended by then, create shared values; a message from another PE only changes a
//! value that exists.

use super::better::{Better, Listener};
use super::pool::Place;
use super::task::{Pruning, SearchType};
use super::{Search, Splitting, Tree};
use futures_util::task::AtomicWaker;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Key, Portable};
use ultramarine_topology::Pe;

/// A [`Tree`] whose nodes have values, and upper bounds of the values below them.
pub trait Bounded: Tree<Node: Clone> {
    /// The value of a node as a solution, less than [`u64::MAX`]; `None` if it is not a solution.
    fn value(&self, node: &Self::Node) -> Option<u64>;

    /// An upper bound of the values of this node and all nodes below it. A lower bound prunes more.
    ///
    /// If it is less than one of these values, the search may return another node than the best,
    /// from run to run a different one, also with `first`. With debug assertions it panics where it
    /// meets such a node.
    fn bound(&self, node: &Self::Node) -> u64;

    /// Whether the bounds of the children of each node never rise from one child to the next. Then
    /// the first child that is pruned prunes all later siblings, which are not even generated. If
    /// this returns `true` and the bounds do rise, the search may miss the best node.
    fn has_falling_bounds(&self) -> bool {
        false
    }
}

/// Finds a node of the greatest value in the tree of `root`, `root` included. Returns the value and
/// the node; `None` if no node is a solution. If several nodes have this value, it returns any of
/// them. The search is faster if [`Tree::children`] yields promising children first.
///
/// ```text
///    PE 3 finds a node of value 17        PE 5 prunes subtrees with a bound of 17
///      │ node, 17                          ↑ 17
///      └───→ the home PE, which began ─────┴──→ 17: all other PEs that take part
///            the search, keeps the node
/// ```
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use ultramarine::prelude::*;
///
/// /// Chooses weights whose sum comes as near to the limit as possible. A node is the number of
/// /// weights considered so far, and the sum of those chosen.
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
///     let best = par_maximise(&cx.supervised(), Splitting::Ordered, load, (0, 0)).await?;
///     Ok(best.map_or(0, |(load, _)| load))
/// }
/// ```
///
/// # Errors
///
/// Those of [`Search::run`].
pub async fn par_maximise<T>(
    cx: &Context,
    splitting: Splitting,
    tree: T,
    root: T::Node,
) -> Result<Option<(u64, T::Node)>, TaskError>
where
    T: Bounded,
{
    maximise(splitting, tree, root).run(cx).await
}

/// [`par_maximise`] with the context last, for a search with a [journal](Search::journal).
///
/// ```no_run
/// use ultramarine::prelude::*;
///
/// async fn best<T: Bounded>(
///     cx: &Context,
///     tree: T,
///     root: T::Node,
/// ) -> Result<Option<(u64, T::Node)>, JournalError> {
///     let best = maximise(Splitting::Ordered, tree, root);
///     best.journal("best.journal").run(&cx.supervised()).await
/// }
/// ```
pub fn maximise<T: Bounded>(splitting: Splitting, tree: T, root: T::Node) -> Search<T, Maximise> {
    Search { kind: Maximise, splitting, tree, root, listener: None }
}

impl<T: Bounded, const FINDS_FIRST: bool> Search<T, Maximise<FINDS_FIRST>> {
    /// Has the search find the node that a search by one worker finds, with any number of workers
    /// and however they share the work: the first of the best nodes in the order of a depth-first
    /// search, which visits a node before its children. The search is [`Splitting::Ordered`] then.
    /// (Archibald, Maier, McCreesh, Stewart and Trinder, Replicable parallel branch and bound
    /// search, 2018.) With a [journal](Self::journal) it may be another of the best.
    pub fn first(self) -> Search<T, Maximise<true>> {
        let Search { tree, root, listener, .. } = self;
        Search { kind: Maximise, splitting: Splitting::Ordered, tree, root, listener }
    }

    /// Has `f` called with the value and the node when the search has found a better one than
    /// before, in the task that awaits the search: to show it, or to keep it for an early end. If
    /// several are found at about the same time it hears of the best. The last call is for the node
    /// that the search returns, or one of the same value. With a [journal](Self::journal) the first
    /// may be for the best node of the former runs.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use ultramarine::prelude::*;
    ///
    /// /// The best node that is found in this time, and its value.
    /// async fn in_time<T: Bounded<Node: Sync>>(
    ///     cx: &Context,
    ///     tree: T,
    ///     root: T::Node,
    /// ) -> Result<Option<(u64, T::Node)>, TaskError> {
    ///     let best = Arc::new(Mutex::new(None));
    ///     let kept = best.clone();
    ///     let search = maximise(Splitting::Ordered, tree, root).on_better(move |value, node| {
    ///         eprintln!("found one of value {value}");
    ///         *kept.lock().expect("no panic") = Some((value, node.clone()));
    ///     });
    ///     match cx.timeout(std::time::Duration::from_secs(60), search.run(cx)).await {
    ///         Ok(found) => found,
    ///         Err(_late) => Ok(best.lock().expect("no panic").take()),
    ///     }
    /// }
    /// ```
    pub fn on_better(mut self, f: impl FnMut(u64, &T::Node) + Send + 'static) -> Self {
        self.listener = Some(Listener::new(f));
        self
    }
}

/// The incumbent as one PE knows it.
#[derive(Default)]
struct Incumbent {
    /// One more than the value; 0 if there is none.
    beyond: AtomicU64,
    /// Its place.
    place: Mutex<Place>,
}

impl Incumbent {
    /// Whether a node of this value, or a subtree of this bound, is better.
    #[inline]
    fn is_below(&self, value: u64) -> bool {
        self.beyond.load(Ordering::Acquire) <= value
    }

    /// Whether it would be worse than a node of the same value at this place.
    fn is_after(&self, value: u64, place: &Place) -> bool {
        let is_as_good = |order| self.beyond.load(order) <= value.saturating_add(1);
        // It only grows. The lock, which most nodes do without, holds both together.
        is_as_good(Ordering::Acquire) && {
            let known = lock(&self.place);
            is_as_good(Ordering::Relaxed) && place < &*known
        }
    }

    /// Records a value.
    fn raise(&self, value: u64, place: Place) {
        let beyond = value.saturating_add(1);
        let mut known = lock(&self.place);
        let former = self.beyond.fetch_max(beyond, Ordering::Release);
        if former < beyond || former == beyond && place < *known {
            *known = place;
        }
    }
}

/// A node that was found, its value, and the place of the part of the tree that it was found in.
#[derive(Clone, Serialize, Deserialize)]
pub struct Best<N> {
    value: u64,
    place: Place,
    node: N,
}

impl<N> Best<N> {
    /// Whether it is better than the one found before, or as good and to be found earlier.
    fn replaces(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|other| {
            (other.value, Reverse(&other.place)) < (self.value, Reverse(&self.place))
        })
    }
}

/// The best node that a PE keeps.
struct BestNode<N> {
    kept: Mutex<Option<Best<N>>>,
    /// Who hears of a better one, on the home PE.
    hearing: AtomicWaker,
}

impl<N: Clone> BestNode<N> {
    fn get(&self) -> Option<Best<N>> {
        lock(&self.kept).clone()
    }

    /// Keeps a node if it is better than the one that is kept; returns whether it is.
    fn raise(&self, best: &Best<N>) -> bool {
        let mut kept = lock(&self.kept);
        let is_better = best.replaces(kept.as_ref());
        if is_better {
            *kept = Some(best.clone());
            drop(kept);
            self.hearing.wake();
        }
        is_better
    }
}

impl<N> Default for BestNode<N> {
    fn default() -> Self {
        BestNode { kept: Mutex::new(None), hearing: AtomicWaker::new() }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The best node of a PE, whenever there is a better one than the value that was heard of.
struct BetterNodes<N> {
    best: Arc<BestNode<N>>,
    heard: Option<u64>,
}

impl<N: Clone + Send> Better<N> for BetterNodes<N> {
    fn poll(&mut self, waker: &mut task::Context<'_>) -> Poll<(u64, N)> {
        self.best.hearing.register(waker.waker());
        match self.best.get() {
            Some(Best { value, node, .. }) if self.heard.is_none_or(|heard| heard < value) => {
                self.heard = Some(value);
                Poll::Ready((value, node))
            }
            _ => Poll::Pending,
        }
    }
}

/// What a task uses beside the nodes: the values that its PE keeps for the search.
pub struct PeKnowledge<N> {
    cx: Context,
    key: Key,
    incumbent: Arc<Incumbent>,
    best: Arc<BestNode<N>>,
    /// The place of the part of the tree that the task searches.
    place: Place,
}

/// The type of search of [`maximise`]. If it `FINDS_FIRST`, it finds the first of the best nodes.
#[derive(Clone, Copy, Debug)]
pub struct Maximise<const FINDS_FIRST: bool = false>;

impl<const FINDS_FIRST: bool> Maximise<FINDS_FIRST> {
    /// Whether a node of this value, or one of this bound, may be the one to be found.
    #[inline]
    fn is_hopeful<N>(knowledge: &PeKnowledge<N>, value: u64) -> bool {
        let PeKnowledge { incumbent, place, .. } = knowledge;
        incumbent.is_below(value) || FINDS_FIRST && incumbent.is_after(value, place)
    }
}

impl<T: Bounded, const FINDS_FIRST: bool> SearchType<T> for Maximise<FINDS_FIRST> {
    type Found = Option<Best<T::Node>>;
    type Output = Option<(u64, T::Node)>;
    type Knowledge = PeKnowledge<T::Node>;
    const KEEPS_VALUES: bool = true;
    const PREFERS_FIRST: bool = true;

    fn begin(self, cx: &Context, key: Key) -> PeKnowledge<T::Node> {
        let mut is_first = false;
        let best = cx.shared(key, BestNode::default);
        let incumbent = cx.shared(key, || {
            is_first = true;
            Incumbent::default()
        });
        if is_first && key.home != cx.pe() {
            // The answer brings the values that the home PE sent to all others before.
            let _ = cx.tell_fn(key.home, send_incumbent::<T::Node>, (key, cx.pe()));
        }
        PeKnowledge { cx: cx.clone(), key, incumbent, best, place: Place::default() }
    }

    fn enter(self, knowledge: &mut Self::Knowledge, place: &Place) {
        knowledge.place.clone_from(place);
    }

    #[inline]
    fn visit(
        self,
        knowledge: &PeKnowledge<T::Node>,
        tree: &T,
        node: &T::Node,
        ceiling: u64,
        _: &mut Self::Found,
    ) -> Pruning {
        if !Self::is_hopeful(knowledge, ceiling) {
            return Pruning::SubtreeAndSiblings;
        }
        let bound = tree.bound(node).min(ceiling);
        if Self::is_hopeful(knowledge, bound) {
            let value = tree.value(node);
            debug_assert!(
                value.is_none_or(|value| value <= bound),
                "`Bounded::bound` is too low: {bound} for a node, or for one above it, whose value \
                 is {}",
                value.unwrap_or_default()
            );
            if let Some(value) = value.filter(|value| Self::is_hopeful(knowledge, *value)) {
                let place = knowledge.place.clone();
                knowledge.improve(Best { value, place, node: node.clone() });
            }
            return Pruning::Nothing { bound };
        }
        if tree.has_falling_bounds() { Pruning::SubtreeAndSiblings } else { Pruning::Subtree }
    }

    fn merge(self, found: &mut Self::Found, other: Self::Found) {
        if let Some(other) = other.filter(|other| other.replaces(found.as_ref())) {
            *found = Some(other);
        }
    }

    fn known(self, cx: &Context, key: Key) -> Self::Found {
        cx.known::<BestNode<T::Node>>(key).and_then(|best| best.get())
    }

    fn end(self, knowledge: &PeKnowledge<T::Node>, found: &mut Self::Found) {
        SearchType::<T>::merge(self, found, knowledge.best.get());
    }

    fn output(self, found: Self::Found) -> Self::Output {
        found.map(|best| (best.value, best.node))
    }

    fn hear(
        self,
        knowledge: &PeKnowledge<T::Node>,
        listener: Listener<T::Node>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let better = BetterNodes { best: knowledge.best.clone(), heard: None };
        Box::pin(listener.hear(better))
    }

    fn learn(self, knowledge: &PeKnowledge<T::Node>, found: &Self::Found) {
        if let Some(best) = found {
            knowledge.best.raise(best);
            knowledge.incumbent.raise(best.value, best.place.clone());
        }
    }
}

impl<N: Portable + Clone> PeKnowledge<N> {
    /// Keeps a node that is better than the incumbent, and tells the home PE.
    #[cold]
    fn improve(&self, best: Best<N>) {
        // In this order: no task prunes because of a node that is not kept.
        self.best.raise(&best);
        self.incumbent.raise(best.value, best.place.clone());
        // If the message cannot be sent, the task's result still has the node.
        let _ = self.cx.tell_fn(self.key.home, keep_improvement::<N>, (self.key, best));
    }
}

/// On the home PE: keeps a better node, and sends its value to all PEs if it is the best.
fn keep_improvement<N: Clone + Send + 'static>(cx: &Context, (key, found): (Key, Best<N>)) {
    // The search may have ended.
    let Some(best) = cx.known::<BestNode<N>>(key) else { return };
    // A node that the home PE found itself is kept already.
    best.raise(&found);
    let Best { value, place, .. } = found;
    if best.get().is_some_and(|known| known.value == value && known.place == place) {
        let _ = cx.tell_all_fn(raise_incumbent, (key, value, place));
    }
}

/// On the home PE: sends the incumbent to a PE that has joined. The joining PE asks after it has
/// created its own incumbent, so it receives every value, by this answer or by a message to all.
fn send_incumbent<N: Clone + Send + 'static>(cx: &Context, (key, pe): (Key, Pe)) {
    let kept = cx.known::<BestNode<N>>(key).and_then(|best| best.get());
    if let Some(Best { value, place, .. }) = kept {
        let _ = cx.tell_fn(pe, raise_incumbent, (key, value, place));
    }
}

/// On any PE: records the value of the home PE's node, if this PE takes part in the search.
fn raise_incumbent(cx: &Context, (key, value, place): (Key, u64, Place)) {
    let incumbent = cx.known::<Incumbent>(key);
    incumbent.into_iter().for_each(|incumbent| incumbent.raise(value, place.clone()));
}
