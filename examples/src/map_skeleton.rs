//! The flag `--skeleton` of the examples that map.

use crate::JournalFlags;
use clap::ValueEnum;
use rayon::prelude::*;
use ultramarine::prelude::*;
use ultramarine::skeletons::map::{Apply, Map};
use ultramarine::skeletons::shares;
use ultramarine::{Portable, Result, Stateless};

/// The number of items of a task, for skeletons that group items.
const GROUP: usize = 4;

/// A skeleton that applies a function to items, or a program without one to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MapSkeleton {
    /// A task for each item, which any PE may steal.
    ParMap,
    /// As par-map, with a task for each four consecutive items.
    ParMapChunked,
    /// As par-map, with a quarter of the tasks, to which the items are dealt out in turn.
    ParMapSliced,
    /// A task for each item, placed on all PEs in turn.
    PushMap,
    /// As push-map, with a task for each four consecutive items.
    PushMapChunked,
    /// As push-map, with a quarter of the tasks, to which the items are dealt out in turn.
    PushMapSliced,
    /// As par-map, but only PEs within the smallest positive radius of the job may steal.
    ParMapLocal,
    /// Each part of the machine gets its share of the items at once; other parts do not steal from
    /// it.
    #[value(name = "par-map-2level")]
    ParMap2Level,
    /// As par-map-2level, but a part that runs out of work steals from the others.
    #[value(name = "par-map-2level-relaxed")]
    ParMap2LevelRelaxed,
    /// The threads of the root only, by a skeleton.
    ForkMap,
    /// The threads of the root only, by rayon.
    Rayon,
    /// One thread of the root, item after item.
    Sequential,
}

impl MapSkeleton {
    /// Applies `f` to each item; the results are in the order of the items, and are kept in a
    /// journal if the flags say so.
    ///
    /// # Errors
    ///
    /// A task ended without a result, or the journal cannot be used, or the skeleton has no tasks.
    pub async fn map<F, A, R>(
        self,
        cx: &Context,
        journal: &JournalFlags,
        f: F,
        items: Vec<A>,
    ) -> Result<Vec<R>>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        if self.tasks(cx, 1) == 0 {
            journal.refuse_for(&self)?;
        }
        match self {
            MapSkeleton::ForkMap => Ok(fork_map(f, items)),
            MapSkeleton::Rayon => Ok(items.into_par_iter().map(f).collect()),
            MapSkeleton::Sequential => Ok(items.into_iter().map(f).collect()),
            _ => {
                let map = self.of_tasks(cx, f, items).optional_journal(journal.file.as_ref());
                Ok(journal.set(map).run(cx).await?)
            }
        }
    }

    /// The map of a skeleton that has tasks.
    fn of_tasks<F, A, R>(self, cx: &Context, f: F, items: Vec<A>) -> Map<Apply<F>, (), Vec<A>>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        let groups = items.len().div_ceil(GROUP);
        let map = map(f, items);
        let all = Distance::ONE;
        match self {
            MapSkeleton::ParMapChunked => map.chunks(GROUP),
            MapSkeleton::ParMapSliced => map.slices(groups),
            MapSkeleton::PushMap => map.push(),
            MapSkeleton::PushMapChunked => map.push().chunks(GROUP),
            MapSkeleton::PushMapSliced => map.push().slices(groups),
            MapSkeleton::ParMapLocal => map.within(*cx.topology().radii().get(1).unwrap_or(&all)),
            MapSkeleton::ParMap2Level => map.two_level(all),
            MapSkeleton::ParMap2LevelRelaxed => map.two_level(all).relaxed(),
            MapSkeleton::ParMap
            | MapSkeleton::ForkMap
            | MapSkeleton::Rayon
            | MapSkeleton::Sequential => map,
        }
    }

    /// The number of tasks that it makes of this number of items, if no PE dies.
    pub fn tasks(self, cx: &Context, items: usize) -> u64 {
        let tasks = match self {
            MapSkeleton::ParMap | MapSkeleton::PushMap | MapSkeleton::ParMapLocal => items,
            MapSkeleton::ParMapChunked
            | MapSkeleton::ParMapSliced
            | MapSkeleton::PushMapChunked
            | MapSkeleton::PushMapSliced => items.div_ceil(GROUP),
            MapSkeleton::ParMap2Level | MapSkeleton::ParMap2LevelRelaxed => {
                // One more for the coordinator of each part that gets a share.
                let basis = cx.equidistant_basis(Distance::ONE);
                let weights: Vec<u64> = basis.iter().map(|(_, power)| *power).collect();
                let shares = shares(items, &weights);
                items + shares.iter().filter(|share| !share.is_empty()).count()
            }
            MapSkeleton::ForkMap | MapSkeleton::Rayon | MapSkeleton::Sequential => 0,
        };
        tasks as u64
    }
}
