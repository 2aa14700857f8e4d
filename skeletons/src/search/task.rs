//! The tasks of a search, and when they split off others. All types of search share them, so they
//! must never know what is searched for.

use super::better::{Listener, beside};
use super::frontier::Frontier;
use super::ordered::search_in_order;
use super::pool::{Part, Place};
use super::walk::visit_until_pause;
use super::{Search, Splitting, Tree};
use crate::result_future::ResultFuture;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Demand, Future, Key, Portable, Shared};
use ultramarine_topology::Distance;

/// What a search leaves out after the visit of a node.
#[derive(Debug)]
pub enum Pruning {
    /// Nothing: it visits the children next.
    Nothing {
        /// A bound of the node, and so of all below it.
        bound: u64,
    },
    /// The node's children.
    Subtree,
    /// The node's children, and its later siblings.
    SubtreeAndSiblings,
}

/// A type of search (`YewPar`'s word): what a task does with each node, and what it returns.
/// Programs need not name it.
pub trait SearchType<T: Tree>: Stateless {
    /// What a task returns.
    type Found: Portable + Default;
    /// What a search returns.
    type Output: Portable;
    /// What a visit uses beside the node, such as the best value known on this PE.
    type Knowledge: Send + Sync;
    /// Whether PEs keep values for the search, which they must forget at its end.
    const KEEPS_VALUES: bool = false;
    /// Whether a search visits fewer nodes if it begins with the first subtrees.
    const PREFERS_FIRST: bool = false;

    /// Called before a task's first visit.
    fn begin(self, cx: &Context, key: Key) -> Self::Knowledge;
    /// Called before the first visit in a part of the tree that stands at this place in the order.
    fn enter(self, _: &mut Self::Knowledge, _: &Place) {}
    /// Visits a node. Its parent has this bound.
    fn visit(
        self,
        knowledge: &Self::Knowledge,
        tree: &T,
        node: &T::Node,
        ceiling: u64,
        found: &mut Self::Found,
    ) -> Pruning;
    /// Adds what another task has found.
    fn merge(self, found: &mut Self::Found, other: Self::Found);
    /// What this PE knows of what others have found.
    fn known(self, _: &Context, _: Key) -> Self::Found {
        Self::Found::default()
    }
    /// Called when the task has visited all of its nodes.
    fn end(self, _: &Self::Knowledge, _: &mut Self::Found) {}
    /// What the search returns if this has been found in the whole tree.
    fn output(self, found: Self::Found) -> Self::Output;
    /// On the home PE: has the program hear of what is found.
    fn hear(
        self,
        _: &Self::Knowledge,
        _: Listener<T::Node>,
    ) -> Pin<Box<dyn std::future::Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
    /// Learns of what a task has found, or another PE knows.
    fn learn(self, _: &Self::Knowledge, _: &Self::Found) {}
}

/// The argument of a search task: nodes whose subtrees the task searches.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Tree")]
pub(super) struct SearchTask<T: Tree> {
    pub(super) tree: Shared<T>,
    /// The key of the values that each PE keeps for this search.
    pub(super) key: Key,
    pub(super) splitting: Splitting,
    /// The depth of these nodes in the tree, for depth-bounded splitting.
    pub(super) depth: u32,
    pub(super) nodes: Vec<T::Node>,
}

impl<T: Tree, K: SearchType<T>> Search<T, K> {
    /// Runs the search. Returns what [`enumerate`](super::enumerate()) has accumulated, or the
    /// value and the node that [`maximise`](super::maximise) has found.
    ///
    /// # Errors
    ///
    /// A task ended without a result. The other tasks of the search are then cancelled, as they are
    /// when the search is dropped. A task of `maximise` that stops later than that, or that a dead
    /// process should have stopped, may leave its incumbent in the memory of a PE until the job
    /// ends.
    pub async fn run(self, cx: &Context) -> Result<K::Output, TaskError> {
        let Search { kind: search_type, splitting, tree, root, listener } = self;
        let key = cx.new_key();
        let _forget = K::KEEPS_VALUES.then(|| ForgetOnDrop(cx, key));
        let knowledge = search_type.begin(cx, key);
        let tree = cx.share(tree);
        let root = SearchTask { tree, key, splitting, depth: 0, nodes: vec![root] };
        let search = root.search(cx, Distance::ZERO, search_type, Place::default());
        let hearing = listener.map(|listener| search_type.hear(&knowledge, listener));
        let learn = |ended: &Result<K::Found, _>| {
            if let Ok(found) = ended {
                search_type.learn(&knowledge, found);
            }
        };
        let mut found = beside(search, hearing, learn).await?;
        // A task that ran again after a death pruned by what it had found before.
        search_type.end(&knowledge, &mut found);
        Ok(search_type.output(found))
    }
}

