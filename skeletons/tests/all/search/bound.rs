//! Branch and bound: the best node, the PEs that learn of it, and the values that are left.

use super::{SPLITTINGS, visited};
use crate::common::{NoSolution, here, job, on_all_hierarchies};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options};
use ultramarine_testkit::racks;

/// Which things to take, of a value and a weight each, so that they can be carried.
#[derive(Clone, Serialize, Deserialize)]
struct Knapsack {
    things: Vec<(u64, u64)>,
    capacity: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Packed {
    next: usize,
    value: u64,
    weight: u64,
}

impl Tree for Knapsack {
    type Node = Packed;

    fn children(&self, node: Packed) -> impl Iterator<Item = Packed> + Send {
        let thing = self.things.get(node.next).copied();
        let (next, capacity) = (node.next + 1, self.capacity);
        thing
            .into_iter()
            .flat_map(move |(value, weight)| {
                let with = Packed { next, value: node.value + value, weight: node.weight + weight };
                [with, Packed { next, ..node.clone() }]
            })
            .filter(move |node| node.weight <= capacity)
    }
}

impl Bounded for Knapsack {
    // To take a thing is worth more than to leave it.
    fn has_falling_bounds(&self) -> bool {
        true
    }

    fn value(&self, node: &Packed) -> Option<u64> {
        (node.next == self.things.len()).then_some(node.value)
    }

    fn bound(&self, node: &Packed) -> u64 {
        node.value + self.things.iter().skip(node.next).map(|(value, _)| value).sum::<u64>()
    }
}

#[test]
fn the_best_is_found_however_the_work_is_split() {
    on_all_hierarchies(async |cx| {
        for seed in 1..4_u64 {
            let drawn = |n: u64| (n * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
            let things: Vec<_> = (1..=14).map(|n| (drawn(n) + 1, drawn(n + 99) + 1)).collect();
            let knapsack = Knapsack { things, capacity: 60 };
            let root = Packed { next: 0, value: 0, weight: 0 };
            let mut best = None;
            visited(&knapsack, root.clone(), |node| best = best.max(knapsack.value(node)));
            for splitting in SPLITTINGS {
                let (tree, root) = (knapsack.clone(), root.clone());
                let found = par_maximise(&cx.supervised(), splitting, tree, root).await?;
                let (value, node) = found.expect("one may always take nothing");
                assert_eq!((Some(value), node.value), (best, value), "{splitting:?}");
                assert!(node.weight <= 60 && node.next == 14, "{node:?}");
            }
        }
        let none = Knapsack { things: vec![], capacity: 0 };
        let beyond = Packed { next: 1, value: 0, weight: 0 };
        let found = par_maximise(&cx, Splitting::StealDriven, NoSolution(none), beyond).await?;
        assert!(found.is_none());
        Ok(())
    });
}

/// A long row of leaves, of which the first few hundred are no good, and the rest cannot beat 5.
#[derive(Clone, Serialize, Deserialize)]
struct Row;

impl Tree for Row {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        1..if node == 0 { u64::MAX } else { 0 }
    }
}

impl Bounded for Row {
    fn has_falling_bounds(&self) -> bool {
        true
    }

    fn value(&self, node: &u64) -> Option<u64> {
        // Only the PE with the second half of the first nodes finds it.
        (*node > 0 && here() == 1).then_some(5)
    }

    fn bound(&self, node: &u64) -> u64 {
        if *node == 0 { u64::MAX - 1 } else { 5 }
    }
}

#[test]
fn a_solution_of_one_pe_bounds_the_others() {
    job(racks(&[1, 1], 1), async |cx| {
        // PE 0 would go on for ever if it did not learn of PE 1's solution.
        let found = par_maximise(&cx, Splitting::StealDriven, Row, 0).await?;
        assert_eq!(found.map(|(value, _)| value), Some(5));
        Ok(())
    });
}

/// A root that is a solution, and paths below it, endless for a PE that has not heard of the root.
#[derive(Clone, Serialize, Deserialize)]
struct Paths;

/// Whether PE 1 has been on one of the paths.
static HAS_JOINED: AtomicBool = AtomicBool::new(false);

impl Tree for Paths {
    type Node = u64;

    fn children(&self, depth: u64) -> impl Iterator<Item = u64> + Send {
        std::iter::repeat_n(depth + 1, if depth == 0 { 500 } else { 1 })
    }
}

impl Bounded for Paths {
    fn value(&self, depth: &u64) -> Option<u64> {
        (*depth == 0).then_some(5)
    }

