//! A run on the PE whose program wants its results: it invites the others, and says when it is
//! over.

use super::builder::{Builder, code_of};
use super::error::DagError;
use super::graph::{BlockMaker, Built, Extent, Graph, RunOptions, Supplied};
use super::handles::{NodeId, Wanted};
use super::messages::{Inviter, tell_failed};
use super::part::Part;
use super::pe::{Runs, tell_closed};
use super::pool::Pool;
use super::progress::Watch;
use super::run::Dag;
use super::runs::{RunId, RunName};
use super::trace::{Trace, TracedGraph};
use super::value::Value;
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_journal::Digest;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, DeathStream, Portable, caught};
use ultramarine_runtime::wire::encode;

/// See the [module](self). Dropping it ends the run everywhere, unless another program on this PE
/// wants the results, too.
pub(super) struct Host<F, A> {
    pub(super) cx: Context,
    invitation: Invitation<F, A>,
    pub(super) part: Arc<Part>,
    deaths: DeathStream,
    /// The nodes that the builder of the last block has returned, or of the first of a stream.
    pub(super) returned: Vec<NodeId>,
    /// That block, until the run starts.
    last: Option<Built>,
    /// What the program is told while the run goes on.
    watch: Option<Watch>,
}

impl<F, A, W> Host<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    /// Joins the run of this graph, or makes it.
    pub(super) fn open(cx: &Context, dag: Dag<F, A>) -> Result<Self, DagError> {
        // What this PE does in a run goes on when the PE that waits for this task dies.
        let cx = cx.independent();
        let Dag { build, argument, options, watch } = dag;
        let argument = Arc::new(argument);
        let make = maker(build, argument.clone(), options.extent, cx.pes());
        let last = make(options.extent.last_block())?;
        let digest = digest_of::<F, A>(&last, &options, &argument)?;
        // What the root begins can be joined by the next root, but not where a stream was.
        let is_joinable = cx.pe() == cx.root() && options.extent != Extent::Stream;
        let name = RunName { digest, key: (!is_joinable).then(|| cx.new_key()) };
        let begun = Runs::on(&cx).table().begin(name, (cx.attempt(), cx.pe()), Part::early);
        let (id, part) = begun;
        part.renew(id).carry_out(&cx, &part);
        let (returned, mut deaths) = (last.returned.clone(), cx.deaths());
        let wanted = match options.extent {
            Extent::Whole | Extent::Stream => Vec::new(),
            Extent::Blocks(_) => returned.clone(),
        };
        let supplied = Supplied { nodes: BTreeSet::new(), by: cx.pe() };
        let head = Head { id, options, wanted, supplied };
        let invitation = Invitation { head, build, argument };
        // Those that are dead already get no invitation.
        while let Some(Some(_)) = deaths.next().now_or_never() {}
        Ok(Host { cx, invitation, part, deaths, returned, last: Some(last), watch })
    }

    /// The block that tells the graph from others, before the run starts.
    pub(super) fn last(&self) -> Option<&Built> {
        self.last.as_ref()
    }

    pub(super) fn id(&self) -> RunId {
        self.invitation.head.id
    }

    /// Begins on all PEs. The program has these results already, and wants those of some nodes
    /// beside what the builder has returned.
    pub(super) fn start(
        &mut self,
        known: Vec<(NodeId, Value)>,
        wanted: &[NodeId],
    ) -> Result<(), DagError> {
        let Some(last) = self.last.take() else { return Ok(()) };
        let cx = &self.cx;
        let Head { options, supplied, .. } = &mut self.invitation.head;
        supplied.nodes = known.iter().map(|(node, _)| *node).collect();
        let is_told = self.watch.is_some() || tracing::enabled!(tracing::Level::INFO);
        if is_told && options.extent == Extent::Whole {
            let is_needed = last.block.needed(&[&self.returned, wanted].concat(), &supplied.nodes);
            let needed = is_needed.into_iter().filter(|is_needed| *is_needed).count() as u64;
            tracing::info!("of the graph's {} nodes {needed} are needed", last.block.len());
            self.watch.iter_mut().for_each(|watch| watch.of = Some(needed));
        }
        self.invitation.open(cx, &self.part, last, known);
        self.invitation.send_all(cx)?;
        self.want(wanted);
        Ok(())
    }

    /// Builds a block of a stream here, which uses at most these nodes of the block before. Returns
    /// what its builder has returned.
    pub(super) fn build(
        &self,
        number: u32,
        before: &BTreeSet<NodeId>,
    ) -> Result<Vec<NodeId>, DagError> {
        let Built { block, returned } = self.invitation.maker(&self.cx)(number)?;
        if let Some(node) = block.earlier().iter().find(|node| !before.contains(node)) {
            return Err(DagError::NoSuchNode { node: *node });
        }
        let built = |pool: &mut Pool<Graph>| pool.built(number, Arc::new(block));
        self.part.act(built).carry_out(&self.cx, &self.part);
        Ok(returned)
    }

    /// Has these nodes computed. Their results are [delivered](Part::delivered).
    pub(super) fn want(&self, nodes: &[NodeId]) {
        let want = |pool: &mut Pool<Graph>| {
            nodes.iter().for_each(|node| pool.want(*node));
        };
        self.part.act(want).carry_out(&self.cx, &self.part);
    }

    /// Has these nodes computed, and awaits their results.
    pub(super) async fn results(&mut self, nodes: &[NodeId]) -> Result<Vec<Value>, DagError> {
        self.want(nodes);
        let (cx, part, watch) = (self.cx.clone(), self.part.clone(), self.watch.take());
        let results = self.attend(part.delivered(self.id(), nodes), |_| {});
        match watch {
            Some(watch) => watch.beside(&cx, &part, results).await,
            None => results.await,
        }
    }

    /// Who has computed what. After that the run is over.
    pub(super) async fn trace(self) -> Result<Trace, DagError> {
        let Head { id, options, .. } = self.invitation.head;
        let block = self.part.block(0).filter(|_| options.extent == Extent::Whole);
        let graph = block.map(|block| TracedGraph { block, wanted: self.returned.clone() });
        Ok(Trace::gather(&self.cx, id, graph).await?)
    }

    /// Awaits something that needs the others. `react` is called after a death.
    pub(super) async fn attend<T>(
        &mut self,
        result: impl Future<Output = Result<T, DagError>>,
        react: impl Fn(&Context),
    ) -> Result<T, DagError> {
        let Host { cx, invitation, deaths, .. } = self;
        let mut result = pin!(result);
        std::future::poll_fn(|task| {
            let mut has_any_died = false;
            while let Poll::Ready(Some(_)) = deaths.poll_next_unpin(task) {
                has_any_died = true;
            }
            if has_any_died {
                // A PE that dies may not have passed the invitation on.
                if let Err(error) = invitation.send_all(cx) {
                    return Poll::Ready(Err(error.into()));
                }
                react(cx);
            }
            result.as_mut().poll(task)
        })
        .await
    }
}