impl<T: Tree> SearchTask<T> {
    /// Searches below these nodes, by tasks. PEs within the radius may begin.
    pub(super) async fn search<K: SearchType<T>>(
        mut self,
        cx: &Context,
        radius: Distance,
        search_type: K,
        place: Place,
    ) -> Result<K::Found, TaskError> {
        // These nodes are a task like the others. The caller only waits: it may be the main task,
        // which can run on a thread beside the workers.
        if self.splitting == Splitting::Ordered && K::PREFERS_FIRST {
            let SearchTask { tree, key, nodes, .. } = self;
            let run = move |cx, part| search_in_order::<T, K>(cx, search_type, part);
            let part = (tree, key, Part::new(place, &nodes)?);
            return AbortOnDrop::new(cx.spawn(Distance::ZERO, run, part)).await?;
        }
        if self.splitting == Splitting::Ordered {
            // No order is better, and what a dead task gave back would count twice.
            self.splitting = Splitting::StealDriven;
        }
        self.spawn(cx, radius, search_type).await?
    }

    /// Spawns this task. PEs within the radius may steal it.
    fn spawn<K: SearchType<T>>(
        self,
        cx: &Context,
        radius: Distance,
        search_type: K,
    ) -> AbortOnDrop<Future<Result<K::Found, TaskError>>> {
        let run = move |cx, task| run_search_task::<T, K>(cx, search_type, task);
        AbortOnDrop::new(cx.spawn(radius, run, self))
    }
}

/// At its end, or when it is dropped, a search tells all PEs to forget its values. The home PE
/// forgets at once, so that it passes no late improvements on.
pub(super) struct ForgetOnDrop<'a>(pub(super) &'a Context, pub(super) Key);

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        let ForgetOnDrop(cx, key) = *self;
        cx.forget(key);
        // If the job is ending, this fails, and all values go anyway.
        let _ = cx.tell_all_fn(|cx: &Context, key| cx.forget(key), key);
    }
}

fn run_search_task<T, K>(cx: Context, search_type: K, task: SearchTask<T>) -> ResultFuture<K::Found>
where
    T: Tree,
    K: SearchType<T>,
{
    let visit = async move {
        let SearchTask { tree: shared, key, splitting, depth, nodes } = task;
        let knowledge = search_type.begin(&cx, key);
        let (mut found, mut tasks) = (K::Found::default(), Vec::new());
        // The last first: a worker first takes the task that it has spawned last. A branch and
        // bound that begins with the least promising nodes may visit thousands of times as many.
        let mut split_off = |splitter: &mut Splitter, frontier: &mut Frontier<_, _>| {
            for nodes in splitter.take(frontier).into_iter().rev() {
                let depth = depth.saturating_add(1);
                let task = SearchTask { tree: shared.clone(), key, splitting, depth, nodes };
                tasks.push(task.spawn(&cx, Distance::ONE, search_type));
            }
        };
        let mut frontier = Frontier::new(nodes);
        let mut splitter = Splitter::new(splitting, depth);
        let tree: &T = &shared;
        let mut visit =
            |node: &_, ceiling| search_type.visit(&knowledge, tree, node, ceiling, &mut found);
        let children = |node| tree.children(node);
        while visit_until_pause(
            &cx,
            &mut splitter,
            &mut frontier,
            children,
            &mut visit,
            &mut split_off,
        ) {
            // Other tasks wait, for example messages with a better node or requests for the tree.
            cx.yield_now().await;
        }
        for task in tasks {
            search_type.merge(&mut found, task.await??);
        }
        search_type.end(&knowledge, &mut found);
        Ok(found)
    };
    visit.boxed()
}

