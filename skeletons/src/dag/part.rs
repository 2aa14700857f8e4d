//! One PE's part of a run: its graph, its pool, and the results that its program wants. The life of
//! a run is that of a [group](ultramarine_group) whose digest is the graph's: so two runs of the
//! same graph are one, and a root that takes another's place joins what the others still compute.
//! What belongs to a graph is right for each run of it: a pure builder makes the same nodes, and
//! they have the same results.

use super::block::Block;
use super::error::DagError;
use super::graph::Graph;
use super::handles::NodeId;
use super::invitation::RunInvitation;
use super::messages::Outbox;
use super::picture::Computed;
use super::pool::{Pool, PoolEffect, PoolMessage, Shortage, Weighed};
use super::progress::Counts;
use super::value::{Value, error_of, failed};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll, Waker};
use std::time::Instant;
use ultramarine_group::{GroupId, Hosted, Member, Opening, Part};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::trace::TraceSpan;
use ultramarine_topology::Pe;

/// What one pool sends to another, as it arrives.
pub(super) type Told = PoolMessage<Weighed<Value>>;

/// See the [module](self).
pub(super) struct RunPart {
    /// Tells this graph from another of the same run, after a failure, or of one of the same name.
    pub(super) number: u64,
    pub(super) pool: Pool<Graph>,
    /// The results that the program on this PE wants, as far as they are there.
    delivered: BTreeMap<NodeId, Value>,
    /// Who waits for which of them.
    wakers: BTreeMap<NodeId, Vec<Waker>>,
    /// What this PE has computed, if the program wants a picture.
    pub(super) computed: Vec<Computed>,
    pub(super) counts: Counts,
    /// Whether to tell all PEs again how far the stream is that this PE's program consumes.
    must_tell_first: bool,
}

impl RunPart {
    /// This PE's part of the run of a graph; of a whole graph with its only block.
    pub(super) fn new(cx: &Context, graph: Graph, whole: Option<Block>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let limit = graph.options.memory;
        let mut pool = Pool::new(cx.pe(), Arc::new(graph), cx.threads(), limit);
        if let Some(block) = whole {
            pool.built(0, Arc::new(block));
        }
        RunPart {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            pool,
            delivered: BTreeMap::new(),
            wakers: BTreeMap::new(),
            computed: Vec::new(),
            counts: Counts::default(),
            must_tell_first: false,
        }
    }

    pub(super) fn graph(&self) -> &Arc<Graph> {
        self.pool.shape()
    }