impl<F, A> Drop for Host<F, A> {
    fn drop(&mut self) {
        self.part.tell_shortage();
        let last = Runs::on(&self.cx).table().leave(self.invitation.head.id.name);
        last.into_iter().for_each(|id| tell_closed(&self.cx, id));
    }
}

/// What tells a graph from others. Of one in blocks only the last is there: the builder and its
/// argument stand for the rest.
fn digest_of<F: 'static, A: Portable>(
    last: &Built,
    options: &RunOptions,
    argument: &A,
) -> Result<u128, DagError> {
    let number = last.block.digest(&last.returned, Some(options))?;
    if options.extent == Extent::Whole {
        return Ok(number);
    }
    let mut digest = Digest::default();
    digest.add(&number.to_le_bytes());
    digest.add(&code_of::<F>().to_le_bytes());
    digest.add(&encode(argument).map_err(|error| TaskError::Codec {
        what: "argument".into(),
        reason: error.to_string(),
    })?);
    Ok(digest.finish())
}

/// Builds blocks of a graph.
pub(super) fn maker<F, A, W>(build: F, argument: Arc<A>, extent: Extent, pes: u32) -> BlockMaker
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    Arc::new(move |number| {
        let mut builder = Builder::new(number, pes);
        if extent == Extent::Stream {
            builder = builder.of_stream();
        }
        let built = caught(type_name::<F>(), || build(&mut builder, &argument).ids());
        let returned = built.map_err(|message| DagError::Unbuilt { block: number, message })?;
        Ok(Built { block: builder.finish(), returned })
    })
}

