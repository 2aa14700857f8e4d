//! One PE's part of a run: its graph, its pool, and the results that its program wants. What is to
//! be sent and done then is put into an [outbox](Outbox).

use super::block::Block;
use super::error::DagError;
use super::graph::Graph;
use super::handles::NodeId;
use super::messages::{Inviter, Outbox, Told};
use super::pool::{Pool, PoolEffect, PoolMessage, Shortage, Weighed};
use super::progress::Counts;
use super::runs::{Opening, RunId};
use super::trace::{Notes, Page};
use super::value::{Value, error_of, failed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};
use std::time::Instant;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// See the [module](self).
pub(super) struct Part(Mutex<State>);

struct State {
    stage: Stage,
    /// Why there are no results of an opening, nor of those before.
    failure: Option<(Opening, DagError)>,
}

enum Stage {
    /// This PE has no graph yet. What has arrived for it waits.
    Early(Vec<(RunId, Pe, Told)>),
    Open(Box<Open>),
    /// The run has failed, or is over.
    Closed,
}

struct Open {
    /// Tells this graph from another of the same run, after a failure, or of one of the same name.
    number: u64,
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
        let mut outbox = Outbox::of(self.id, self.number);
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
        let report_after = self.pool.shape().options.report_after;
        outbox.report_after = report_after.filter(|_| self.counts.begin_report());
        outbox
    }
}

/// Tells the user that memory is too small, if it is.
pub(super) fn tell(shortage: Option<Shortage>) {
    if let Some(shortage) = shortage {
        tracing::warn!("{shortage}");
    }
}

