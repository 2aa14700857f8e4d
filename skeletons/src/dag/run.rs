//! Computes a graph on all PEs, for a program that wants its results.

use super::assignment::Assignment;
use super::builder::Builder;
use super::computation::{Computation, Inviter, Runs, tell_closed};
use super::error::DagError;
use super::graph::{Graph, RunOptions};
use super::handles::Wanted;
use super::runs::{Joined, RunId, RunName};
use futures_util::{FutureExt, StreamExt};
use std::sync::Arc;
use std::task::Poll;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::Pe;

/// A graph that is to be computed on all PEs.
///
/// Each PE calls `build`, which must be pure. The results of nodes stay where they were computed,
/// and go from there to the PEs that need them. If PEs die, their part is computed by others: the
/// result comes as long as this PE lives. If the root dies, which has begun the run, the others go
/// on; if the main task is started again, and comes to the same graph, it joins them.
///
/// ```
/// use ultramarine::prelude::*;
/// use ultramarine::skeletons::dag::{Builder, DagError, Node, dag};
///
/// /// The sum of the squares below `limit`, added in pairs.
/// async fn squares(cx: &Context, limit: u64) -> Result<u64, DagError> {
///     let build = |g: &mut Builder, limit: &u64| -> Node<u64> {
///         let squares: Vec<_> = (0..*limit).map(|n| g.source(|n| n * n, n)).collect();
///         let add = |(): &(), pair: &[&u64]| pair.iter().copied().sum::<u64>();
///         g.reduce_tree(add, (), 2, squares).expect("the limit is not 0")
///     };
///     dag(build, limit).run(cx).await
/// }
/// ```
pub fn dag<F, A, W>(build: F, argument: A) -> Dag<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    const { F::CHECKED };
    let options = RunOptions { assignment: Assignment::default(), memory: u64::MAX };
    Dag { build, argument, options }
}

/// A graph, and how it is to be computed; see [`dag`].
#[must_use = "a graph is not computed until it is run"]
#[derive(Debug)]
pub struct Dag<F, A> {
    build: F,
    argument: A,
    options: RunOptions,
}

impl<F, A, W> Dag<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    /// How nodes are assigned to PEs. Default: [`Assignment::Levels`].
    pub fn assignment(mut self, assignment: Assignment) -> Self {
        self.options.assignment = assignment;
        self
    }

    /// How many bytes of results a PE should hold at most. Default: no limit.
    ///
    /// Above that, results are dropped that no node on the PE waits for: first copies of what other
    /// PEs have computed, then those that were used the longest ago. They are computed again if
    /// they are needed again, which is rare unless PEs die. Results that nodes wait for are held in
    /// any case. The size of a result that is no `Vec` of numbers is estimated.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Computes the wanted nodes, and those that they need.
    ///
    /// # Errors
    ///
    /// A node that is needed panicked, or its result is too large to be sent or for the
    /// [memory](Self::memory); the graphs of two PEs differ; or the job ends.
    pub async fn run(self, cx: &Context) -> Result<W::Results, DagError> {
        let Dag { build, argument, options } = self;
        // What this PE does in a run goes on when the PE that waits for this task dies.
        let cx = cx.independent();
        let (graph, digest) = built(&cx, build, &argument, options)?;
        let wanted = graph.wanted.clone();
        let run = Run::begin(&cx, digest);
        let invitation = Invitation { id: run.id, options, build, argument: Arc::new(argument) };
        run.part.open(&cx, run.id, graph, invitation.inviter());
        let mut deaths = cx.deaths();
        // Those that are dead already get no invitation.
        while let Some(Some(_)) = deaths.next().now_or_never() {}
        invitation.send_all(&cx)?;
        run.part.want(&cx, &wanted);
        let values = std::future::poll_fn(|waker| {
            let mut has_any_died = false;
            while let Poll::Ready(Some(_)) = deaths.poll_next_unpin(waker) {
                has_any_died = true;
            }
            // A PE that dies may not have passed the invitation on.
            if has_any_died && let Err(error) = invitation.send_all(&cx) {
                return Poll::Ready(Err(error.into()));
            }
            run.part.poll_delivered(&wanted, waker.waker())
        })
        .await?;
        Ok(W::results(values))
    }
}

/// The graph, and its digest.
fn built<F, A, W>(
    cx: &Context,
    build: F,
    argument: &A,
    options: RunOptions,
) -> Result<(Graph, u128), DagError>
where
    F: Fn(&mut Builder, &A) -> W,
    W: Wanted,
{
    let mut builder = Builder::new(0, cx.pes());
    let wanted = build(&mut builder, argument).ids();
    let block = builder.finish();
    let digest = block.digest(&wanted, &options.to_bytes())?;
    let cores: Vec<u64> = (0..cx.pes()).map(|pe| cx.topology().power(Pe::new(pe))).collect();
    Ok((Graph::new(block, wanted, options, &cores), digest))
}

/// What makes a PE build the graph, and begin.
struct Invitation<F, A> {
    id: RunId,
    options: RunOptions,
    build: F,
    argument: Arc<A>,
}

impl<F, A, W> Invitation<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    fn send_all(&self, cx: &Context) -> Result<(), TaskError> {
        let (build, head, argument) = (self.build, (self.id, self.options), self.argument.clone());
        let invited = move |cx: Context, head, argument: Arc<A>| async move {
            invited(&cx, head, build, argument);
        };
        cx.tell_all_with(invited, head, argument)
    }

    /// What sends it to single PEs.
    fn inviter(&self) -> Inviter {
        let (build, head, argument) = (self.build, (self.id, self.options), self.argument.clone());
        Arc::new(move |cx, to| {
            let invited = move |cx: Context, head, argument: Arc<A>| async move {
                invited(&cx, head, build, argument);
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell_with(to, invited, head, argument.clone());
        })
    }
}

/// A PE is invited to a run, by a PE that has the graph.
fn invited<F, A, W>(cx: &Context, (id, options): (RunId, RunOptions), build: F, argument: Arc<A>)
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    let Some(part) = Runs::on(cx).join(cx, id) else { return };
    if part.has_begun() {
        return;
    }
    match built(cx, build, &*argument, options) {
        Ok((graph, digest)) if digest == id.name.digest => {
            let invitation = Invitation { id, options, build, argument };
            part.open(cx, id, graph, invitation.inviter());
        }
        _ => {
            let differs = async |cx: Context, (id, pe): (RunId, Pe)| {
                let part = Runs::on(&cx).table().get(id.name);
                part.into_iter().for_each(|part| part.fail(DagError::Differs { pe }));
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell(id.opening.root, differs, (id, cx.pe()));
        }
    }
}

/// A run, on the PE whose program wants its results. Dropping it ends the run everywhere, unless
/// another program on this PE wants them, too.
struct Run {
    cx: Context,
    id: RunId,
    part: Arc<Computation>,
}

impl Run {
    fn begin(cx: &Context, digest: u128) -> Self {
        // What the root begins can be joined by the next root.
        let key = (cx.pe() != cx.root()).then(|| cx.new_key());
        let name = RunName { digest, key };
        let (id, joined) =
            Runs::on(cx).table().begin(name, (cx.attempt(), cx.pe()), Computation::early);
        let Joined { part, is_old } = joined;
        if is_old {
            part.renew(cx, id);
        }
        Run { cx: cx.clone(), id, part }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let last = Runs::on(&self.cx).table().leave(self.id.name);
        last.into_iter().for_each(|id| tell_closed(&self.cx, id));
    }
}
