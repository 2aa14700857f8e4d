//! The ways to spread a map over the PEs that an example can be told to take.

use crate::name_of;
use clap::ValueEnum;
use rayon::prelude::*;
use std::fmt;
use ultramarine::prelude::*;
use ultramarine::{Portable, Stateless};

/// How many items make a task where several do.
const GROUP: usize = 4;

/// How a function is applied to many items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Skeleton {
    /// One task per item, which any PE may steal.
    ParMap,
    /// The same, with a task for four items that follow each other.
    ParMapChunked,
    /// The same, with a quarter of the tasks, to which the items are dealt out in turn.
    ParMapSliced,
    /// The items are dealt out to all PEs in turn.
    PushMap,
    /// The same by four that follow each other.
    PushMapChunked,
    /// The same, with a quarter of the tasks, to which the items are dealt out in turn.
    PushMapSliced,
    /// As par-map, within the smallest ball that holds another PE.
    ParMapLocal,
    /// Each part of the machine gets its share and keeps it.
    #[value(name = "par-map-2level")]
    ParMap2Level,
    /// Each part of the machine gets its share; who has nothing left steals from the others.
    #[value(name = "par-map-2level-relaxed")]
    ParMap2LevelRelaxed,
    /// By the skeleton for the threads of one PE, on the root alone.
    ForkMap,
    /// By rayon, on the root alone.
    Rayon,
    /// One after the other, on the root alone.
    Sequential,
}

impl Skeleton {
    /// Applies `f` to each item; the results are in the order of the items.
    ///
    /// # Errors
    ///
    /// A task ended without a result.
    pub async fn map<F, A, R>(self, cx: &Context, f: F, items: Vec<A>) -> Result<Vec<R>, TaskError>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        let all = Distance::ONE;
        match self {
            Skeleton::ParMap => par_map(cx, f, items).await,
            Skeleton::ParMapChunked => par_map_chunked(cx, GROUP, f, items).await,
            Skeleton::ParMapSliced => {
                par_map_sliced(cx, items.len().div_ceil(GROUP), f, items).await
            }
            Skeleton::PushMap => push_map(cx, f, items).await,
            Skeleton::PushMapChunked => push_map_chunked(cx, GROUP, f, items).await,
            Skeleton::PushMapSliced => {
                push_map_sliced(cx, items.len().div_ceil(GROUP), f, items).await
            }
            Skeleton::ParMapLocal => {
                let radius = *cx.topology().radii().get(1).unwrap_or(&all);
                par_map_local(cx, radius, f, items).await
            }
            Skeleton::ParMap2Level => par_map_2level(cx, all, f, items).await,
            Skeleton::ParMap2LevelRelaxed => par_map_2level_relaxed(cx, all, f, items).await,
            Skeleton::ForkMap => Ok(fork_map(f, items)),
            Skeleton::Rayon => Ok(items.into_par_iter().map(f).collect()),
            Skeleton::Sequential => Ok(items.into_iter().map(f).collect()),
        }
    }

    /// How many tasks it makes of this many items, if no PE dies.
    pub fn tasks(self, cx: &Context, items: usize) -> u64 {
        let tasks = match self {
            Skeleton::ParMap | Skeleton::PushMap | Skeleton::ParMapLocal => items,
            Skeleton::ParMapChunked
            | Skeleton::ParMapSliced
            | Skeleton::PushMapChunked
            | Skeleton::PushMapSliced => items.div_ceil(GROUP),
            Skeleton::ParMap2Level | Skeleton::ParMap2LevelRelaxed => {
                // One more for each part of the machine that gets a share.
                let basis = cx.equidistant_basis(Distance::ONE);
                let weights: Vec<u64> = basis.iter().map(|(_, power)| *power).collect();
                let shares = shares(items, &weights);
                items + shares.iter().filter(|share| !share.is_empty()).count()
            }
            Skeleton::ForkMap | Skeleton::Rayon | Skeleton::Sequential => 0,
        };
        tasks as u64
    }
}

impl fmt::Display for Skeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name_of(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine::{Label, LaneKind, LevelKind, Options, Place};

    /// Of three PEs two are nearer to each other, so that the machine has two parts.
    #[test]
    fn as_many_tasks_are_started_as_are_foretold() {
        let rack = |name: &str| Place::new(vec![Label::new(LevelKind::Switch, name.to_owned())]);
        let racks = ["r0", "r0", "r1"].map(rack).to_vec();
        let options = Options::default().places(racks).threads(1).lane(LaneKind::Memory);
        let job = options.run(async |cx| {
            for items in [0, 1, 2, 3, 4, 5, 61] {
                for skeleton in Skeleton::value_variants() {
                    let before = cx.statistics().await?.tasks;
                    let squares = skeleton.map(&cx, |n: u64| n * n, (0..items).collect()).await?;
                    let started = cx.statistics().await?.tasks - before;
                    assert!(squares.into_iter().eq((0..items).map(|n| n * n)), "{skeleton}");
                    let foretold = skeleton.tasks(&cx, items as usize);
                    assert_eq!(started, foretold, "{skeleton} of {items} items");
                }
            }
            Ok(())
        });
        job.expect("the job is well");
    }
}
