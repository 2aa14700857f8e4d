//! What programs share that search all states: their flags.

use crate::{Job, name_of, ranged};
use clap::ValueEnum;
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::time::Instant;
use ultramarine::skeletons::orbit::{Progress, reachable};
use ultramarine::skeletons::table::TableKey;
use ultramarine::{Portable, Result, Stateless};

/// How all states are searched.
#[derive(Clone, clap::Args)]
pub struct StateFlags {
    /// The number of copies of the states that each PE has found.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = ranged::<usize>(0..=100))]
    copies: usize,
    /// Who searches.
    #[arg(long, value_enum, default_value_t = Searcher::Table)]
    skeleton: Searcher,
}

/// See [`StateFlags`].
#[derive(Clone, Copy, ValueEnum)]
enum Searcher {
    /// All PEs, with a table.
    Table,
    /// One thread of the root, with a set.
    Sequential,
}

impl StateFlags {
    /// Searches, and prints the number of states, and of each level.
    ///
    /// # Errors
    ///
    /// The search has failed.
    pub async fn run<F, D, S>(&self, job: &Job, moves: F, data: D, start: S) -> Result<()>
    where
        F: Fn(&D, &S, &mut Vec<S>) + Stateless,
        D: Portable + Sync,
        S: TableKey,
    {
        let begun = Instant::now();
        let levels = match self.skeleton {
            Searcher::Sequential => sequential(moves, &data, start),
            Searcher::Table => {
                let mut search = reachable(moves, data, start).copies(self.copies);
                if job.flags.progress {
                    search = search.progress(tell);
                }
                search.run(&job.cx).await?.levels
            }
        };
        let count: u64 = levels.iter().sum();
        let report = job.report(name_of(&self.skeleton), begun, count).await?;
        report.with("depth", levels.len() - 1).with("levels", levels).print()
    }
}

fn tell(now: &Progress) {
    let last = now.levels.last().copied().unwrap_or(0);
    eprintln!("level {}: {last} states", now.levels.len().saturating_sub(1));
}

/// The number of states of each level, found by one thread.
fn sequential<F, D, S>(moves: F, data: &D, start: S) -> Vec<u64>
where
    F: Fn(&D, &S, &mut Vec<S>),
    S: TableKey,
{
    let mut found = HashSet::with_hasher(FixedState::default());
    found.insert(start.clone());
    let (mut level, mut counts) = (vec![start], Vec::new());
    while !level.is_empty() {
        counts.push(level.len() as u64);
        let mut next = Vec::new();
        level.iter().for_each(|state| moves(data, state, &mut next));
        next.retain(|state| found.insert(state.clone()));
        level = next;
    }
    counts
}
