//! Computes a graph on all PEs, for a program that wants its results.

use super::assignment::Assignment;
use super::builder::Builder;
use super::error::DagError;
use super::graph::{Extent, RunOptions};
use super::handles::Wanted;
use super::host::Host;
use super::invitation::maker;
use super::picture::Picture;
use super::progress::Watch;
use super::stream::DagStream;
use super::value::Value;
use crate::journal::Journalled;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Portable};

/// A graph that is to be computed on all PEs.
///
/// Each PE calls `build`, which must be pure. The results of nodes stay where they were computed,
/// and go unasked to the PEs that need them, since all know the graph. If PEs die, their part is
/// computed by others: the result comes as long as this PE lives. If the root dies, which has begun
/// the run, the others go on; if the main task is started again, and comes to the same graph, it
/// joins them.
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
    let options = RunOptions {
        extent: Extent::Whole,
        assignment: Assignment::default(),
        memory: u64::MAX,
        drops_used: false,
        is_drawn: false,
        report_after: None,
    };
    Dag { build, argument, options, watch: None }
}

/// A graph, and how it is to be computed; see [`dag`].
#[must_use = "a graph is not computed until it is run"]
#[derive(Debug)]
pub struct Dag<F, A> {
    pub(super) build: F,
    pub(super) argument: A,
    pub(super) options: RunOptions,
    pub(super) watch: Option<Watch>,
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

    /// The graph is built in this number of blocks, from 0, of which each PE builds those whose
    /// nodes it computes: so a graph may be larger than the memory of a PE. The builder is called
    /// for one block at a time, and [asks which](Builder::block). A block uses nodes of
    /// [earlier blocks](Builder::node_of); the last one returns what is wanted. Its digest, the
    /// builder and the argument tell the graph from others; that the other blocks are the same on
    /// every PE is not checked.
    ///
    /// # Panics
    ///
    /// `blocks` is 0.
    #[track_caller]
    pub fn blocks(mut self, blocks: u32) -> Self {
        assert!(blocks > 0, "a graph has at least one block");
        self.options.extent = Extent::Blocks(blocks);
        self
    }

    /// How many bytes of results a PE should hold at most. Default: no limit.
    ///
    /// Above that, results are dropped that no node on the PE waits for: first those that all nodes
    /// have read, then those that are cheap to get again for their size, with what they are
    /// computed from. They are computed again if they are needed again, which is rare unless PEs
    /// die, or the limit is less than the nodes need: then a warning says so, once, and by what.
    /// Results that nodes wait for are held in any case, and so are those that are wanted. The size
    /// of a result that is no `Vec` of numbers is estimated.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Each result is dropped as soon as all nodes that read it are computed, or their PEs have it.
    /// Default: results are held until the run is over, or until
    /// [memory is short](Self::memory).
    ///
    /// That takes the least memory, and less time if results are large, since their memory is used
    /// again. Nodes with inputs are then computed by their owners only. After a death more is
    /// computed again: what the dead PE had, and what it was computed from, as far as that is
    /// dropped. Graphs [in blocks](Self::blocks) hold their results all the same, and
    /// [streams](Self::stream) those of the blocks that are not over.
    pub fn drop_used(mut self) -> Self {
        self.options.drops_used = true;
        self
    }

    /// Keeps the results of the nodes that the builder [chooses](Builder::keep) in a file, as they
    /// come. A job that is started again takes them from there, and does not compute what only
    /// they need. They travel to this PE, which writes them: so a few should be kept that took
    /// long, and are small.
    ///
    /// If the path is that of a folder, which must be there, the file in it is named after the
    /// graph; otherwise it is that of the file. This comes last, after the graph's own options.
    /// A journal belongs to a graph: its functions, arguments and wanted nodes. For the rest, see
    /// [`Map::journal`](crate::map::Map::journal). Graphs [in blocks](Self::blocks) keep nothing.
    pub fn journal(self, path: impl Into<PathBuf>) -> Journalled<Self> {
        Journalled::new(self, Some(path.into()))
    }

    /// The same, if there is a path.
    pub fn optional_journal(self, path: Option<impl Into<PathBuf>>) -> Journalled<Self> {
        Journalled::new(self, path.map(Into::into))
    }

