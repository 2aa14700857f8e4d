//! The number of tasks that each kind of splitting makes, and the PEs that take part.

use super::{Grown, Shape, Shoot, add, look, visited};
use crate::common::{here, job, stands_still};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine_testkit::racks;

/// A root with this many leaves.
#[derive(Clone, Serialize, Deserialize)]
struct Wide {
    width: u64,
}

impl Tree for Wide {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        1..if node == 0 { self.width + 1 } else { 0 }
    }
}

/// The number of tasks that a search makes on a single PE, and its result.
async fn tasks_of<T: Tree, R: ultramarine::Portable + Default>(
    cx: &Context,
    splitting: Splitting,
    look: impl Fn(&T, &T::Node, &mut R) + ultramarine::Stateless,
    add: impl Fn(&mut R, R) + ultramarine::Stateless,
    (tree, root): (T, T::Node),
) -> Result<(u64, R), TaskError> {
    let before = cx.statistics().await?.tasks;
    let found = par_enumerate(cx, splitting, look, add, tree, root).await?;
    Ok((cx.statistics().await?.tasks - before, found))
}

#[test]
fn depth_makes_a_task_of_each_node_down_to_it() {
    job(racks(&[1], 1), async |cx| {
        let (tree, root) = (Grown { seed: 1 }, Shoot { number: 7, depth: 0 });
        for limit in [0, 1, 4, 6, u32::MAX] {
            let mut upto_limit = 0;
            visited(&tree, root.clone(), |node| {
                upto_limit += u64::from((1..=limit).contains(&node.depth));
            });
            let search = (tree.clone(), root.clone());
            let (tasks, _) = tasks_of(&cx, Splitting::Depth(limit), look, add, search).await?;
            assert_eq!(tasks, upto_limit + 1, "depth {limit}");
        }
        Ok(())
    });
}

#[test]
fn a_budget_makes_tasks_of_what_it_leaves() {
    job(racks(&[1], 1), async |cx| {
        // With the least budget all siblings of the first node become tasks, at each node.
        let (tree, root) = (Grown { seed: 1 }, Shoot { number: 7, depth: 0 });
        let mut leaves = 0;
        visited(&tree, root.clone(), |node| {
            leaves += u64::from(tree.children(node.clone()).count() == 0);
        });
        for (budget, expected) in [(0, leaves), (1, leaves), (u64::MAX, 1)] {
            let (splitting, search) = (Splitting::Budget(budget), (tree.clone(), root.clone()));
            let (tasks, shape): (u64, Shape) = tasks_of(&cx, splitting, look, add, search).await?;
            assert_eq!(tasks, expected, "budget {budget}, {shape:?}");
        }
        // A task for the whole: the root and 99 leaves, then 256 of the others at a time:
        // 1000 = 99 + 256 + 100 + 256 + 100 + 189.
        let count = |_: &Wide, _: &u64, found: &mut u64| *found += 1;
        let add = |found: &mut u64, other| *found += other;
        let wide = (Wide { width: 1000 }, 0);
        let found = tasks_of(&cx, Splitting::Budget(100), count, add, wide).await?;
        assert_eq!(found, (1 + 256 + 256 + 189, 1001));
        Ok(())
    });
}

#[test]
fn others_take_part_if_there_are_tasks() {
    job(racks(&[2, 1], 1), async |cx| {
        let who = |_: &Wide, _: &u64, found: &mut Vec<u32>| {
            let here = here();
            if !found.contains(&here) {
                found.push(here);
            }
        };
        let add = |found: &mut Vec<u32>, other: Vec<u32>| found.extend(other);
        let all: &[u32] = &[0, 1, 2];
        let kinds = [
            (Splitting::StealDriven, 20_000, all),
            (Splitting::Depth(1), 5000, all),
            (Splitting::Budget(20), 5000, all),
            (Splitting::Depth(0), 5000, &[0]),
            (Splitting::Budget(1_000_000), 5000, &[0]),
        ];
        for (splitting, width, expected) in kinds {
            let before = cx.statistics().await?.tasks;
            let mut found = par_enumerate(&cx, splitting, who, add, Wide { width }, 0).await?;
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, expected, "{splitting:?}");
            let tasks = cx.statistics().await?.tasks - before;
            let is_lazy = splitting == Splitting::StealDriven;
            assert!(!is_lazy || tasks < 2000, "a task only for those that take one: {tasks}");
        }
        Ok(())
    });
}

/// A tree without end.
#[derive(Clone, Serialize, Deserialize)]
struct Endless;

impl Tree for Endless {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        [node.wrapping_mul(2), node.wrapping_mul(2).wrapping_add(1)].into_iter()
    }
}

#[test]
fn a_search_that_is_dropped_ends_everywhere() {
    static VISITS: AtomicU64 = AtomicU64::new(0);
    job(racks(&[2, 1], 1), async |cx| {
        for splitting in [Splitting::Depth(9), Splitting::Budget(100), Splitting::StealDriven] {
            let count = |_: &Endless, _: &u64, (): &mut ()| {
                VISITS.fetch_add(1, Relaxed);
            };
            let search = par_enumerate(&cx, splitting, count, |(), ()| {}, Endless, 1);
            let endless = cx.timeout(Duration::from_millis(50), search).await;
            assert!(endless.is_err(), "{splitting:?} has found the end");
            stands_still(&cx, &VISITS).await;
        }
        Ok(())
    });
}
