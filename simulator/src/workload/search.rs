//! A search of a UTS tree, as the search skeleton does it (`skeletons/src/search/task.rs`): a task
//! visits nodes depth first, and splits off half of what is left whenever no task waits to be
//! stolen. Each node is really generated, so the tree is the published one.

use super::{Activity, Batch, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use std::sync::Arc;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_skeletons::Frontier;
use ultramarine_topology::Distance;
use ultramarine_uts::{Children, Node, Uts};

/// See the [module](self). The value of the job is the number of nodes.
#[derive(Debug)]
pub struct SearchWorkload {
    /// The tree.
    pub tree: Uts,
    /// The number of its nodes.
    pub nodes: u64,
    /// What a visit costs, in nanoseconds.
    pub node_ns: u64,
    /// How many nodes a task visits before it looks whether work is wanted.
    pub nodes_at_once: u64,
    /// Whether its tasks are supervised.
    pub is_supervised: bool,
}

impl SearchWorkload {
    fn task(&self, nodes: &[Node]) -> (Bytes, SpawnMode) {
        let body: Vec<u8> = nodes.iter().flat_map(Node::to_bytes).collect();
        let place = SpawnPlace::Within(Distance::ONE);
        (body.into(), SpawnMode { is_supervised: self.is_supervised, place })
    }
}

impl Workload for Arc<SearchWorkload> {
    fn main(&self) -> Box<dyn Activity> {
        let tasks = Some(vec![self.task(&[self.tree.root()])]);
        Box::new(Batch { compute_ns: None, tasks, end: |cx: &TaskContext<'_>| cx.sum() })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let nodes =
            body.few.chunks(Node::BYTES).map(Node::from_bytes).collect::<Option<Vec<_>>>()?;
        Some(Box::new(Search {
            all: self.clone(),
            frontier: Frontier::new(nodes),
            found: 0,
            is_awaited: false,
        }))
    }

    fn expected(&self) -> u64 {
        self.nodes
    }

    fn polls(&self) -> bool {
        true
    }
}

struct Search {
    all: Arc<SearchWorkload>,
    frontier: Frontier<Children, Node>,
    found: u64,
    is_awaited: bool,
}

impl Activity for Search {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        let mut visited = 0;
        while visited < self.all.nodes_at_once
            && let Some(node) = self.frontier.next()
        {
            visited += 1;
            self.frontier.descend(self.all.tree.grow(node));
        }
        if visited > 0 && cx.is_work_wanted {
            let nodes = self.frontier.split();
            if !nodes.is_empty() {
                let (body, mode) = self.all.task(&nodes);
                cx.spawn(body, mode);
            }
        }
        self.found += visited;
        if visited > 0 {
            return Step::Compute(visited * self.all.node_ns);
        }
        if !std::mem::replace(&mut self.is_awaited, true) {
            return Step::Await;
        }
        Step::End(self.found + cx.sum(), None)
    }
}