/// In order, a task splits this many times as often while others wait for parts.
const HURRY: u32 = 20;

/// Decides when a task splits off others, and which nodes they get.
pub(super) struct Splitter {
    splitting: Splitting,
    /// The depth of the nodes that the task began with.
    depth: u32,
    /// Nodes visited since the last split by budget.
    visited: u64,
    /// How often the task splits, if it splits by time, and when it does next.
    every: Option<(Duration, Instant)>,
    is_work_wanted: bool,
    /// Whether workers wait for parts, where that is known.
    shortage: Option<Arc<AtomicBool>>,
}

impl Splitter {
    fn new(splitting: Splitting, depth: u32) -> Self {
        let (visited, every, is_work_wanted, shortage) = (0, None, false, None);
        Splitter { splitting, depth, visited, every, is_work_wanted, shortage }
    }

    /// One for a part of an ordered search, for which there may be others: splits so often, more
    /// often while there is a shortage, and at once if work is wanted.
    pub(super) fn in_order(
        every: Option<Duration>,
        is_work_wanted: bool,
        shortage: Option<Arc<AtomicBool>>,
    ) -> Self {
        let now = Instant::now();
        let every = every.map(|every| (every, if is_work_wanted { now } else { now + every }));
        Splitter { every, shortage, ..Splitter::new(Splitting::Ordered, 0) }
    }

    /// Whether each child becomes a task.
    pub(super) fn splits_children(&self) -> bool {
        matches!(self.splitting, Splitting::Depth(limit) if self.depth < limit)
    }

    /// Called every few microseconds.
    pub(super) fn notice(&mut self, demand: Demand) {
        self.is_work_wanted |= match self.splitting {
            Splitting::Depth(_) | Splitting::Budget(_) => false,
            Splitting::StealDriven => demand.is_work_wanted,
            Splitting::Ordered => self.every.is_some_and(|(every, due)| {
                let until = due.saturating_duration_since(Instant::now());
                let is_short = || self.shortage.as_ref().is_some_and(|it| it.load(Relaxed));
                until.is_zero() || until + every / HURRY <= every && is_short()
            }),
        };
    }

    /// Whether part of the frontier should become tasks now. Called once for each node.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        if let Splitting::Budget(limit) = self.splitting {
            self.visited += 1;
            return self.visited >= limit;
        }
        self.is_work_wanted
    }

    /// Takes the nodes of the next tasks out of the frontier, one list for each task.
    #[cold]
    pub(super) fn take<I, N>(&mut self, frontier: &mut Frontier<I, N>) -> Vec<Vec<N>>
    where
        I: Iterator<Item = N>,
    {
        (self.visited, self.is_work_wanted) = (0, false);
        self.every = self.every.map(|(every, _)| (every, Instant::now() + every));
        let mut one_each = Vec::new();
        let list = match self.splitting {
            Splitting::StealDriven => frontier.split(),
            Splitting::Ordered => frontier.take_highest(),
            Splitting::Depth(_) | Splitting::Budget(_) => loop {
                let nodes = frontier.take_highest();
                let is_last = nodes.is_empty() || !self.splits_children();
                one_each.extend(nodes.into_iter().map(|node| vec![node]));
                if is_last {
                    return one_each;
                }
            },
        };
        if list.is_empty() { one_each } else { vec![list] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_a_task_splits_sooner_during_a_shortage() {
        const EVERY: Duration = Duration::from_hours(20);
        let no_demand = Demand { is_work_wanted: false, is_turn_wanted: false };
        let splits = |hours_left, is_short| {
            let shortage = Some(Arc::new(AtomicBool::new(is_short)));
            let mut splitter = Splitter::in_order(Some(EVERY), false, shortage);
            splitter.every = Some((EVERY, Instant::now() + Duration::from_hours(hours_left)));
            splitter.notice(no_demand);
            splitter.is_due()
        };
        assert!(splits(18, true) && !splits(18, false), "2 hours after it did");
        assert!(!splits(20, true), "just after it did");
        assert!(splits(0, true) && splits(0, false));
    }
}
