//! The flags of the programs that search trees, and the search that they ask for.

use crate::{Job, JournalFlags, splitting};
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
