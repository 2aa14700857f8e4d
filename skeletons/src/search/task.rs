//! The loop that visits nodes and splits off tasks, the same for every kind of search: it must
//! never know what is looked for.

use super::frontier::Frontier;
use super::{Splitting, Tree};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Key, Portable, Shared};
use ultramarine_topology::Distance;

/// Where a search goes on from a node.
pub(super) enum Onward {
    /// To its children.
    Down,
    /// To its next sibling.
    Across,
    /// To what comes after all of its siblings, as far as that is known.
    Up,
}

/// What is done with the nodes.
pub(super) trait Kind<T: Tree>: Stateless {
    /// What comes out.
    type Found: Portable;
    /// What a visit knows beside the node.
    type Desk: Send + Sync;

    /// Before a task's first visit.
    fn begin(self, cx: &Context, key: Key) -> (Self::Desk, Self::Found);
    /// Looks at a node.
    fn visit(self, desk: &Self::Desk, tree: &T, node: &T::Node, found: &mut Self::Found) -> Onward;
    /// Adds what another task has found.
    fn merge(self, found: &mut Self::Found, other: Self::Found);
    /// When all of the task's nodes have been visited.
    fn end(self, _: &Self::Desk, _: &mut Self::Found) {}
}

/// A part of a search: nodes whose subtrees are to be searched.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Tree")]
pub(super) struct Part<T: Tree> {
    tree: Shared<T>,
    /// Under which the PEs share what they share.
    key: Key,
    splitting: Splitting,
    /// Of all of these nodes, for depth-bounded splitting.
    depth: u32,
    nodes: Vec<T::Node>,
}

type Ending<R> = Pin<Box<dyn std::future::Future<Output = Result<R, TaskError>> + Send>>;

/// Searches the tree below `root`; the PEs share what they share under `key`.
pub(super) async fn search<T, K>(
    cx: &Context,
    key: Key,
    splitting: Splitting,
    kind: K,
    tree: T,
    root: T::Node,
) -> Result<K::Found, TaskError>
where
    T: Tree,
    K: Kind<T>,
{
    let part = Part { tree: cx.share(tree), key, splitting, depth: 0, nodes: vec![root] };
    // A task like the others: the caller only waits, and may be the main task, which runs beside
    // the workers if it has to.
    let visit = move |cx, part| visit_part::<T, K>(cx, kind, part);
    AbortOnDrop::new(cx.spawn(Distance::ZERO, visit, part)).await?
}

/// Has all PEs forget what they shared for a search, at its end or when it is dropped; home at
/// once: then what its tasks still have to say is not passed on.
pub(super) struct ForgetsAtEnd<'a>(pub(super) &'a Context, pub(super) Key);

impl Drop for ForgetsAtEnd<'_> {
    fn drop(&mut self) {
        let ForgetsAtEnd(cx, key) = *self;
        cx.forget(key);
        // A job that is ending forgets all.
        let _ = cx.tell_all(async |cx: Context, key| cx.forget(key), key);
    }
}

fn visit_part<T, K>(cx: Context, kind: K, part: Part<T>) -> Ending<K::Found>
where
    T: Tree,
    K: Kind<T>,
{
    let visit = async move {
        let Part { tree, key, splitting, depth, nodes } = part;
        let (desk, mut found) = kind.begin(&cx, key);
        let mut parts = Vec::new();
        let mut part_off = |nodes: Vec<T::Node>| {
            let task = move |cx, part| visit_part::<T, K>(cx, kind, part);
            let depth = depth.saturating_add(1);
            let part = Part { tree: tree.clone(), key, splitting, depth, nodes };
            parts.push(AbortOnDrop::new(cx.spawn(Distance::ONE, task, part)));
        };
        let mut frontier = Frontier::new(nodes);
        let children = |node| tree.children(node);
        let mut visit = |node: &T::Node| kind.visit(&desk, &tree, node, &mut found);
        let mut splitter = Splitter { splitting, depth, visited: 0, is_work_wanted: false };
        while go_on(&cx, &mut splitter, &mut frontier, children, &mut visit, &mut part_off) {
            // Others have something to say: of a better node, or that they need the tree.
            cx.yield_now().await;
        }
        for part in parts {
            kind.merge(&mut found, part.await??);
        }
        kind.end(&desk, &mut found);
        Ok(found)
    };
    visit.boxed()
}

/// Decides what is split off.
struct Splitter {
    splitting: Splitting,
    /// Of the nodes that the task began with.
    depth: u32,
    /// Nodes since the last split by budget.
    visited: u64,
    is_work_wanted: bool,
}

impl Splitter {
    /// Whether each child becomes a task.
    fn splits_children(&self) -> bool {
        matches!(self.splitting, Splitting::Depth(limit) if self.depth < limit)
    }

    /// Whether it is time for a part of what is left to become tasks. To be asked at each node.
    fn is_due(&mut self) -> bool {
        match self.splitting {
            Splitting::Depth(_) => false,
            Splitting::Budget(limit) => {
                self.visited += 1;
                self.visited >= limit
            }
            Splitting::StealDriven => self.is_work_wanted,
        }
    }

    /// What becomes tasks now, of what is left.
    #[cold]
    fn take<I: Iterator<Item = N>, N>(&mut self, frontier: &mut Frontier<I, N>) -> Vec<Vec<N>> {
        (self.visited, self.is_work_wanted) = (0, false);
        let half = |nodes: Vec<N>| if nodes.is_empty() { Vec::new() } else { vec![nodes] };
        match self.splitting {
            Splitting::Budget(_) => {
                frontier.take_highest().into_iter().map(|node| vec![node]).collect()
            }
            Splitting::StealDriven => half(frontier.split()),
            Splitting::Depth(_) => Vec::new(),
        }
    }
}

/// Visits nodes until there are no more, or until others should have a turn (`true`). Apart from
/// what may wait, so that it is a plain loop: within it the nodes of UTS took a tenth longer.
fn go_on<N, I: Iterator<Item = N>>(
    cx: &Context,
    splitter: &mut Splitter,
    frontier: &mut Frontier<I, N>,
    children: impl Fn(N) -> I,
    visit: &mut impl FnMut(&N) -> Onward,
    part_off: &mut impl FnMut(Vec<N>),
) -> bool {
    let splits_children = splitter.splits_children();
    while let Some(node) = frontier.next() {
        let demand = cx.poll_runtime();
        splitter.is_work_wanted |= demand.is_some_and(|demand| demand.is_work_wanted);
        match visit(&node) {
            Onward::Down if splits_children => {
                children(node).for_each(|child| part_off(vec![child]));
            }
            Onward::Down => {
                if splitter.is_due() {
                    splitter.take(frontier).into_iter().for_each(&mut *part_off);
                }
                frontier.descend(children(node));
            }
            Onward::Across => {}
            Onward::Up => frontier.leave_siblings(),
        }
        if demand.is_some_and(|demand| demand.is_turn_wanted) {
            return true;
        }
    }
    false
}
