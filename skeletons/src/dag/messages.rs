//! What pools send to each other, as messages of the runtime, and what a part has to do.

use super::error::DagError;
use super::graph::Graph;
use super::handles::NodeId;
use super::part::{Part, tell};
use super::pe::Runs;
use super::pool::{Discarded, PoolMessage, Shortage};
use super::progress::report_later;
use super::runs::{RunId, RunName};
use super::value::{Value, failed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::{Distance, Pe};

/// What one pool sends to another.
pub(super) type Told = PoolMessage<Value>;

/// Sends another PE the invitation to a run, which may have been opened again meanwhile.
pub(super) type Inviter = Arc<dyn Fn(&Context, Pe, RunId) + Send + Sync>;

/// A message that holds no result. Several go together.
#[derive(Serialize, Deserialize)]
enum Small {
    Request(NodeId),
    Push(NodeId, u8),
    Load(u32),
}

/// What a part has to send and to do.
#[derive(Default)]
pub(super) struct Outbox {
    /// The run, and the number of its graph here, if there is anything to do.
    of: Option<(RunId, u64)>,
    small: BTreeMap<Pe, Vec<Small>>,
    results: Vec<(Pe, NodeId, Value)>,
    /// Nodes to compute.
    pub(super) ready: Vec<NodeId>,
    /// Blocks to build.
    pub(super) unbuilt: Vec<u32>,
    /// Who waits for what has come.
    pub(super) wakers: Vec<Waker>,
    /// What to drop.
    pub(super) discarded: Discarded<Graph>,
    /// What to say of the memory.
    pub(super) shortage: Option<Shortage>,
    /// When to report how many nodes this PE has computed, if that is due.
    pub(super) report_after: Option<Duration>,
}

impl Outbox {
    pub(super) fn of(id: RunId, number: u64) -> Self {
        Outbox { of: Some((id, number)), ..Outbox::default() }
    }

    pub(super) fn send(&mut self, to: Pe, message: Told) {
        let small = match message {
            PoolMessage::Result(node, result) => return self.results.push((to, node, result)),
            PoolMessage::Request(node) => Small::Request(node),
            PoolMessage::Push(node, pushes_left) => Small::Push(node, pushes_left),
            PoolMessage::Load(load) => Small::Load(load),
        };
        self.small.entry(to).or_default().push(small);
    }

    /// What is to be done after this.
    pub(super) fn append(&mut self, mut next: Outbox) {
        self.of = next.of.or(self.of);
        for (to, mut small) in next.small {
            self.small.entry(to).or_default().append(&mut small);
        }
        self.results.append(&mut next.results);
        self.ready.append(&mut next.ready);
        self.unbuilt.append(&mut next.unbuilt);
        self.wakers.append(&mut next.wakers);
        self.discarded.append(next.discarded);
        self.shortage = self.shortage.or(next.shortage);
        self.report_after = self.report_after.or(next.report_after);
    }

    /// Does all of it.
    pub(super) fn carry_out(self, cx: &Context, part: &Part) {
        let of = self.of;
        let ready = self.carry_out_but_compute(cx, part);
        if let Some((id, number)) = of {
            spawn_all(cx, (id.name, number), ready);
        }
    }

    /// Does all of it but for the nodes that are to be computed: these are returned.
    fn carry_out_but_compute(mut self, cx: &Context, part: &Part) -> Vec<NodeId> {
        let Some((id, number)) = self.of else { return Vec::new() };
        while let Some(block) = self.unbuilt.pop() {
            self.append(build(cx, id, part, block));
        }
        tell(self.shortage);
        if let Some(after) = self.report_after {
            report_later(cx, (id.name, number), after);
        }
        self.wakers.into_iter().for_each(Waker::wake);
        for (to, small) in self.small {
            let told = async |cx: Context, (id, from, small): (RunId, Pe, Vec<Small>)| {
                let message = |small| match small {
                    Small::Request(node) => PoolMessage::Request(node),
                    Small::Push(node, pushes_left) => PoolMessage::Push(node, pushes_left),
                    Small::Load(load) => PoolMessage::Load(load),
                };
                Runs::on(&cx).receive(&cx, id, from, small.into_iter().map(message));
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell(to, told, (id, cx.pe(), small));
        }
        for (to, node, result) in self.results {
            send_result(cx, to, (id, node), part, result);
        }
        self.ready
    }
}

/// Builds a block.
fn build(cx: &Context, id: RunId, part: &Part, number: u32) -> Outbox {
    let Some(graph) = part.graph() else { return Outbox::default() };
    match (graph.make)(number) {
        Ok(built) => part.act(|pool| pool.built(number, Arc::new(built.block))),
        Err(error) => {
            tell_failed(cx, id, error);
            Outbox::default()
        }
    }
}

/// Tells the PE whose program wants the results that there are none.
pub(super) fn tell_failed(cx: &Context, id: RunId, error: DagError) {
    let failed = async |cx: Context, (id, error): (RunId, DagError)| {
        let part = Runs::on(&cx).table().get(id.name);
        part.into_iter().for_each(|part| part.fail(id, error.clone()));
    };
    // If it cannot be told, the job ends.
    let _ = cx.tell(id.opening.root, failed, (id, error));
}

/// Makes a task of each node that is to be computed.
fn spawn_all(cx: &Context, (name, number): (RunName, u64), ready: Vec<NodeId>) {
    for node in ready {
        drop(cx.spawn(Distance::ZERO, compute_nodes, (name, number, node)));
    }
}

/// Computes a node whose inputs are there, and then others, for as long as any are ready.
#[expect(
    clippy::manual_async_fn,
    reason = "it spawns itself, so its type must say that it is Send"
)]
fn compute_nodes(
    cx: Context,
    (name, number, first): (RunName, u64, NodeId),
) -> impl Future<Output = ()> + Send {
    async move {
        let Some(part) = Runs::on(&cx).table().get(name) else { return };
        let mut next = Some(first);
        let mut began = Instant::now();
        while let Some(node) = next {
            let mut ready =
                part.compute(number, node, &mut began).carry_out_but_compute(&cx, &part);
            next = ready.pop();
            spawn_all(&cx, (name, number), ready);
            if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
                cx.yield_now().await;
                began = Instant::now();
            }
        }
    }
}

/// Sends a result to the pool of another PE.
fn send_result(cx: &Context, to: Pe, (id, node): (RunId, NodeId), part: &Part, result: Value) {
    if let Err(error) = result.send(cx, to, (id, node)) {
        let error = failed(DagError::unsendable(node, part.name_of(node), error));
        // If it cannot be sent, either, the job ends.
        let _ = error.send(cx, to, (id, node));
    }
}

/// Sends a result of type `T`.
pub(super) fn send_value<T: Portable + Sync>(
    result: Arc<T>,
    cx: &Context,
    to: Pe,
    (id, node): (RunId, NodeId),
) -> Result<(), TaskError> {
    let receive = async |cx: Context,
                         (id, from, node): (RunId, Pe, NodeId),
                         result: Result<Arc<T>, TaskError>| {
        let undecodable = |error| {
            let part = Runs::on(&cx).table().get(id.name);
            let name = part.as_ref().map_or("?", |part| part.name_of(node));
            failed(DagError::unsendable(node, name, error))
        };
        let result = result.map_or_else(undecodable, Value::shared);
        Runs::on(&cx).receive(&cx, id, from, [PoolMessage::Result(node, result)]);
    };
    cx.tell_with(to, receive, (id, cx.pe(), node), result)
}