    /// The name of a node's function, if this PE has its block.
    pub(super) fn name_of(&self, node: NodeId) -> &'static str {
        self.pool.block(node.block).map_or("?", |block| block.name(node.index))
    }

    fn poll_delivered(&mut self, node: NodeId, waker: &Waker) -> Poll<Result<Value, DagError>> {
        if let Some(result) = self.delivered.get(&node) {
            let error = error_of(result).cloned();
            return Poll::Ready(error.map_or_else(|| Ok(result.clone()), Err));
        }
        let known = self.wakers.entry(node).or_default();
        if !known.iter().any(|known| known.will_wake(waker)) {
            known.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Part for RunPart {
    type Invitation = RunInvitation;
    type Message = Told;
    /// In a box, since it is handed on several times for each node.
    type Effects = Box<Outbox>;
    type Error = DagError;

    fn begin(&mut self) {
        self.pool.start();
    }

    fn receive(&mut self, from: Pe, message: Told, is_current: bool) {
        match &message {
            // It is tried again in this opening.
            PoolMessage::Result(_, Weighed { result, .. })
                if !is_current && error_of(result).is_some() => {}
            _ => self.pool.receive(from, message),
        }
    }

    fn died(&mut self, dead: Pe) {
        self.pool.died(dead);
        // The PE that dies may not have passed it on.
        self.must_tell_first = true;
    }

    /// What this PE has asked for is asked for again, and what has failed is tried again.
    fn renew(&mut self, _: Opening) {
        self.counts.renew();
        let failed = |(_, result): &(_, &Value)| error_of(result).is_some();
        let failed = self.delivered.iter().filter(failed).map(|(node, _)| *node);
        let failed: Vec<NodeId> = failed.collect();
        failed.iter().for_each(|node| drop(self.delivered.remove(node)));
        self.pool.renew();
        failed.into_iter().for_each(|node| self.pool.want(node));
    }

    fn take_effects(&mut self) -> Box<Outbox> {
        let mut outbox = Box::new(Outbox::of(self.number, self.graph()));
        for effect in self.pool.take_effects() {
            match effect {
                PoolEffect::Compute(node) => outbox.ready.push(node),
                PoolEffect::Build(block) => outbox.unbuilt.push(block),
                PoolEffect::Send(to, message) => outbox.send(to, message),
                PoolEffect::Short(shortage) => outbox.shortage = Some(shortage),
                PoolEffect::Deliver(node, result) => {
                    self.delivered.insert(node, result);
                    outbox.wakers.extend(self.wakers.remove(&node).into_iter().flatten());
                }
            }
        }
        outbox.discarded.append(self.pool.take_discarded());
        if std::mem::take(&mut self.must_tell_first) {
            outbox.first = self.pool.first_kept();
        }
        let report_after = self.graph().options.report_after;
        outbox.report_after = report_after.filter(|_| self.counts.begin_report());
        outbox
    }
}

impl Hosted for RunPart {
    fn carry_out(cx: &Context, run: &Member<Self>, id: GroupId, outbox: Box<Outbox>) {
        outbox.carry_out(cx, id, run);
    }

    fn end(mut self) {
        warn_of(self.pool.take_shortage());
        self.wakers.into_values().flatten().for_each(Waker::wake);
    }
}

/// Tells the user that memory is too small, if it is.
pub(super) fn warn_of(shortage: Option<Shortage>) {
    if let Some(shortage) = shortage {
        tracing::warn!("{shortage}");
    }
}

/// Computes a node of this graph whose inputs are there. It began when the one before ended.
pub(super) fn compute(
    run: &Member<RunPart>,
    number: u64,
    node: NodeId,
    began: &mut Instant,
) -> Option<(GroupId, Box<Outbox>)> {
    let found = run.with(|id, part| {
        let find = |block: &Arc<Block>| {
            let inputs = block.inputs(node.index).map(|input| part.pool.result(input));
            let inputs: Option<Vec<Value>> = inputs.collect();
            Some((part.graph().clone(), block.clone(), inputs?))
        };
        (part.number == number).then(|| (id, part.pool.block(node.block).and_then(find)))
    });
    let (id, found) = found??;
    let Some((graph, block, inputs)) = found else {
        return run.act(|part| part.pool.skipped(node));
    };
    if graph.options.is_drawn {
        // What was sent in between is not the node's.
        *began = Instant::now();
    }
    let name = block.name(node.index);
    let failure = inputs.iter().find(|input| error_of(input).is_some());
    let result = failure.cloned().unwrap_or_else(|| {
        let _span = TraceSpan::begin(name);
        block.compute(node.index, &inputs).unwrap_or_else(failed)
    });
    let ended = Instant::now();
    let took = ended.duration_since(std::mem::replace(began, ended));
    let took_ns = took.as_nanos() as u64;
    let result = graph.weighed(result, took_ns);
    let result = graph.computed(node, name, result);
    run.act_in(|now, part| {
        if part.number != number {
            return;
        }
        part.counts.note_computed();
        if graph.options.is_drawn {
            part.computed.push(Computed { index: node.index, took_ns });
        }
        if now.opening > id.opening && error_of(&result.result).is_some() {
            // It has failed in the opening before, and may go well in this one.
            part.pool.skipped(node);
        } else {
            part.pool.computed(node, result);
        }
    })
}

/// Awaits the results of these nodes, which the program on this PE wants since this opening.
pub(super) async fn delivered(
    run: &Member<RunPart>,
    id: GroupId,
    nodes: &[NodeId],
) -> Result<Vec<Value>, DagError> {
    let mut values = Vec::with_capacity(nodes.len());
    for node in nodes {
        let poll = |task: &mut Task<'_>| {
            let polled = run.with_opening(id, |part| part.poll_delivered(*node, task.waker()));
            // It is not closed while a program waits for it, unless the job ends.
            let over = || Poll::Ready(Err(TaskError::ShuttingDown.into()));
            polled
                .map_or_else(|error| Poll::Ready(Err(error)), |polled| polled.unwrap_or_else(over))
        };
        values.push(std::future::poll_fn(poll).await?);
    }
    Ok(values)
}

/// The program has these results.
pub(super) fn forget_delivered(run: &Member<RunPart>, nodes: &[NodeId]) {
    let forget = |_, part: &mut RunPart| {
        nodes.iter().filter_map(|node| part.delivered.remove(node)).collect::<Vec<_>>()
    };
    // After the lock: the results are the user's.
    drop(run.with(forget));
}
