//! Computes a graph on all PEs: carries out what their [pools](super::pool) want.

use super::builder::Builder;
use super::error::DagError;
use super::graph::Graph;
use super::handles::{NodeId, Wanted};
use super::kind::Value;
use super::local::compute;
use super::pool::{Pool, PoolEffect, PoolEffects, PoolMessage};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Key, Portable};
use ultramarine_topology::{Distance, Pe};

/// The result of a node, or why there is none.
type Outcome = Result<Value, DagError>;

/// Computes the wanted nodes of a graph, and those that they need, on all PEs.
///
/// Each PE calls `build`, which must be pure. The results of nodes stay where they were computed,
/// and go from there to the PEs that need them. If PEs die, their part is computed by others: as
/// long as the root and its main task live, the result comes.
///
/// ```
/// use ultramarine::prelude::*;
/// use ultramarine::skeletons::dag::{self, Builder, DagError, Node};
///
/// /// The sum of the squares below `limit`, added in pairs.
/// async fn squares(cx: &Context, limit: u64) -> Result<u64, DagError> {
///     let build = |g: &mut Builder, limit: &u64| -> Node<u64> {
///         let squares: Vec<_> = (0..*limit).map(|n| g.source(|n| n * n, n)).collect();
///         let add = |(): &(), pair: &[&u64]| pair.iter().copied().sum::<u64>();
///         g.reduce_tree(add, (), 2, squares).expect("the limit is not 0")
///     };
///     dag::run(cx, build, limit).await
/// }
/// ```
///
/// # Errors
///
/// A node that is needed panicked, or its result is too large to be sent; the graphs of two PEs
/// differ; or the job ends.
pub async fn run<F, A, W>(cx: &Context, build: F, argument: A) -> Result<W::Results, DagError>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    const { F::CHECKED };
    let cx = cx.unsupervised();
    let graph = Graph::build(build, &argument, cx.pes());
    let (wanted, digest) = (graph.wanted.clone(), graph.block.digest(&graph.wanted)?);
    let run = DagRun { cx: cx.clone(), key: cx.new_key() };
    let computation = Computation::on(&cx, run.key);
    computation.open(&cx, graph);
    let invitation = Carried(Arc::new(argument));
    let invite = || invite(&cx, run.key, build, invitation.clone(), digest);
    invite()?;
    wanted.iter().for_each(|node| {
        computation.act(&cx, |pool, graph, out| pool.want(graph, *node, out));
    });
    let mut deaths = cx.deaths();
    let values = std::future::poll_fn(|waker| {
        // A PE that dies may not have passed the invitation on.
        while let Poll::Ready(Some(_)) = deaths.poll_next_unpin(waker) {
            if let Err(error) = invite() {
                return Poll::Ready(Err(error.into()));
            }
        }
        computation.poll_delivered(&wanted, waker.waker())
    })
    .await?;
    Ok(W::results(values))
}

/// Has all PEs build the graph, and begin.
fn invite<F, A, W>(
    cx: &Context,
    key: Key,
    build: F,
    argument: Carried<A>,
    digest: u128,
) -> Result<(), TaskError>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    let open = move |cx: Context, (key, argument, digest): (Key, Carried<A>, u128)| async move {
        let computation = Computation::on(&cx, key);
        if computation.is_open() {
            return;
        }
        let graph = Graph::build(build, &*argument.0, cx.pes());
        if graph.block.digest(&graph.wanted).is_ok_and(|own| own == digest) {
            computation.open(&cx, graph);
        } else {
            let differs = async |cx: Context, (key, pe): (Key, Pe)| {
                Computation::on(&cx, key).fail(DagError::Differs { pe });
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell(key.home, differs, (key, cx.pe()));
        }
    };
    cx.tell_all(open, (key, argument, digest))
}

/// A run of a graph, on the PE that wants its results. Dropping it ends the run everywhere.
struct DagRun {
    cx: Context,
    key: Key,
}

impl Drop for DagRun {
    fn drop(&mut self) {
        let close = async |cx: Context, key: Key| Computation::on(&cx, key).close();
        // If it cannot be told, the job ends, and all is forgotten.
        let _ = self.cx.tell_all(close, self.key);
    }
}

/// One PE's part of a run.
struct Computation {
    key: Key,
    stage: Mutex<Stage>,
}

enum Stage {
    /// This PE has no graph yet. What has arrived for it waits.
    Early(Vec<(Pe, PoolMessage<Outcome>)>),
    Open(Box<Open>),
    Failed(DagError),
    /// The run is over. What still arrives for it has no effect.
    Closed,
}

struct Open {
    graph: Arc<Graph>,
    pool: Pool<Outcome>,
    delivered: BTreeMap<NodeId, Outcome>,
    waker: Option<Waker>,
    /// Tells the pool of deaths.
    _deaths: AbortOnDrop<Future<()>>,
}

impl Computation {
    /// This PE's part.
    fn on(cx: &Context, key: Key) -> Arc<Computation> {
        cx.shared(key, || Computation { key, stage: Mutex::new(Stage::Early(Vec::new())) })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // No user code runs under the lock.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        !matches!(*self.stage(), Stage::Early(_))
    }

    /// This PE has the graph now.
    fn open(&self, cx: &Context, graph: Graph) {
        let watch = cx.spawn(Distance::ZERO, watch_deaths, self.key);
        let open = Open {
            graph: Arc::new(graph),
            pool: Pool::new(cx.pe(), cx.threads()),
            delivered: BTreeMap::new(),
            waker: None,
            _deaths: AbortOnDrop::new(watch),
        };
        let early = match &mut *self.stage() {
            stage @ Stage::Early(_) => std::mem::replace(stage, Stage::Open(Box::new(open))),
            _ => return,
        };
        let Stage::Early(early) = early else { return };
        for (from, message) in early {
            self.act(cx, |pool, graph, out| pool.receive(graph, from, message, out));
        }
    }

