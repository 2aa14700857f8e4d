//! Graphs with a journal: the results of chosen nodes are records.

use super::builder::Builder;
use super::error::DagError;
use super::graph::Built;
use super::handles::{NodeId, Wanted};
use super::host::Host;
use super::part::delivered;
use super::picture::Picture;
use super::run::Dag;
use super::value::Value;
use crate::journal::{JournalError, JournalFile, Journalled, Kept, identity};
use futures_util::future::try_join;
use std::collections::BTreeSet;
use ultramarine_journal::Digest;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};

impl<F, A, W> Journalled<Dag<F, A>>
where
    F: Fn(&mut Builder, &A) -> W + Stateless,
    A: Portable + Sync,
    W: Wanted,
{
    /// Computes the wanted nodes, and those that they need, unless they are in the journal.
    ///
    /// # Errors
    ///
    /// As for [`Dag::run`]; or the journal cannot be used, or, if it is
    /// [required](Self::required), not be written; or the graph is built in blocks.
    pub async fn run(self, cx: &Context) -> Result<W::Results, DagError> {
        Ok(W::results(self.compute(cx).await?.0))
    }

    /// The same, and a [picture](Dag::run_with_picture).
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub async fn run_with_picture(
        mut self,
        cx: &Context,
    ) -> Result<(W::Results, Picture), DagError> {
        self.skeleton.options.is_drawn = true;
        let (values, host) = self.compute(cx).await?;
        Ok((W::results(values), host.picture().await?))
    }

    async fn compute(self, cx: &Context) -> Result<(Vec<Value>, Host<F, A>), DagError> {
        let Journalled { skeleton: dag, file, .. } = self;
        let Some(file) = file else { return dag.compute(cx).await };
        let mut host = Host::open(cx, dag)?;
        let wanted = host.returned.clone();
        let Some(last) = host.last().filter(|last| last.block.number() == 0) else {
            return Err(DagError::Journal { message: "a graph in blocks has none".to_owned() });
        };
        if last.block.kept().is_empty() {
            tracing::warn!("the builder keeps no node: the graph's journal stays empty");
        }
        let kept: Kept<Vec<u8>> = open::<F, W>(host.cx(), file, last).await?;
        let Some(last) = host.last() else { unreachable!("the run has not started") };
        let is_needed = last.block.needed(&wanted, &BTreeSet::new());
        let node = |index: u32| NodeId { block: 0, index };
        let known = kept.results.iter().map(|(index, bytes)| {
            let index = *index as u32;
            Ok((node(index), last.block.decode(index, bytes).map_err(DagError::journal)?))
        });
        let known: Vec<(NodeId, Value)> = known.collect::<Result<_, DagError>>()?;
        let is_new = |index: &u32| {
            is_needed[*index as usize] && !kept.results.contains_key(&u64::from(*index))
        };
        let new: Vec<NodeId> = last.block.kept().iter().copied().filter(is_new).map(node).collect();
        host.start(known, &new)?;
        let tasks = new.into_iter().map(|node| {
            let (id, run) = (host.run.id(), host.run.member().clone());
            let result = async move {
                // If it fails, so do wanted ones, which say why.
                let values =
                    delivered(&run, id, &[node]).await.map_err(|_| TaskError::ShuttingDown)?;
                let what = "result".into();
                values[0].encoded().map_err(|reason| TaskError::Codec { what, reason })
            };
            (u64::from(node.index)..u64::from(node.index) + 1, result)
        });
        let complete = kept.complete(tasks.collect::<Vec<_>>(), usize::MAX);
        let complete = async {
            match complete.await {
                Err(error @ JournalError::Write(_)) => Err(DagError::journal(error)),
                // Of another error the wanted nodes say more.
                complete => Ok(complete),
            }
        };
        let (values, complete) = try_join(host.results(&wanted), complete).await?;
        complete.map_err(DagError::journal)?;
        Ok((values, host))
    }
}

/// Opens the journal of a graph.
async fn open<F: 'static, W: 'static>(
    cx: &Context,
    file: JournalFile,
    graph: &Built,
) -> Result<Kept<Vec<u8>>, DagError> {
    let number = graph.block.digest(&graph.returned, None)?;
    let mut digest = Digest::default();
    digest.add(&number.to_le_bytes());
    let identity = identity::<F, W>(graph.block.len() as usize, &digest);
    let file = file.in_folder(&format!("graph-{number:032x}.journal"));
    file.open(cx, identity, |_, _| true).await.map_err(DagError::journal)
}
