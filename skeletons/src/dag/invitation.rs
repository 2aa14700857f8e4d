//! What makes a PE build a graph, and take part in its run.

use super::builder::{Builder, code_of};
use super::error::DagError;
use super::graph::{BlockMaker, Built, Extent, Graph, RunOptions, Supplied};
use super::handles::{NodeId, Wanted};
use super::part::RunPart;
use super::value::Value;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::sync::Arc;
use ultramarine_group::{GroupId, Groups, Invite, Site};
use ultramarine_journal::Digest;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, caught};
use ultramarine_runtime::wire::encode;
use ultramarine_topology::Pe;

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

/// What tells a graph from others. Of one in blocks only the last is there: the builder and its
/// argument stand for the rest.
pub(super) fn digest_of<F: 'static, A: Portable>(
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

/// What a PE must know of a run beside its graph.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) options: RunOptions,
    /// What is wanted, if this PE does not build the block that returns it.
    pub(super) wanted: Vec<NodeId>,
    pub(super) supplied: Supplied,
}

/// What makes a PE build the graph, and begin.
pub(super) struct Invitation<F, A> {
    pub(super) head: Head,
    pub(super) build: F,
    /// On the way it may be lost.
    pub(super) argument: Result<Arc<A>, TaskError>,
}

/// The invitation to any run.
pub(super) type RunInvitation = Arc<dyn AnyInvitation>;

impl<F: Copy, A> Clone for Invitation<F, A> {
    fn clone(&self) -> Self {
        let Invitation { head, build, argument } = self;
        Invitation { head: head.clone(), build: *build, argument: argument.clone() }
    }
}

impl<F, A, W> Invitation<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    pub(super) fn maker(&self, cx: &Context) -> Result<BlockMaker, DagError> {
        Ok(maker(self.build, self.argument.clone()?, self.head.options.extent, cx.pes()))
    }

    /// This PE's part, if its program has these results, and this is the last block of the graph.
    pub(super) fn part(
        &self,
        cx: &Context,
        last: Built,
        known: Vec<(NodeId, Value)>,
    ) -> Result<RunPart, DagError> {
        let Head { options, wanted, supplied } = self.head.clone();
        let whole = (options.extent == Extent::Whole).then_some(last);
        let (block, wanted) =
            whole.map_or((None, wanted), |built| (Some(built.block), built.returned));
        let graph = Graph::new(cx, self.maker(cx)?, options, (wanted, supplied), block.as_ref());
        let mut part = RunPart::new(cx, graph, block);
        for (node, value) in known {
            let value = part.graph().weighed(value, 0);
            part.pool.supply(node, value);
        }
        Ok(part)
    }
}

/// An invitation, whatever the types of builder and argument.
pub(super) trait AnyInvitation: Send + Sync {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TaskError>;
    fn make(&self, cx: &Context, id: GroupId) -> Result<RunPart, DagError>;
}

impl<F, A, W> AnyInvitation for Invitation<F, A>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TaskError> {
        let build = self.build;
        let invited = move |cx: &Context, (id, head), argument| {
            let invitation = Invitation { head, build, argument };
            Groups::<RunPart>::on(cx).accept(id, Arc::new(invitation));
        };
        let (told, argument) = ((id, self.head.clone()), self.argument.clone()?);
        match to {
            Some(pe) => cx.tell_with(pe, invited, told, argument),
            None => cx.tell_all_with(invited, told, argument),
        }
    }

    fn make(&self, cx: &Context, id: GroupId) -> Result<RunPart, DagError> {
        let Head { options, wanted, .. } = &self.head;
        let last = if options.extent == Extent::Whole {
            let built = self.maker(cx)?(0)?;
            if built.block.digest(&built.returned, Some(options))? != id.name.digest {
                return Err(DagError::Differs { pe: cx.pe() });
            }
            built
        } else {
            self.argument.as_ref().map_err(Clone::clone)?;
            Built { block: Builder::new(0, cx.pes()).finish(), returned: wanted.clone() }
        };
        self.part(cx, last, Vec::new())
    }
}

impl Invite<RunPart> for RunInvitation {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), DagError> {
        Ok((**self).send(cx, to, id)?)
    }

    fn make(&self, cx: &Context, id: GroupId) -> Result<RunPart, DagError> {
        (**self).make(cx, id)
    }
}