impl Part {
    /// A PE's part of a run that it has heard of just now.
    pub(super) fn early() -> Arc<Self> {
        Arc::new(Part(Mutex::new(State { stage: Stage::Early(Vec::new()), failure: None })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this PE needs no graph for it any more.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state().stage, Stage::Early(_))
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
        static LAST: AtomicU64 = AtomicU64::new(0);
        let supply = |pool: &mut Pool<Graph>| {
            known.into_iter().for_each(|(node, result)| pool.supply(node, result));
        };
        let limit = graph.options.memory;
        let mut pool = Pool::new(cx.pe(), Arc::new(graph), cx.threads(), limit);
        if let Some(block) = whole {
            pool.built(0, Arc::new(block));
        }
        let (delivered, wakers, counts) = Default::default();
        let notes = Notes::begin();
        let mut state = self.state();
        let Stage::Early(early) = &mut state.stage else {
            // Another thread has opened it meanwhile, perhaps for an earlier opening.
            drop(state);
            let mut outbox = self.renew(id);
            outbox.append(self.act(supply));
            return outbox;
        };
        let early = std::mem::take(early);
        // Before wanted nodes are begun.
        supply(&mut pool);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let open = Open { number, id, inviter, pool, delivered, wakers, notes, counts };
        state.stage = Stage::Open(Box::new(open));
        drop(state);
        let dead = (0..cx.pes()).map(Pe::new).filter(|pe| cx.is_dead(*pe));
        let mut outbox = self.act(|pool| {
            dead.for_each(|pe| pool.died(pe));
            pool.start();
        });
        for (id, from, message) in early {
            outbox.append(self.receive(id, from, vec![message]));
        }
        outbox
    }

    /// If the run was opened again: what this PE has asked for is asked for again, and what has
    /// failed is tried again.
    pub(super) fn renew(&self, id: RunId) -> Outbox {
        let State { stage, failure } = &mut *self.state();
        match stage {
            Stage::Open(open) if open.id.opening < id.opening => {
                open.id = id;
                open.counts.renew();
                let failed = |(_, result): &(_, &Value)| error_of(result).is_some();
                let failed = open.delivered.iter().filter(failed).map(|(node, _)| *node);
                let failed: Vec<NodeId> = failed.collect();
                failed.iter().for_each(|node| drop(open.delivered.remove(node)));
                open.pool.renew();
                failed.into_iter().for_each(|node| open.pool.want(node));
                open.outbox()
            }
            Stage::Closed if failure.as_ref().is_some_and(|(last, _)| *last < id.opening) => {
                *stage = Stage::Early(Vec::new());
                Outbox::default()
            }
            _ => Outbox::default(),
        }
    }

    /// There will be no results of this opening.
    pub(super) fn fail(&self, id: RunId, error: DagError) {
        let mut state = self.state();
        // What is late was told of an opening before, and may go well in this one.
        if matches!(&state.stage, Stage::Open(open) if open.id.opening == id.opening) {
            state.failure = Some((id.opening, error));
            Self::end(state);
        }
    }

    /// The run is over.
    pub(super) fn close(&self) {
        Self::end(self.state());
    }

    fn end(mut state: MutexGuard<'_, State>) {
        let former = std::mem::replace(&mut state.stage, Stage::Closed);
        // After the lock: the results are the user's.
        drop(state);
        if let Stage::Open(mut open) = former {
            tell(open.pool.take_shortage());
            open.wakers.into_values().flatten().for_each(Waker::wake);
        }
    }

    /// The program on this PE needs the run no more.
    pub(super) fn tell_shortage(&self) {
        let shortage = match &mut self.state().stage {
            Stage::Open(open) => open.pool.take_shortage(),
            _ => None,
        };
        tell(shortage);
    }

    /// What sends the invitation to other PEs, if this one has it, and to which opening.
    pub(super) fn inviter(&self) -> Option<(Inviter, RunId)> {
        match &self.state().stage {
            Stage::Open(open) => Some((open.inviter.clone(), open.id)),
            _ => None,
        }
    }

    /// Those from which something has come, if this PE has not been invited.
    pub(super) fn early_senders(&self) -> BTreeSet<Pe> {
        match &self.state().stage {
            Stage::Early(early) => early.iter().map(|(_, from, _)| *from).collect(),
            _ => BTreeSet::new(),
        }
    }

    pub(super) fn graph(&self) -> Option<Arc<Graph>> {
        match &self.state().stage {
            Stage::Open(open) => Some(open.pool.shape().clone()),
            _ => None,
        }
    }

    /// A block, if this PE has it.
    pub(super) fn block(&self, number: u32) -> Option<Arc<Block>> {
        match &self.state().stage {
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
        match &self.state().stage {
            Stage::Open(open) => Some(open.notes.page(from)),
            _ => None,
        }
    }

    /// The run, and how many nodes of this graph the PE has computed.
    pub(super) fn report(&self, number: u64) -> Option<(RunId, u64)> {
        match &mut self.state().stage {
            Stage::Open(open) if open.number == number => Some((open.id, open.counts.report())),
            _ => None,
        }
    }

    /// A PE says how many nodes it has computed in a run.
    pub(super) fn note_report(&self, id: RunId, from: Pe, computed: u64) {
        match &mut self.state().stage {
            Stage::Open(open) if open.id == id => open.counts.note_report(from, computed),
            _ => {}
        }
    }

    /// How many nodes these PEs have computed, as far as they have said so.
    pub(super) fn computed(&self, pes: impl Fn(Pe) -> bool) -> u64 {
        match &self.state().stage {
            Stage::Open(open) => open.counts.of(pes),
            _ => 0,
        }
    }

    /// Has the pool do something.
    pub(super) fn act(&self, act: impl FnOnce(&mut Pool<Graph>)) -> Outbox {
        match &mut self.state().stage {
            Stage::Open(open) => {
                act(&mut open.pool);
                open.outbox()
            }
            _ => Outbox::default(),
        }
    }

    /// Messages of another pool have arrived, which were sent in this opening.
    pub(super) fn receive(&self, id: RunId, from: Pe, messages: Vec<Told>) -> Outbox {
        let graph = match &mut self.state().stage {
            Stage::Early(early) => {
                early.extend(messages.into_iter().map(|message| (id, from, message)));
                return Outbox::default();
            }
            Stage::Open(open) => open.pool.shape().clone(),
            Stage::Closed => return Outbox::default(),
        };
        // Outside the lock: the results are the user's.
        let weighed = |message: Told| message.map(|result| graph.weighed(result, 0));
        let messages: Vec<_> = messages.into_iter().map(weighed).collect();
        let Stage::Open(open) = &mut self.state().stage else { return Outbox::default() };
        for message in messages {
            match &message {
                // It is tried again in this opening.
                PoolMessage::Result(_, Weighed { result, .. })
                    if id.opening < open.id.opening && error_of(result).is_some() => {}
                _ => open.pool.receive(from, message),
            }
        }
        open.outbox()
    }

    /// Computes a node of this graph whose inputs are there. It began when the one before ended.
    pub(super) fn compute(&self, number: u64, node: NodeId, began: &mut Instant) -> Outbox {
        let (found, opening) = match &self.state().stage {
            Stage::Open(open) if open.number == number => {
                let find = |block: &Arc<Block>| {
                    let inputs = block.inputs(node.index).map(|input| open.pool.result(input));
                    let inputs: Option<Vec<Value>> = inputs.collect();
                    Some((open.pool.shape().clone(), block.clone(), inputs?))
                };
                (open.pool.block(node.block).and_then(find), open.id.opening)
            }
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
        match &mut self.state().stage {
            Stage::Open(open) if open.number == number => {
                open.counts.note_computed();
                if graph.options.is_traced {
                    open.notes.note(node, name, began..ended);
                }
                if open.id.opening > opening && error_of(&result.result).is_some() {
                    // It has failed in the opening before, and may go well in this one.
                    open.pool.skipped(node);
                } else {
                    open.pool.computed(node, result);
                }
                open.outbox()
            }
            _ => Outbox::default(),
        }
    }

    /// Awaits the results of these nodes, which the program on this PE wants since this opening.
    pub(super) async fn delivered(
        &self,
        id: RunId,
        nodes: &[NodeId],
    ) -> Result<Vec<Value>, DagError> {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            let poll = |task: &mut Task<'_>| self.poll_delivered(id, *node, task.waker());
            values.push(std::future::poll_fn(poll).await?);
        }
        Ok(values)
    }

    fn poll_delivered(
        &self,
        id: RunId,
        node: NodeId,
        waker: &Waker,
    ) -> Poll<Result<Value, DagError>> {
        let State { stage, failure } = &mut *self.state();
        if let Some((_, error)) = failure.as_ref().filter(|(last, _)| *last >= id.opening) {
            return Poll::Ready(Err(error.clone()));
        }
        match stage {
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
        if let Stage::Open(open) = &mut self.state().stage {
            forgotten.extend(nodes.iter().filter_map(|node| open.delivered.remove(node)));
        }
        // After the lock: the results are the user's.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::runs::RunName;

    #[test]
    fn a_part_that_has_not_begun_keeps_what_arrives_and_knows_nothing() {
        let name = RunName { digest: 7, key: None };
        let id = RunId { name, opening: Opening { attempt: 1, root: Pe::ROOT, number: 1 } };
        let part = Part::early();
        part.receive(id, Pe::new(3), vec![PoolMessage::Load(1), PoolMessage::Load(2)]);
        part.note_report(id, Pe::new(3), 5);
        assert_eq!(part.early_senders(), BTreeSet::from([Pe::new(3)]));
        assert_eq!((part.has_begun(), part.computed(|_| true), part.report(0)), (false, 0, None));
        assert!(part.inviter().is_none() && part.graph().is_none() && part.page(0).is_none());
        assert_eq!(part.name_of(NodeId { block: 0, index: 0 }), "?");
        part.close();
        assert!(part.has_begun() && part.early_senders().is_empty());
        assert_eq!(part.computed(|_| true), 0);
    }
}