/// What a PE must know of a run beside its graph.
#[derive(Clone, Serialize, Deserialize)]
struct Head {
    id: RunId,
    options: RunOptions,
    /// What is wanted, if this PE does not build the block that returns it.
    wanted: Vec<NodeId>,
    supplied: Supplied,
}

/// What makes a PE build the graph, and begin.
struct Invitation<F, A> {
    head: Head,
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
        let build = self.build;
        let invited = move |cx: Context, head, argument| async move {
            Self::accept(&cx, head, build, argument);
        };
        cx.tell_all_with(invited, self.head.clone(), self.argument.clone())
    }

    /// What sends it to single PEs.
    fn inviter(&self) -> Inviter {
        let (build, head, argument) = (self.build, self.head.clone(), self.argument.clone());
        Arc::new(move |cx, to, id| {
            let invited = move |cx: Context, head, argument| async move {
                Self::accept(&cx, head, build, argument);
            };
            // If it cannot be told, the job ends.
            let _ = cx.tell_with(to, invited, Head { id, ..head.clone() }, argument.clone());
        })
    }

    fn maker(&self, cx: &Context) -> BlockMaker {
        maker(self.build, self.argument.clone(), self.head.options.extent, cx.pes())
    }

    /// This PE takes part.
    fn accept(cx: &Context, head: Head, build: F, argument: Result<Arc<A>, TaskError>) {
        let Some(part) = Runs::on(cx).join(cx, head.id) else { return };
        if part.has_begun() {
            return;
        }
        // Messages of a later opening may have come before.
        let id = Runs::on(cx).table().newest(head.id);
        let begin = |argument| {
            let invitation = Invitation { head: Head { id, ..head }, build, argument };
            let last = invitation.built(cx)?;
            invitation.open(cx, &part, last, Vec::new());
            Ok(())
        };
        if let Err(error) = argument.map_err(DagError::Task).and_then(begin) {
            tell_failed(cx, id, error);
        }
    }

    /// The graph, if it is built as a whole, and is the one that was meant; else an empty block.
    fn built(&self, cx: &Context) -> Result<Built, DagError> {
        let Head { id, options, wanted, .. } = &self.head;
        if options.extent != Extent::Whole {
            let block = Builder::new(0, cx.pes()).finish();
            return Ok(Built { block, returned: wanted.clone() });
        }
        let built = self.maker(cx)(0)?;
        let digest = built.block.digest(&built.returned, Some(options))?;
        let is_same = digest == id.name.digest;
        is_same.then_some(built).ok_or(DagError::Differs { pe: cx.pe() })
    }

    /// This PE has the graph, and the program these results.
    fn open(&self, cx: &Context, part: &Part, last: Built, known: Vec<(NodeId, Value)>) {
        let Head { id, options, wanted, supplied } = self.head.clone();
        let whole = (options.extent == Extent::Whole).then_some(last);
        let (block, wanted) =
            whole.map_or((None, wanted), |built| (Some(built.block), built.returned));
        let rest = (wanted, supplied);
        let graph = Graph::new(cx, self.maker(cx), options, rest, block.as_ref());
        let weighed = |(node, value)| (node, graph.weighed(value, 0));
        let known = known.into_iter().map(weighed).collect();
        part.open(cx, (id, self.inviter()), graph, block, known).carry_out(cx, part);
    }
}