    /// Calls `f` on this PE while the graph is computed: with the number of nodes that are done,
    /// and of those that there are to compute. That is `None` if the graph is built
    /// [in blocks](Self::blocks). The first number is greater each time. If it stands still, or
    /// changes more often than `every` (at least 1 ms), `f` is not called. At the end both numbers
    /// are the same.
    ///
    /// Each PE tells this one its number when that has changed, at most once in that time. A death
    /// may let the number stand still until what was lost is computed again. Results that a
    /// [journal](Self::journal) has do not count, and a [stream](Self::stream) has no progress.
    pub fn progress<P>(mut self, every: Duration, f: P) -> Self
    where
        P: FnMut(u64, Option<u64>) + Send + 'static,
    {
        let every = every.max(Duration::from_millis(1));
        self.options.report_after = Some(every);
        self.watch = Some(Watch::new(every, f));
        self
    }

    /// The number of nodes of the graph, or of its last block. This PE builds it to count them.
    ///
    /// # Errors
    ///
    /// It cannot be built.
    pub fn nodes(&self, cx: &Context) -> Result<u32, DagError>
    where
        A: Clone,
    {
        let make =
            maker(self.build, Arc::new(self.argument.clone()), self.options.extent, cx.pes());
        Ok(make(self.options.extent.last_block())?.block.len())
    }

    /// Computes the wanted nodes, and those that they need.
    ///
    /// # Errors
    ///
    /// A node that is needed panicked (if several results are wanted, there are none of the others,
    /// either), or its result is too large to be sent or for the [memory](Self::memory); the graphs
    /// of two PEs differ, or one cannot be built; or the job ends. The graph may be run again at
    /// once. What has failed is tried again then.
    pub async fn run(self, cx: &Context) -> Result<W::Results, DagError> {
        Ok(W::results(self.compute(cx).await?.0))
    }

    /// The same, and a picture of the graph that shows which PE has computed which node. (For when
    /// that was, have the job [traced](ultramarine_runtime::trace).) Each PE notes 16 bytes for
    /// each node. This PE gathers them at the end. A run may join one of the same graph that is
    /// under way or has just ended: then its picture shows what that one has computed.
    ///
    /// ```
    /// use ultramarine::prelude::*;
    /// use ultramarine::skeletons::dag::{Builder, Node, dag};
    ///
    /// async fn sum(cx: &Context) -> ultramarine::Result<u64> {
    ///     let build = |g: &mut Builder, (): &()| -> Node<u64> {
    ///         let numbers: Vec<_> = (0..100).map(|n| g.source(|n| n * n, n)).collect();
    ///         g.reduce(|(), all: &[&u64]| all.iter().copied().sum(), (), numbers)
    ///     };
    ///     let (sum, picture) = dag(build, ()).run_with_picture(cx).await?;
    ///     match picture.to_svg() {
    ///         Some(svg) => std::fs::write("sum.svg", svg)?,
    ///         None => std::fs::write("sum.dot", picture.to_dot())?,
    ///     }
    ///     Ok(sum)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run); or the graph is built [in blocks](Self::blocks).
    pub async fn run_with_picture(
        mut self,
        cx: &Context,
    ) -> Result<(W::Results, Picture), DagError> {
        self.options.is_drawn = true;
        let (values, host) = self.compute(cx).await?;
        Ok((W::results(values), host.picture().await?))
    }

    pub(super) async fn compute(self, cx: &Context) -> Result<(Vec<Value>, Host<F, A>), DagError> {
        let mut host = Host::open(cx, self)?;
        host.start(Vec::new(), &[])?;
        let wanted = host.returned.clone();
        let values = host.results(&wanted).await?;
        Ok((values, host))
    }

    /// Computes an endless graph, block after block. The builder is called for one block at a
    /// time, on the PEs that compute it, and [asks which](Builder::block). What it returns is what
    /// the program gets for that block, and what the next block may [use](Builder::node_of): no
    /// other node of an earlier block.
    ///
    /// Each block has one PE, in turn; where one has more to do than its neighbours, it pushes
    /// nodes to them. Some blocks ahead of the program are computed. What is over is forgotten, so
    /// memory is bounded however long the stream is, and a death costs what is under way. Dropping
    /// the stream ends it. If this PE dies, its stream ends.
    ///
    /// # Errors
    ///
    /// The first block cannot be built, or the job ends.
    pub fn stream(mut self, cx: &Context) -> Result<DagStream<F, A, W>, DagError> {
        (self.options.extent, self.options.report_after) = (Extent::Stream, None);
        DagStream::open(cx, self)
    }
}