    fn bound(&self, depth: &u64) -> u64 {
        if here() == 1 {
            HAS_JOINED.store(true, Ordering::Relaxed);
        }
        if *depth == 0 { u64::MAX - 1 } else { 5 }
    }
}

#[test]
fn a_pe_that_joins_late_learns_of_earlier_solutions() {
    job(racks(&[1, 1], 1), async |cx| {
        for _ in 0..100 {
            let found = par_maximise(&cx, Splitting::Depth(1), Paths, 0).await?;
            assert_eq!(found, Some((5, 0)));
            if HAS_JOINED.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        panic!("PE 1 never took part");
    });
}

/// The number of values that PEs still share when all have been told to forget them.
async fn left(cx: &Context) -> Result<usize, TaskError> {
    let mut left = 0;
    // Words to forget may be on their way.
    for _ in 0..500 {
        left = 0;
        for pe in (0..cx.pes()).map(Pe::new) {
            left += cx.spawn_at(pe, async |cx: Context, ()| cx.shared_count(), ()).await?;
        }
        if left == 0 {
            break;
        }
        cx.sleep(Duration::from_millis(10)).await;
    }
    Ok(left)
}

#[test]
fn nothing_is_left_of_a_search() {
    let jobs = [
        (1, 1, LaneKind::Memory),
        (2, 1, LaneKind::Memory),
        (2, 2, LaneKind::Memory),
        (2, 2, LaneKind::Tcp),
    ];
    for (pes, threads, lane) in jobs {
        let job = Options::default().pes(pes).threads(threads).lane(lane);
        let result = job.run(async move |cx| {
            let root = Packed { next: 0, value: 0, weight: 0 };
            // The root is the solution, and so found just before the end.
            let small = Knapsack { things: vec![], capacity: 0 };
            let large = Knapsack { things: (1..9).map(|n| (n, n)).collect(), capacity: 20 };
            let count = |_: &Knapsack, _: &Packed, found: &mut u64| *found += 1;
            let add = |found: &mut u64, other| *found += other;
            let (none, some) = (Splitting::Depth(0), Splitting::Depth(3));
            for splitting in [none, some, Splitting::StealDriven, Splitting::Ordered] {
                for _ in 0..20 {
                    for tree in [&small, &large] {
                        par_maximise(&cx, splitting, tree.clone(), root.clone()).await?;
                    }
                    let (tree, root) = (large.clone(), root.clone());
                    par_enumerate(&cx, splitting, count, add, tree, root).await?;
                }
                let folder = tempfile::tempdir()?;
                let kept = maximise(splitting, large.clone(), root.clone());
                kept.journal(folder.path().join("best")).records(9).run(&cx).await?;
            }
            assert_eq!(left(&cx).await?, 0, "{pes} PEs of {threads} threads, {lane:?}");
            Ok(())
        });
        result.expect("the job is well");
    }
}

/// The values of which a search has told, and that of the node it has returned.
async fn told(cx: &Context, journal: Option<&std::path::Path>) -> (Vec<u64>, u64) {
    let things = (1..=12).map(|n| (n * 7 % 11 + 1, n * 5 % 13 + 1)).collect();
    let knapsack = Knapsack { things, capacity: 40 };
    let root = Packed { next: 0, value: 0, weight: 0 };
    let values = Arc::new(Mutex::new(Vec::new()));
    let heard = values.clone();
    let search = maximise(Splitting::Budget(1), knapsack, root).on_better(move |value, node| {
        assert_eq!(value, node.value);
        heard.lock().unwrap().push(value);
    });
    let found = search.optional_journal(journal).run(cx).await.expect("it is well");
    let values = std::mem::take(&mut *values.lock().unwrap());
    (values, found.expect("one may take nothing").0)
}

#[test]
fn who_waits_hears_of_better_nodes() {
    on_all_hierarchies(async |cx| {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("best.journal");
        for journal in [None, Some(&*path), Some(&*path)] {
            let (values, best) = told(&cx.supervised(), journal).await;
            assert!(values.is_sorted_by(|one, next| one < next), "{values:?}");
            assert_eq!(values.last(), Some(&best), "{values:?}");
        }
        Ok(())
    });
}

/// A path of this number of nodes, of which the last is the best.
#[derive(Clone, Serialize, Deserialize)]
struct Stair(u64);

impl Tree for Stair {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        (node + 1..).take(usize::from(node + 1 < self.0))
    }
}

impl Bounded for Stair {
    fn value(&self, node: &u64) -> Option<u64> {
        Some(*node)
    }

    fn bound(&self, _: &u64) -> u64 {
        self.0
    }
}

#[test]
fn a_path_is_searched_to_its_end() {
    on_all_hierarchies(async |cx| {
        let steps = 100_000;
        for splitting in [Splitting::Ordered, Splitting::StealDriven] {
            let search = maximise(splitting, Stair(steps), 0);
            assert_eq!(search.run(&cx).await?, Some((steps - 1, steps - 1)), "{splitting:?}");
        }
        Ok(())
    });
}

#[cfg(debug_assertions)]
#[test]
fn a_bound_that_is_too_low_is_reported() {
    job(racks(&[1, 1], 1), async |cx| {
        for splitting in [Splitting::Ordered, Splitting::StealDriven] {
            let found = par_maximise(&cx, splitting, LowChild, 0).await;
            let error = found.expect_err("the bound is wrong").to_string();
            assert!(error.contains("`Bounded::bound` is too low: 5"), "{error}");
        }
        Ok(())
    });
}

/// A root with a bound of 5, and a child of value 6.
#[derive(Clone, Serialize, Deserialize)]
struct LowChild;

impl Tree for LowChild {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        std::iter::repeat_n(6, usize::from(node == 0))
    }
}

impl Bounded for LowChild {
    fn value(&self, node: &u64) -> Option<u64> {
        Some(*node)
    }

    fn bound(&self, node: &u64) -> u64 {
        if *node == 0 { 5 } else { 9 }
    }
}

/// A root and its leaves, whose values are asked for only if their bounds allow it.
#[derive(Clone, Serialize, Deserialize)]
struct Valued;

impl Tree for Valued {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        1..if node == 0 { 100 } else { 0 }
    }
}

impl Bounded for Valued {
    fn value(&self, node: &u64) -> Option<u64> {
        assert!(*node <= 1, "the value of {node} is asked for, though it cannot beat 7");
        Some(7 * *node)
    }

    fn bound(&self, node: &u64) -> u64 {
        if *node == 0 { 8 } else { 7 }
    }
}

#[test]
fn a_node_is_pruned_before_its_value_is_asked_for() {
    job(racks(&[1], 1), async |cx| {
        for splitting in SPLITTINGS {
            assert_eq!(par_maximise(&cx, splitting, Valued, 0).await?, Some((7, 1)));
        }
        Ok(())
    });
}
