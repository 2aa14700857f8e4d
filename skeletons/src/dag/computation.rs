//! One PE's part of a run: carries out what its [pool](super::pool) wants.

use super::error::DagError;
use super::graph::{Graph, Outcome, Weighed};
use super::handles::NodeId;
use super::kind::{ResultType, Value, bytes_of};
use super::pool::{Pool, PoolEffect, PoolEffects, PoolMessage, Shape};
use super::runs::{Joined, RunId, RunName, RunTable};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::{Distance, Pe};

/// What one pool sends to another.
type Told = PoolMessage<Outcome>;

/// Sends another PE the invitation to a run.
pub(super) type Inviter = Arc<dyn Fn(&Context, Pe) + Send + Sync>;

/// See the [module](self).
pub(super) struct Computation {
    /// Tells this part from another of a run of the same name.
    number: u64,
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
    graph: Arc<Graph>,
    inviter: Inviter,
    pool: Pool<Weighed>,
    /// The results that the program on this PE wants, as far as they are there.
    delivered: BTreeMap<NodeId, Outcome>,
    wakers: Vec<Waker>,
}

impl Computation {
    /// A PE's part of a run that it has heard of just now.
    pub(super) fn early() -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Arc::new(Computation { number, stage: Mutex::new(Stage::Early(Vec::new())) })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // No user code runs under the lock.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this PE needs no graph for it any more.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(*self.stage(), Stage::Early(_))
    }

    /// This PE has the graph now.
    pub(super) fn open(&self, cx: &Context, id: RunId, graph: Graph, inviter: Inviter) {
        let pool = Pool::new(cx.pe(), cx.threads(), graph.memory);
        let (delivered, wakers) = Default::default();
        let open = Open { id, graph: Arc::new(graph), inviter, pool, delivered, wakers };
        let early = match &mut *self.stage() {
            stage @ Stage::Early(_) => std::mem::replace(stage, Stage::Open(Box::new(open))),
            _ => Stage::Closed,
        };
        // Or another thread has opened it meanwhile, perhaps for an earlier opening.
        let Stage::Early(early) = early else { return self.renew(cx, id) };
        let dead = (0..cx.pes()).map(Pe::new).filter(|pe| cx.is_dead(*pe));
        self.act(cx, |pool, graph, out| {
            dead.for_each(|pe| pool.died(graph, pe, out));
            pool.start(graph, out);
        });
        for (from, message) in early {
            self.receive(cx, id, from, vec![message]);
        }
    }

    /// The run was opened again: what this PE has asked for is asked for again.
    pub(super) fn renew(&self, cx: &Context, id: RunId) {
        match &mut *self.stage() {
            Stage::Open(open) if open.id.opening < id.opening => open.id = id,
            _ => return,
        }
        self.act(cx, Pool::renew);
    }

    pub(super) fn fail(&self, error: DagError) {
        let former = std::mem::replace(&mut *self.stage(), Stage::Failed(error));
        if let Stage::Open(open) = former {
            open.wakers.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn close(&self) {
        let former = std::mem::replace(&mut *self.stage(), Stage::Closed);
        // After the lock: the results are the user's.
        if let Stage::Open(open) = former {
            open.wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Sends another PE the invitation, if this one has it.
    fn pass_on(&self, cx: &Context, to: Pe) {
        let inviter = match &*self.stage() {
            Stage::Open(open) => open.inviter.clone(),
            _ => return,
        };
        inviter(cx, to);
    }

    /// If this PE has not been invited: asks those from which something has come. After a death the
    /// invitation may be lost.
    fn ask_for_invitation(&self, cx: &Context, id: RunId) {
        let senders: BTreeSet<Pe> = match &*self.stage() {
            Stage::Early(early) => early.iter().map(|(from, _)| *from).collect(),
            _ => return,
        };
        for sender in senders.into_iter().filter(|sender| !cx.is_dead(*sender)) {
            let asked = async |cx: Context, (id, from): (RunId, Pe)| {
                let part = Runs::on(&cx).table().get(id.name);
                part.into_iter().for_each(|part| part.pass_on(&cx, from));
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell(sender, asked, (id, cx.pe()));
        }
    }

    /// The program on this PE wants these nodes.
    pub(super) fn want(&self, cx: &Context, nodes: &[NodeId]) {
        self.act(cx, |pool, graph, out| {
            nodes.iter().for_each(|node| pool.want(graph, *node, out));
        });
    }

    pub(super) fn died(&self, cx: &Context, pe: Pe) {
        self.act(cx, |pool, graph, out| pool.died(graph, pe, out));
    }

    /// Messages of another pool have arrived.
    fn receive(&self, cx: &Context, id: RunId, from: Pe, messages: Vec<Told>) {
        let graph = match &mut *self.stage() {
            Stage::Early(early) => {
                early.extend(messages.into_iter().map(|message| (from, message)));
                None
            }
            Stage::Open(open) => Some((open.graph.clone(), messages)),
            Stage::Failed(_) | Stage::Closed => return,
        };
        let Some((graph, messages)) = graph else {
            if cx.dead() > 0 {
                self.ask_for_invitation(cx, id);
            }
            return;
        };
        let weighed = |message| match message {
            PoolMessage::Request(node) => PoolMessage::Request(node),
            PoolMessage::Result(node, outcome) => {
                PoolMessage::Result(node, graph.weighed(node, outcome))
            }
        };
        let messages: Vec<_> = messages.into_iter().map(weighed).collect();
        self.act(cx, |pool, graph, out| {
            for message in messages {
                pool.receive(graph, from, message, out);
            }
        });
    }

    /// The results of the wanted nodes, once they are all there.
    pub(super) fn poll_delivered(
        &self,
        wanted: &[NodeId],
        waker: &Waker,
    ) -> Poll<Result<Vec<Value>, DagError>> {
        match &mut *self.stage() {
            Stage::Failed(error) => Poll::Ready(Err(error.clone())),
            Stage::Open(open) => {
                let outcome = |node: &NodeId| open.delivered.get(node).cloned();
                if open.delivered.len() == open.graph.different {
                    let all: Result<_, Arc<DagError>> = wanted.iter().filter_map(outcome).collect();
                    return Poll::Ready(all.map_err(Arc::unwrap_or_clone));
                }
                if !open.wakers.iter().any(|known| known.will_wake(waker)) {
                    open.wakers.push(waker.clone());
                }
                Poll::Pending
            }
            // It is not closed while a program waits for it, unless the job ends.
            Stage::Early(_) | Stage::Closed => Poll::Ready(Err(TaskError::ShuttingDown.into())),
        }
    }

    /// Has the pool do something, and carries out what it wants.
    fn act(
        &self,
        cx: &Context,
        act: impl FnOnce(&mut Pool<Weighed>, &Graph, &mut PoolEffects<Weighed>),
    ) {
        let ready = self.advance(cx, act);
        self.spawn_all(cx, ready);
    }

    /// The same, but for the nodes that are to be computed now: these are returned.
    fn advance(
        &self,
        cx: &Context,
        act: impl FnOnce(&mut Pool<Weighed>, &Graph, &mut PoolEffects<Weighed>),
    ) -> Vec<NodeId> {
        let mut effects = PoolEffects::new();
        let mut stage = self.stage();
        let Stage::Open(open) = &mut *stage else { return Vec::new() };
        act(&mut open.pool, &open.graph, &mut effects);
        let (id, graph) = (open.id, open.graph.clone());
        let (mut ready, mut results, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        let mut requests: BTreeMap<Pe, Vec<NodeId>> = BTreeMap::new();
        for effect in effects {
            match effect {
                PoolEffect::Compute(node) => ready.push(node),
                PoolEffect::Send(to, PoolMessage::Request(node)) => {
                    requests.entry(to).or_default().push(node);
                }
                PoolEffect::Send(to, PoolMessage::Result(node, result)) => {
                    results.push((to, node, result.outcome));
                }
                PoolEffect::Deliver(node, result) => {
                    open.delivered.insert(node, result.outcome);
                    wakers.append(&mut open.wakers);
                }
            }
        }
        let discarded = open.pool.take_discarded();
        drop(stage);
        drop(discarded);
        wakers.into_iter().for_each(Waker::wake);
        for (to, nodes) in requests {
            let requested = async |cx: Context, (id, from, nodes): (RunId, Pe, Vec<NodeId>)| {
                let requests = nodes.into_iter().map(PoolMessage::Request);
                Runs::on(&cx).receive(&cx, id, from, requests);
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell(to, requested, (id, cx.pe(), nodes));
        }
        for (to, node, outcome) in results {
            send_result(cx, to, (id, node), &graph, outcome);
        }
        ready
    }

    /// Makes a task of each node that is to be computed.
    fn spawn_all(&self, cx: &Context, ready: Vec<NodeId>) {
        let name = match &*self.stage() {
            Stage::Open(open) if !ready.is_empty() => open.id.name,
            _ => return,
        };
        for node in ready {
            drop(cx.spawn(Distance::ZERO, compute_nodes, (name, self.number, node)));
        }
    }

    /// Computes a node whose inputs are there. Returns those that are to be computed then.
    fn compute(&self, cx: &Context, node: NodeId) -> Vec<NodeId> {
        let (graph, inputs) = match &*self.stage() {
            Stage::Open(open) => {
                let input = |input| open.pool.result(input).map(|input| input.outcome.clone());
                let inputs: Option<Vec<Outcome>> = open.graph.inputs(node).map(input).collect();
                (open.graph.clone(), inputs)
            }
            _ => return Vec::new(),
        };
        // Its result has come from another PE meanwhile.
        let Some(inputs) = inputs else { return self.advance(cx, Pool::skipped) };
        let inputs: Result<Vec<Value>, Arc<DagError>> = inputs.into_iter().collect();
        let outcome = inputs.and_then(|inputs| Ok(graph.block.compute(node.index, &inputs)?));
        let result = graph.weighed(node, outcome);
        self.advance(cx, |pool, graph, out| pool.computed(graph, node, result, out))
    }
}

/// Computes a node whose inputs are there, and then others, for as long as any are ready.
#[expect(
    clippy::manual_async_fn,
    reason = "it spawns itself, so its type must say that it is Send"
)]
fn compute_nodes(
    cx: Context,
    (name, part, first): (RunName, u64, NodeId),
) -> impl Future<Output = ()> + Send {
    async move {
        // The run may be over, and there may be another of that name.
        let known = Runs::on(&cx).table().get(name).filter(|known| known.number == part);
        let Some(part) = known else { return };
        let mut next = Some(first);
        while let Some(node) = next {
            let mut ready = part.compute(&cx, node);
            next = ready.pop();
            part.spawn_all(&cx, ready);
            if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
                cx.yield_now().await;
            }
        }
    }
}

/// Sends a result to the pool of another PE.
fn send_result(cx: &Context, to: Pe, (id, node): (RunId, NodeId), graph: &Graph, outcome: Outcome) {
    let outcome = outcome.and_then(|value| {
        let sent = (graph.block.results(node.index).send)(cx, to, (id, node), value);
        sent.map_err(|error| {
            Arc::new(DagError::Unsendable {
                what: "result".to_owned(),
                node,
                name: graph.block.name(node.index).to_owned(),
                why: error.to_string(),
            })
        })
    });
    if let Err(error) = outcome {
        let failed = async |cx: Context, (id, from, node, error): (RunId, Pe, NodeId, DagError)| {
            receive_result(&cx, id, from, node, Err(Arc::new(error)));
        };
        // If it cannot be told, the job ends.
        let _ = cx.tell(to, failed, (id, cx.pe(), node, Arc::unwrap_or_clone(error)));
    }
}

/// What is done with results of type `T`.
pub(super) fn results_of<T: Portable + Sync>() -> ResultType {
    ResultType { send: send_value::<T>, bytes: bytes_of::<T> }
}

/// Sends a result of type `T`.
fn send_value<T: Portable + Sync>(
    cx: &Context,
    to: Pe,
    (id, node): (RunId, NodeId),
    result: Value,
) -> Result<(), TaskError> {
    let Ok(result) = result.downcast::<T>() else {
        unreachable!("a kind has results of one type");
    };
    let receive = async |cx: Context, (id, from, node): (RunId, Pe, NodeId), result: Arc<T>| {
        receive_result(&cx, id, from, node, Ok(result));
    };
    cx.tell_with(to, receive, (id, cx.pe(), node), result)
}

fn receive_result(cx: &Context, id: RunId, from: Pe, node: NodeId, outcome: Outcome) {
    Runs::on(cx).receive(cx, id, from, [PoolMessage::Result(node, outcome)]);
}

/// The runs that a PE knows, and what their pools are told.
#[derive(Default)]
pub(super) struct Runs {
    table: Mutex<RunTable<Arc<Computation>>>,
    is_watching: AtomicBool,
}

impl Runs {
    /// Those of this PE.
    pub(super) fn on(cx: &Context) -> Arc<Runs> {
        let runs: Arc<Runs> = cx.pe_local();
        if !runs.is_watching.swap(true, Ordering::Relaxed) {
            drop(cx.independent().spawn(Distance::ZERO, watch_deaths, ()));
        }
        runs
    }

    pub(super) fn table(&self) -> MutexGuard<'_, RunTable<Arc<Computation>>> {
        // No user code runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, cx: &Context, id: RunId, from: Pe, messages: impl IntoIterator<Item = Told>) {
        if let Some(part) = self.join(cx, id) {
            part.receive(cx, id, from, messages.into_iter().collect());
        }
    }

    /// The run that this PE is invited to, or for which something has arrived. `None`: it is over.
    pub(super) fn join(&self, cx: &Context, id: RunId) -> Option<Arc<Computation>> {
        if id.name.key.is_some_and(|key| cx.is_dead(key.home)) {
            return None;
        }
        let Joined { part, is_old } = self.table().join(id, Computation::early)?;
        if is_old {
            part.renew(cx, id);
        }
        Some(part)
    }

    /// A run is over, unless it has been opened again.
    fn close(&self, id: RunId) {
        let part = self.table().close(id);
        part.into_iter().for_each(|part| part.close());
    }
}

/// The number of runs that this PE knows and that are not over: for tests that none is left behind.
#[doc(hidden)]
pub fn runs_known(cx: &Context) -> usize {
    Runs::on(cx).table().all().len()
}

/// A PE that dies may not have passed on that a run is over: of the last ones, this number, it is
/// told again.
const TOLD_AGAIN: usize = 8;

/// Tells the pools of deaths, for as long as there is a job.
async fn watch_deaths(cx: Context, (): ()) {
    let mut deaths = cx.deaths();
    while let Some(dead) = deaths.next().await {
        let runs = Runs::on(&cx);
        let (all, closed) = {
            let table = runs.table();
            (table.all(), table.closed().take(TOLD_AGAIN).collect::<Vec<_>>())
        };
        for (id, part) in all {
            if id.name.key.is_some_and(|key| key.home == dead) {
                runs.close(id);
            } else {
                part.died(&cx, dead);
                part.ask_for_invitation(&cx, id);
            }
        }
        let is_own = |id: &RunId| id.name.key.map_or(cx.root(), |key| key.home) == cx.pe();
        closed.into_iter().filter(is_own).for_each(|id| tell_closed(&cx, id));
    }
}

/// Tells all PEs that a run is over.
pub(super) fn tell_closed(cx: &Context, id: RunId) {
    let close = async |cx: Context, id: RunId| Runs::on(&cx).close(id);
    // If it cannot be told, the job ends, and all is forgotten.
    let _ = cx.tell_all(close, id);
}
