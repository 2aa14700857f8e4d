//! The flags of the programs that search trees, the search that they ask for, and the number of
//! nodes that it expands.

use crate::{Job, JournalFlags, splitting};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::search::{Search, SearchType};

/// How a search is divided, and where its results are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct SearchFlags {
    /// When a task splits off tasks for others: `steal-driven` (when no task is left to steal),
    /// `depth:N` (a task for each node down to depth N), `budget:N` (after each N nodes) or
    /// `ordered` (all workers go through the tree in one order) [default: `ordered` for a search
    /// for the best, `steal-driven` for one of all nodes]
    #[arg(long, value_parser = splitting)]
    pub splitting: Option<Splitting>,
    /// Where the results are kept.
    #[command(flatten)]
    pub journal: JournalFlags,
}

impl SearchFlags {
    /// Runs a search, with a journal if the flags say so.
    ///
    /// # Errors
    ///
    /// A task ended without a result, or the journal cannot be used.
    pub async fn run<T, K>(&self, job: &Job, search: Search<T, K>) -> Result<K::Output>
    where
        T: Tree,
        K: SearchType<T>,
    {
        let search = self.journal.set(search.optional_journal(self.journal.file.as_ref()));
        Ok(job.progress(None, search.run(&job.cx)).await?)
    }
}

/// A counter in a cache line of its own: a node may take only some 40 ns.
#[repr(align(128))]
struct Counter(AtomicU64);

/// The number of nodes whose children were asked for in this process, by threads.
static EXPANDED: [Counter; 64] = [const { Counter(AtomicU64::new(0)) }; 64];

/// The number of threads that have counted.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COUNTER: &'static AtomicU64 = {
        &EXPANDED[THREADS.fetch_add(1, Ordering::Relaxed) % EXPANDED.len()].0
    };
}

/// Counts a node whose children are asked for.
#[inline]
pub(crate) fn note_expanded() {
    COUNTER.with(|counter| counter.fetch_add(1, Ordering::Relaxed));
}

/// The number of nodes that were expanded on all PEs that are alive.
///
/// # Errors
///
/// A PE cannot say it.
pub(crate) async fn expanded(cx: &Context) -> Result<u64> {
    let count = async |_, ()| -> u64 {
        EXPANDED.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    };
    let living = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe));
    let asked: Vec<_> = living.map(|pe| cx.supervised().spawn_at(pe, count, ())).collect();
    let mut expanded = 0;
    for count in asked {
        expanded += count.await?;
    }
    Ok(expanded)
}