    fn fail(&self, error: DagError) {
        let former = std::mem::replace(&mut *self.stage(), Stage::Failed(error));
        if let Stage::Open(open) = former {
            open.waker.into_iter().for_each(Waker::wake);
        }
    }

    fn close(&self) {
        let former = std::mem::replace(&mut *self.stage(), Stage::Closed);
        // After the lock: the results are the user's.
        drop(former);
    }

    /// Has the pool do something, and carries out what it wants.
    fn act(
        &self,
        cx: &Context,
        act: impl FnOnce(&mut Pool<Outcome>, &Graph, &mut PoolEffects<Outcome>),
    ) {
        let mut effects = PoolEffects::new();
        let graph = match &mut *self.stage() {
            Stage::Open(open) => {
                act(&mut open.pool, &open.graph, &mut effects);
                open.graph.clone()
            }
            _ => return,
        };
        for effect in effects {
            self.perform(cx, &graph, effect);
        }
    }

    fn perform(&self, cx: &Context, graph: &Graph, effect: PoolEffect<Outcome>) {
        match effect {
            PoolEffect::Send(to, PoolMessage::Request(node)) => {
                let request = async |cx: Context, (key, from, node): (Key, Pe, NodeId)| {
                    Computation::on(&cx, key).receive(&cx, from, PoolMessage::Request(node));
                };
                // If it cannot be told, the job ends.
                let _ = cx.tell(to, request, (self.key, cx.pe(), node));
            }
            PoolEffect::Send(to, PoolMessage::Result(node, outcome)) => {
                let outcome = outcome.and_then(|value| {
                    let sent = graph.block.sender(node.index)(cx, to, self.key, node, &value);
                    sent.map_err(|error| DagError::Unsendable {
                        what: "result".to_owned(),
                        node,
                        name: graph.block.name(node.index).to_owned(),
                        why: error.to_string(),
                    })
                });
                if let Err(error) = outcome {
                    let failed = async |cx: Context, (key, from, node, error): Failure| {
                        let result = PoolMessage::Result(node, Err(error));
                        Computation::on(&cx, key).receive(&cx, from, result);
                    };
                    // If it cannot be told, the job ends.
                    let _ = cx.tell(to, failed, (self.key, cx.pe(), node, error));
                }
            }
            PoolEffect::Compute(node) => {
                drop(cx.spawn(Distance::ZERO, compute_node, (self.key, node)));
            }
            PoolEffect::Deliver(node, outcome) => {
                let waker = match &mut *self.stage() {
                    Stage::Open(open) => {
                        open.delivered.insert(node, outcome);
                        open.waker.take()
                    }
                    _ => None,
                };
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// A message of another pool has arrived.
    fn receive(&self, cx: &Context, from: Pe, message: PoolMessage<Outcome>) {
        if let Stage::Early(early) = &mut *self.stage() {
            return early.push((from, message));
        }
        self.act(cx, |pool, graph, out| pool.receive(graph, from, message, out));
    }

    fn poll_delivered(
        &self,
        wanted: &[NodeId],
        waker: &Waker,
    ) -> Poll<Result<Vec<Value>, DagError>> {
        match &mut *self.stage() {
            Stage::Failed(error) => Poll::Ready(Err(error.clone())),
            Stage::Open(open) => {
                let outcome = |node: &NodeId| open.delivered.get(node).cloned();
                if let Some(all) = wanted.iter().map(outcome).collect::<Option<Vec<_>>>() {
                    return Poll::Ready(all.into_iter().collect());
                }
                open.waker = Some(waker.clone());
                Poll::Pending
            }
            Stage::Early(_) | Stage::Closed => unreachable!("this PE has built the graph"),
        }
    }
}

/// A run, the sender, a node, and why it has no result.
type Failure = (Key, Pe, NodeId, DagError);

/// Computes a node whose inputs are there.
async fn compute_node(cx: Context, (key, node): (Key, NodeId)) {
    let Some(computation) = cx.known::<Computation>(key) else { return };
    let (graph, inputs) = match &*computation.stage() {
        Stage::Open(open) => {
            let graph = open.graph.clone();
            let outcome = |input: NodeId| match open.pool.result(input) {
                Some(outcome) => outcome.clone(),
                None => unreachable!("a node is computed when its inputs are there"),
            };
            let inputs: Result<Vec<Value>, DagError> =
                graph.block.inputs(node.index).map(outcome).collect();
            (graph, inputs)
        }
        _ => return,
    };
    let outcome = inputs.and_then(|inputs| compute(&graph.block, node.index, &inputs));
    computation.act(&cx, |pool, graph, out| pool.computed(graph, node, outcome, out));
}

/// Tells the pool of deaths, for as long as there is one.
async fn watch_deaths(cx: Context, key: Key) {
    let mut deaths = cx.deaths();
    while let Some(pe) = deaths.next().await {
        let Some(computation) = cx.known::<Computation>(key) else { return };
        computation.act(&cx, |pool, graph, out| pool.died(graph, pe, out));
    }
}

/// A result has arrived from the pool of another PE.
pub(super) fn receive_result(cx: &Context, key: Key, from: Pe, node: NodeId, value: Value) {
    Computation::on(cx, key).receive(cx, from, PoolMessage::Result(node, Ok(value)));
}

/// A value that is sent from where it lies.
pub(super) struct Carried<T>(pub(super) Arc<T>);

impl<T> Clone for Carried<T> {
    fn clone(&self) -> Self {
        Carried(self.0.clone())
    }
}

impl<T: Serialize> Serialize for Carried<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Carried<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Carried(Arc::new(value)))
    }
}
