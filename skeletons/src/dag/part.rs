//! One PE's part of a run: its graph, its pool, and the results that its program wants. What is to
//! be sent and done then is put into an [outbox](Outbox).

use super::block::Block;
use super::error::DagError;
use super::graph::Graph;
use super::handles::NodeId;
use super::messages::{Inviter, Outbox, Told};
use super::pool::{Pool, PoolEffect, Weighed};
use super::progress::Counts;
use super::runs::RunId;
use super::trace::{Notes, Page};
use super::value::{Value, error_of, failed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// See the [module](self).
pub(super) struct Part {
    /// Tells this part from another of a run of the same name.
    pub(super) number: u64,
    stage: Mutex<Stage>,
}

enum Stage {
    /// This PE has no graph yet. What has arrived for it waits.
    Early(Vec<(Pe, Told)>),
    Open(Box<Open>),
    /// There will be no results, for this reason.
    Failed(DagError),
    /// The run is over.
    Closed,
}

struct Open {
    id: RunId,
    inviter: Inviter,
    pool: Pool<Graph>,
    /// The results that the program on this PE wants, as far as they are there.
    delivered: BTreeMap<NodeId, Value>,
    /// Who waits for which of them.
    wakers: BTreeMap<NodeId, Vec<Waker>>,
    notes: Notes,
    counts: Counts,
}

impl Open {
    /// Puts what the pool wants into an outbox.
    fn outbox(&mut self) -> Outbox {
        let mut outbox = Outbox::of(self.id);
        for effect in self.pool.take_effects() {
            match effect {
                PoolEffect::Compute(node) => outbox.ready.push(node),
                PoolEffect::Build(block) => outbox.unbuilt.push(block),
                PoolEffect::Send(to, message) => outbox.send(to, message),
                PoolEffect::Deliver(node, result) => {
                    self.delivered.insert(node, result);
                    outbox.wakers.extend(self.wakers.remove(&node).into_iter().flatten());
                }
            }
        }
        outbox.discarded.append(self.pool.take_discarded());
        let report_after = self.pool.shape().options.report_after;
        outbox.report_after = report_after.filter(|_| self.counts.begin_report());
        outbox
    }
}

impl Part {
    /// A PE's part of a run that it has heard of just now.
    pub(super) fn early() -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Arc::new(Part { number, stage: Mutex::new(Stage::Early(Vec::new())) })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // No user code runs under the lock.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this PE needs no graph for it any more.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(*self.stage(), Stage::Early(_))
    }

    /// This PE has the graph now; a whole graph with its only block. The program has these results.
    pub(super) fn open(
        &self,
        cx: &Context,
        (id, inviter): (RunId, Inviter),
        graph: Graph,
        whole: Option<Block>,
        known: Vec<(NodeId, Weighed<Value>)>,
    ) -> Outbox {
        let supply = |pool: &mut Pool<Graph>| {
            known.into_iter().for_each(|(node, result)| pool.supply(node, result));
        };
        let readers = whole.as_ref().map(|block| graph.readers(cx.pe(), block));
        let limit = graph.options.memory;
        let mut pool = Pool::new(cx.pe(), Arc::new(graph), cx.threads(), limit);
        if let (Some(block), Some(readers)) = (whole, readers) {
            pool.built(0, Arc::new(block), readers);
        }
        let (delivered, wakers, counts) = Default::default();
        let notes = Notes::begin();
        let mut stage = self.stage();
        let Stage::Early(early) = &mut *stage else {
            // Another thread has opened it meanwhile, perhaps for an earlier opening.
            drop(stage);
            let mut outbox = self.renew(id);
            outbox.append(self.act(supply));
            return outbox;
        };
        let early = std::mem::take(early);
        // Before wanted nodes are begun.
        supply(&mut pool);
        let open = Open { id, inviter, pool, delivered, wakers, notes, counts };
        *stage = Stage::Open(Box::new(open));
        drop(stage);
        let dead = (0..cx.pes()).map(Pe::new).filter(|pe| cx.is_dead(*pe));
        let mut outbox = self.act(|pool| {
            dead.for_each(|pe| pool.died(pe));
            pool.start();
        });
        for (from, message) in early {
            outbox.append(self.receive(from, vec![message]));
        }
        outbox
    }

    /// The run was opened again: what this PE has asked for is asked for again.
    pub(super) fn renew(&self, id: RunId) -> Outbox {
        match &mut *self.stage() {
            Stage::Open(open) if open.id.opening < id.opening => {
                open.id = id;
                open.counts.renew();
            }
            _ => return Outbox::default(),
        }
        self.act(Pool::renew)
    }

    /// There will be no results.
    pub(super) fn fail(&self, error: DagError) {
        self.end(Stage::Failed(error));
    }

    /// The run is over.
    pub(super) fn close(&self) {
        self.end(Stage::Closed);
    }

    fn end(&self, stage: Stage) {
        let former = std::mem::replace(&mut *self.stage(), stage);
        // After the lock: the results are the user's.
        if let Stage::Open(open) = former {
            open.wakers.into_values().flatten().for_each(Waker::wake);
        }
    }

    /// What sends the invitation to other PEs, if this one has it, and to which opening.
    pub(super) fn inviter(&self) -> Option<(Inviter, RunId)> {
        match &*self.stage() {
            Stage::Open(open) => Some((open.inviter.clone(), open.id)),
            _ => None,
        }
    }

    /// Those from which something has come, if this PE has not been invited.
    pub(super) fn early_senders(&self) -> BTreeSet<Pe> {
        match &*self.stage() {
            Stage::Early(early) => early.iter().map(|(from, _)| *from).collect(),
            _ => BTreeSet::new(),
        }
    }

    pub(super) fn graph(&self) -> Option<Arc<Graph>> {
        match &*self.stage() {
            Stage::Open(open) => Some(open.pool.shape().clone()),
            _ => None,
        }
    }

    /// A block, if this PE has it.
    pub(super) fn block(&self, number: u32) -> Option<Arc<Block>> {
        match &*self.stage() {
            Stage::Open(open) => open.pool.block(number).cloned(),
            _ => None,
        }
    }

    /// The name of a node's function, if this PE has its block.
    pub(super) fn name_of(&self, node: NodeId) -> &'static str {
        self.block(node.block).map_or("?", |block| block.name(node.index))
    }

    /// What this PE has noted, from this span on.
    pub(super) fn page(&self, from: usize) -> Option<Page> {
        match &*self.stage() {
            Stage::Open(open) => Some(open.notes.page(from)),
            _ => None,
        }
    }

    /// The run, and how many nodes this PE has computed.
    pub(super) fn report(&self) -> Option<(RunId, u64)> {
        match &mut *self.stage() {
            Stage::Open(open) => Some((open.id, open.counts.report())),
            _ => None,
        }
    }

    /// A PE says how many nodes it has computed in a run.
    pub(super) fn note_report(&self, id: RunId, from: Pe, computed: u64) {
        match &mut *self.stage() {
            Stage::Open(open) if open.id == id => open.counts.note_report(from, computed),
            _ => {}
        }
    }

    /// How many nodes these PEs have computed, as far as they have said so.
    pub(super) fn computed(&self, pes: impl Fn(Pe) -> bool) -> u64 {
        match &*self.stage() {
            Stage::Open(open) => open.counts.of(pes),
            _ => 0,
        }
    }

    /// Has the pool do something.
    pub(super) fn act(&self, act: impl FnOnce(&mut Pool<Graph>)) -> Outbox {
        match &mut *self.stage() {
            Stage::Open(open) => {
                act(&mut open.pool);
                open.outbox()
            }
            _ => Outbox::default(),
        }
    }

    /// Messages of another pool have arrived.
    pub(super) fn receive(&self, from: Pe, messages: Vec<Told>) -> Outbox {
        let graph = match &mut *self.stage() {
            Stage::Early(early) => {
                early.extend(messages.into_iter().map(|message| (from, message)));
                return Outbox::default();
            }
            Stage::Open(open) => open.pool.shape().clone(),
            Stage::Failed(_) | Stage::Closed => return Outbox::default(),
        };
        // Outside the lock: the results are the user's.
        let weighed = |message: Told| message.map(|result| graph.weighed(result, 0));
        let messages: Vec<_> = messages.into_iter().map(weighed).collect();
        self.act(|pool| messages.into_iter().for_each(|message| pool.receive(from, message)))
    }

    /// Computes a node whose inputs are there. It began when the one before ended.
    pub(super) fn compute(&self, node: NodeId, began: &mut Instant) -> Outbox {
        let found = match &*self.stage() {
            Stage::Open(open) => open.pool.block(node.block).and_then(|block| {
                let inputs = block.inputs(node.index).map(|input| open.pool.result(input));
                let inputs: Option<Vec<Value>> = inputs.collect();
                Some((open.pool.shape().clone(), block.clone(), inputs?))
            }),
            _ => return Outbox::default(),
        };
        let Some((graph, block, inputs)) = found else {
            return self.act(|pool| pool.skipped(node));
        };
        if graph.options.is_traced {
            // What was sent in between is not the node's.
            *began = Instant::now();
        }
        let result = match inputs.iter().find(|input| error_of(input).is_some()) {
            Some(failed) => failed.clone(),
            None => block.compute(node.index, &inputs).unwrap_or_else(failed),
        };
        let ended = Instant::now();
        let began = std::mem::replace(began, ended);
        let result = graph.weighed(result, ended.duration_since(began).as_nanos() as u64);
        let name = block.name(node.index);
        let result = graph.computed(node, name, result);
        match &mut *self.stage() {
            Stage::Open(open) => {
                open.counts.note_computed();
                if graph.options.is_traced {
                    open.notes.note(node, name, began..ended);
                }
                open.pool.computed(node, result);
                open.outbox()
            }
            _ => Outbox::default(),
        }
    }

    /// Awaits the results of these nodes, which the program on this PE wants.
    pub(super) async fn delivered(&self, nodes: &[NodeId]) -> Result<Vec<Value>, DagError> {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            values
                .push(std::future::poll_fn(|task| self.poll_delivered(*node, task.waker())).await?);
        }
        Ok(values)
    }

    fn poll_delivered(&self, node: NodeId, waker: &Waker) -> Poll<Result<Value, DagError>> {
        match &mut *self.stage() {
            Stage::Failed(error) => Poll::Ready(Err(error.clone())),
            Stage::Open(open) => {
                if let Some(result) = open.delivered.get(&node) {
                    let error = error_of(result).cloned();
                    return Poll::Ready(error.map_or_else(|| Ok(result.clone()), Err));
                }
                let known = open.wakers.entry(node).or_default();
                if !known.iter().any(|known| known.will_wake(waker)) {
                    known.push(waker.clone());
                }
                Poll::Pending
            }
            // It is not closed while a program waits for it, unless the job ends.
            Stage::Early(_) | Stage::Closed => Poll::Ready(Err(TaskError::ShuttingDown.into())),
        }
    }

    /// The program has these results.
    pub(super) fn forget_delivered(&self, nodes: &[NodeId]) {
        let mut forgotten = Vec::new();
        if let Stage::Open(open) = &mut *self.stage() {
            forgotten.extend(nodes.iter().filter_map(|node| open.delivered.remove(node)));
        }
        // After the lock: the results are the user's.
        drop(forgotten);
    }
}
