//! Endless graphs, for a program that consumes them block by block.

use super::builder::Builder;
use super::error::DagError;
use super::handles::{NodeId, Wanted};
use super::host::Host;
use super::messages::tell_first;
use super::part::{delivered, forget_delivered};
use super::run::Dag;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Portable};

/// An endless graph that is being computed; [`Dag::stream`] begins one.
///
/// ```
/// use ultramarine::prelude::*;
/// use ultramarine::skeletons::dag::{Builder, DagError, Node, dag};
///
/// /// The sums of the first 1000, 2000, … squares.
/// async fn sums(cx: &Context) -> Result<Vec<u64>, DagError> {
///     let build = |g: &mut Builder, (): &()| -> Node<u64> {
///         let block = g.block();
///         let squares = |block: &u64| (block * 1000..(block + 1) * 1000).map(|n| n * n).sum();
///         let new: Node<u64> = g.source(squares, u64::from(block));
///         // The first block has two nodes, of which the first is returned.
///         let before = match block {
///             0 => return new,
///             1 => g.node_of(0, 0),
///             _ => g.node_of(block - 1, 1),
///         };
///         g.zip(|(), (sum, new): (&u64, &u64)| sum + new, (), (before, new))
///     };
///     let mut stream = dag(build, ()).stream(cx)?;
///     let mut sums = Vec::new();
///     for _ in 0..10 {
///         sums.push(stream.next().await?);
///     }
///     Ok(sums)
/// }
/// ```
pub struct DagStream<F, A, W> {
    host: Host<F, A>,
    /// What the blocks have returned that are being computed, the first that is not over first.
    ahead: VecDeque<Result<Vec<NodeId>, DagError>>,
    /// What the block has returned that was built last.
    newest: BTreeSet<NodeId>,
    /// The first block that is not over.
    first: u32,
    /// The first that the others know of.
    told: u32,
    window: u32,
    returned: PhantomData<fn() -> W>,
}

impl<F, A, W> fmt::Debug for DagStream<F, A, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DagStream").field("next", &self.first).finish_non_exhaustive()
    }
}

impl<F, A, W> DagStream<F, A, W>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    pub(super) fn open(cx: &Context, dag: Dag<F, A>) -> Result<Self, DagError> {
        let mut host = Host::open(cx, dag)?;
        host.start(Vec::new(), &[])?;
        let threads = u64::from(cx.pes()) * cx.threads() as u64;
        Ok(DagStream {
            host,
            ahead: VecDeque::new(),
            newest: BTreeSet::new(),
            first: 0,
            told: 0,
            window: (2 * threads).min(1 << 16) as u32,
            returned: PhantomData,
        })
    }

    /// How many blocks are computed ahead, at least 1. Default: two for each thread of the job.
    #[must_use = "the stream that is returned has the window"]
    pub fn window(mut self, blocks: u32) -> Self {
        self.window = blocks.max(1);
        self
    }

    /// What the next block has returned.
    ///
    /// # Errors
    ///
    /// A node that it needs panicked, or its result cannot be sent; a block cannot be built, or
    /// uses a node of an earlier one that was not returned; or the job ends. The stream is then of
    /// no use.
    ///
    /// # Panics
    ///
    /// There were 2^32 − 1 blocks.
    pub async fn next(&mut self) -> Result<W::Results, DagError> {
        // What comes before a block that cannot be built can be computed all the same.
        let can_go_on = |ahead: &VecDeque<_>| ahead.back().is_none_or(Result::is_ok);
        while (self.ahead.len() as u32) < self.window && can_go_on(&self.ahead) {
            let number = self.first + self.ahead.len() as u32;
            let returned = self.host.build(number, &self.newest);
            if let Ok(returned) = &returned {
                self.host.want(returned);
                self.newest = returned.iter().copied().collect();
            }
            self.ahead.push_back(returned);
        }
        let nodes = self.ahead.front().cloned().unwrap_or(Ok(Vec::new()))?;
        let run = &self.host.run;
        let values = delivered(run.member(), run.id(), &nodes).await?;
        self.ahead.pop_front();
        self.first = self.first.checked_add(1).expect("fewer than 2^32 blocks");
        forget_delivered(run.member(), &nodes);
        // Each half of the window, since all PEs hear of it.
        if self.first - self.told >= self.window.div_ceil(2) {
            self.told = self.first;
            tell_first(run.context(), run.id(), self.told);
        }
        Ok(W::results(values))
    }
}
