//! A run on the PE whose program wants its results.

use super::builder::Builder;
use super::error::DagError;
use super::graph::{Built, Extent, Supplied};
use super::handles::{NodeId, Wanted};
use super::invitation::{Head, Invitation, digest_of, maker};
use super::part::{RunPart, delivered, warn_of};
use super::picture::Picture;
use super::progress::Watch;
use super::run::Dag;
use super::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use ultramarine_group::Opened;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};

/// See the [module](self). Dropping it ends the run everywhere, unless another program on this PE
/// wants the results, too.
pub(super) struct Host<F, A> {
    pub(super) run: Opened<RunPart>,
    invitation: Invitation<F, A>,
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
        let Dag { build, argument, options, watch } = dag;
        if options.is_drawn && options.extent != Extent::Whole {
            return Err(DagError::InBlocks);
        }
        let argument = Arc::new(argument);
        let make = maker(build, argument.clone(), options.extent, cx.pes());
        let last = make(options.extent.last_block())?;
        let digest = digest_of::<F, A>(&last, &options, &argument)?;
        // What the root begins can be joined by the next root, but not where a stream was.
        let is_owned = cx.pe() != cx.root() || options.extent == Extent::Stream;
        let returned = last.returned.clone();
        let wanted = match options.extent {
            Extent::Whole | Extent::Stream => Vec::new(),
            Extent::Blocks(_) => returned.clone(),
        };
        let supplied = Supplied { nodes: BTreeSet::new(), by: cx.pe() };
        let head = Head { options, wanted, supplied };
        let invitation = Invitation { head, build, argument: Ok(argument) };
        let run = Opened::new(cx, digest, is_owned);
        Ok(Host { run, invitation, returned, last: Some(last), watch })
    }

    pub(super) fn cx(&self) -> &Context {
        self.run.context()
    }

    /// The block that tells the graph from others, before the run starts.
    pub(super) fn last(&self) -> Option<&Built> {
        self.last.as_ref()
    }

    /// Begins on all PEs. The program has these results already, and wants those of some nodes
    /// beside what the builder has returned.
    pub(super) fn start(
        &mut self,
        known: Vec<(NodeId, Value)>,
        wanted: &[NodeId],
    ) -> Result<(), DagError> {
        let Some(last) = self.last.take() else { return Ok(()) };
        let Head { options, supplied, .. } = &mut self.invitation.head;
        supplied.nodes = known.iter().map(|(node, _)| *node).collect();
        let is_told = self.watch.is_some() || tracing::enabled!(tracing::Level::INFO);
        if is_told && options.extent == Extent::Whole {
            let is_needed = last.block.needed(&[&self.returned, wanted].concat(), &supplied.nodes);
            let needed = is_needed.into_iter().filter(|is_needed| *is_needed).count() as u64;
            tracing::info!("of the graph's {} nodes {needed} are needed", last.block.len());
            self.watch.iter_mut().for_each(|watch| watch.of = Some(needed));
        }
        let part = self.invitation.part(self.cx(), last, known.clone())?;
        let number = part.number;
        self.run.start(Arc::new(self.invitation.clone()), part)?;
        self.run.member().act_at_once(self.cx(), |part| {
            if part.number != number {
                // The run has gone on since an earlier opening.
                known.into_iter().for_each(|(node, value)| {
                    let value = part.graph().weighed(value, 0);
                    part.pool.supply(node, value);
                });
            }
            wanted.iter().for_each(|node| part.pool.want(*node));
        });
        Ok(())
    }

    /// Builds a block of a stream here, which uses at most these nodes of the block before. Returns
    /// what its builder has returned.
    pub(super) fn build(
        &self,
        number: u32,
        before: &BTreeSet<NodeId>,
    ) -> Result<Vec<NodeId>, DagError> {
        let Built { block, returned } = self.invitation.maker(self.cx())?(number)?;
        if let Some(node) = block.earlier().iter().find(|node| !before.contains(node)) {
            return Err(DagError::NoSuchNode { node: *node });
        }
        let built = |part: &mut RunPart| part.pool.built(number, Arc::new(block));
        self.run.member().act_at_once(self.cx(), built);
        Ok(returned)
    }

    /// Has these nodes computed. Their results are [delivered].
    pub(super) fn want(&self, nodes: &[NodeId]) {
        let want = |part: &mut RunPart| nodes.iter().for_each(|node| part.pool.want(*node));
        self.run.member().act_at_once(self.cx(), want);
    }

    /// Has these nodes computed, and awaits their results.
    pub(super) async fn results(&mut self, nodes: &[NodeId]) -> Result<Vec<Value>, DagError> {
        self.want(nodes);
        let watch = self.watch.take();
        let results = delivered(self.run.member(), self.run.id(), nodes);
        match watch {
            Some(watch) => watch.beside(self.cx(), self.run.member(), results).await,
            None => results.await,
        }
    }

    /// Who has computed what. After that the run is over.
    pub(super) async fn picture(self) -> Result<Picture, DagError> {
        let block = self.run.member().with(|_, part| part.pool.block(0).cloned()).flatten();
        // The results are there, so the run is closed only if the job ends.
        let block = block.ok_or(TaskError::ShuttingDown)?;
        let wanted = self.returned.clone();
        Ok(Picture::gather(self.cx(), self.run.id(), block, wanted).await?)
    }
}

impl<F, A> Drop for Host<F, A> {
    fn drop(&mut self) {
        let shortage = self.run.member().with(|_, part| part.pool.take_shortage());
        warn_of(shortage.flatten());
    }
}
