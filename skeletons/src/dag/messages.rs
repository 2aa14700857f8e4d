//! What pools send to each other, as messages of the runtime, and what a part has to do.

use super::error::DagError;
use super::graph::{Graph, weighed};
use super::handles::NodeId;
use super::part::{RunPart, compute, warn_of};
use super::pool::{Discarded, PoolMessage, Shortage, Weighed};
use super::progress::report_later;
use super::value::{Value, failed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use ultramarine_group::{GroupId, Groups, Member, Name, Site};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::{Distance, Pe};

/// A message that holds no result. Several go together.
#[derive(Serialize, Deserialize)]
enum Small {
    Request(NodeId),
    Push(NodeId, u8),
    Load(u32),
    Ask,
}

/// What a part has to send and to do.
#[derive(Default)]
pub(super) struct Outbox {
    /// The number of the graph here.
    number: u64,
    /// Whether a result is sent as one whose memory counts.
    is_limited: bool,
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
    /// What to tell all PEs: the first block of the stream that is not over.
    pub(super) first: Option<u32>,
}

impl Outbox {
    pub(super) fn of(number: u64, graph: &Graph) -> Self {
        Outbox { number, is_limited: graph.is_limited(), ..Outbox::default() }
    }

    pub(super) fn send(&mut self, to: Pe, message: PoolMessage<Value>) {
        let small = match message {
            PoolMessage::Result(node, result) => return self.results.push((to, node, result)),
            PoolMessage::Request(node) => Small::Request(node),
            PoolMessage::Push(node, pushes_left) => Small::Push(node, pushes_left),
            PoolMessage::Load(load) => Small::Load(load),
            PoolMessage::Ask => Small::Ask,
        };
        self.small.entry(to).or_default().push(small);
    }

    /// What is to be done after this.
    fn append(&mut self, mut next: Box<Outbox>) {
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
        self.first = self.first.or(next.first);
    }

    /// Does all of it.
    pub(super) fn carry_out(self: Box<Self>, cx: &Context, id: GroupId, run: &Member<RunPart>) {
        let number = self.number;
        let ready = self.carry_out_but_compute(cx, id, run);
        spawn_all(cx, (id.name, number), ready);
    }

    /// Does all of it but for the nodes that are to be computed: these are returned.
    fn carry_out_but_compute(
        mut self: Box<Self>,
        cx: &Context,
        id: GroupId,
        run: &Member<RunPart>,
    ) -> Vec<NodeId> {
        while let Some(block) = self.unbuilt.pop() {
            if let Some((_, next)) = build(cx, id, run, block) {
                self.append(next);
            }
        }
        warn_of(self.shortage);
        if let Some(after) = self.report_after {
            report_later(cx, (id.name, self.number), after);
        }
        if let Some(first) = self.first {
            tell_first(cx, id, first);
        }
        self.wakers.into_iter().for_each(Waker::wake);
        for (to, small) in self.small {
            let told = |cx: &Context, (id, from, small): (GroupId, Pe, Vec<Small>)| {
                let message = |small| match small {
                    Small::Request(node) => PoolMessage::Request(node),
                    Small::Push(node, pushes_left) => PoolMessage::Push(node, pushes_left),
                    Small::Load(load) => PoolMessage::Load(load),
                    Small::Ask => PoolMessage::Ask,
                };
                Groups::<RunPart>::on(cx).receive(id, from, small.into_iter().map(message));
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell_fn(to, told, (id, cx.pe(), small));
        }
        for (to, node, result) in self.results {
            let sent = Sent { id, from: cx.pe(), node, is_limited: self.is_limited };
            send_result(cx, to, sent, run, result);
        }
        self.ready
    }
}

/// Builds a block.
fn build(
    cx: &Context,
    id: GroupId,
    run: &Member<RunPart>,
    number: u32,
) -> Option<(GroupId, Box<Outbox>)> {
    let graph = run.with(|_, part| part.graph().clone())?;
    match (graph.make)(number) {
        Ok(built) => run.act(|part| part.pool.built(number, Arc::new(built.block))),
        Err(error) => {
            Groups::<RunPart>::on(cx).tell_failed(id, error);
            None
        }
    }
}

/// Tells all PEs that the blocks of a stream before this one are over: this PE has what they
/// returned.
pub(super) fn tell_first(cx: &Context, id: GroupId, first: u32) {
    let advance = |cx: &Context, (id, keeper, first): (GroupId, Pe, u32)| {
        if let Some(run) = Groups::<RunPart>::on(cx).get(id.name) {
            run.act_at_once(cx, |part| part.pool.advance(keeper, first));
        }
    };
    // If it cannot be told, the job ends.
    let _ = cx.tell_all_fn(advance, (id, cx.pe(), first));
}

/// Makes a task of each node that is to be computed.
fn spawn_all(cx: &Context, (name, number): (Name, u64), ready: Vec<NodeId>) {
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
    (name, number, first): (Name, u64, NodeId),
) -> impl Future<Output = ()> + Send {
    async move {
        let Some(run) = Groups::<RunPart>::on(&cx).get(name) else { return };
        let mut next = Some(first);
        let mut began = Instant::now();
        while let Some(node) = next {
            let Some((id, outbox)) = compute(&run, number, node, &mut began) else { return };
            let mut ready = outbox.carry_out_but_compute(&cx, id, &run);
            next = ready.pop();
            spawn_all(&cx, (name, number), ready);
            if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
                cx.yield_now().await;
                began = Instant::now();
            }
        }
    }
}

/// What goes with a result to the pool of another PE.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Sent {
    id: GroupId,
    from: Pe,
    node: NodeId,
    is_limited: bool,
}

/// Sends a result to the pool of another PE.
fn send_result(cx: &Context, to: Pe, sent: Sent, run: &Member<RunPart>, result: Value) {
    if let Err(error) = result.send(cx, to, sent) {
        let name = name_of(Some(run), sent.node);
        let error = failed(DagError::unsendable(sent.node, name, error));
        // If it cannot be sent, either, the job ends.
        let _ = error.send(cx, to, sent);
    }
}

/// The name of a node's function, if this PE has its block.
fn name_of(run: Option<&Member<RunPart>>, node: NodeId) -> &'static str {
    run.and_then(|run| run.with(|_, part| part.name_of(node))).unwrap_or("?")
}

/// Sends a result of type `T`.
pub(super) fn send_value<T: Portable + Sync>(
    result: Arc<T>,
    cx: &Context,
    to: Pe,
    sent: Sent,
) -> Result<(), TaskError> {
    let receive = |cx: &Context, sent: Sent, result: Result<Arc<T>, TaskError>| {
        let (groups, node) = (Groups::<RunPart>::on(cx), sent.node);
        let undecodable = |error| {
            let run = groups.get(sent.id.name);
            failed(DagError::unsendable(node, name_of(run.as_ref(), node), error))
        };
        let result = result.map_or_else(undecodable, Value::shared);
        // Not under the lock: the result is the user's.
        let result = if sent.is_limited { weighed(result) } else { Weighed::light(result) };
        groups.receive(sent.id, sent.from, [PoolMessage::Result(node, result)]);
    };
    cx.tell_with(to, receive, sent, result)
}
