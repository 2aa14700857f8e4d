//! Tree searches in whole jobs of threads: what a plain search finds, however the work is split.

mod common;

use common::hierarchies::{hierarchies, job, racks};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;

const SPLITTINGS: [Splitting; 7] = [
    Splitting::Depth(0),
    Splitting::Depth(1),
    Splitting::Depth(4),
    Splitting::Budget(0),
    Splitting::Budget(50),
    Splitting::Budget(1_000_000),
    Splitting::StealDriven,
];

/// A tree of which nobody knows the shape beforehand: how many children a node has is drawn from its
/// number.
#[derive(Clone, Serialize, Deserialize)]
struct Grown {
    seed: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Shoot {
    number: u64,
    depth: u32,
}

impl Tree for Grown {
    type Node = Shoot;

    fn children(&self, node: Shoot) -> impl Iterator<Item = Shoot> + Send {
        let drawn = (node.number ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = if node.depth > 40 { 0 } else { [0, 0, 1, 4][(drawn >> 62) as usize] };
        let count = if node.depth < 4 { 3 } else { count };
        let child = move |n: u64| Shoot {
            number: drawn.wrapping_add(n).rotate_left(17),
            depth: node.depth + 1,
        };
        (0..count).map(child)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Shape {
    nodes: u64,
    depth: u32,
    sum: u64,
}

fn look(_: &Grown, node: &Shoot, shape: &mut Shape) {
    shape.nodes += 1;
    shape.depth = shape.depth.max(node.depth);
    shape.sum = shape.sum.wrapping_add(node.number);
}

fn add(shape: &mut Shape, other: Shape) {
    shape.nodes += other.nodes;
    shape.depth = shape.depth.max(other.depth);
    shape.sum = shape.sum.wrapping_add(other.sum);
}

/// By a plain stack.
fn visited<T: Tree<Node: Clone>>(tree: &T, root: T::Node, mut look: impl FnMut(&T::Node)) {
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        look(&node);
        stack.extend(tree.children(node));
    }
}

#[test]
fn every_node_is_visited_once() {
    for places in hierarchies() {
        job(places, async |cx| {
            let (tree, root) = (Grown { seed: 1 }, Shoot { number: 7, depth: 0 });
            let mut expected = Shape::default();
            visited(&tree, root.clone(), |node| look(&tree, node, &mut expected));
            assert!(expected.nodes > 100, "{expected:?}");
            for splitting in SPLITTINGS {
                let (tree, root) = (tree.clone(), root.clone());
                let supervised = cx.supervised();
                let shape = par_enumerate(&supervised, splitting, look, add, tree, root).await;
                assert_eq!(shape, Ok(expected), "{splitting:?}");
            }
            Ok(())
        });
    }
}

/// A path, whose nodes are numbers.
#[derive(Clone, Serialize, Deserialize)]
struct Path {
    length: u64,
}

impl Tree for Path {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        (node + 1..).take(usize::from(node + 1 < self.length))
    }
}

#[test]
fn a_tree_may_be_as_deep_as_it_likes() {
    job(racks(&[1, 1]), async |cx| {
        let path = Path { length: 2_000_000 };
        let count = |_: &Path, _: &u64, found: &mut u64| *found += 1;
        let add = |found: &mut u64, other| *found += other;
        for splitting in [Splitting::StealDriven, Splitting::Depth(3), Splitting::Budget(500_000)] {
            let found = par_enumerate(&cx, splitting, count, add, path.clone(), 0).await;
            assert_eq!(found, Ok(path.length), "{splitting:?}");
        }
        Ok(())
    });
}

#[test]
fn others_take_part_when_it_is_steal_driven() {
    job(racks(&[2, 1]), async |cx| {
        let who = |_: &Path, _: &u64, found: &mut Vec<u32>| {
            let here = common::hierarchies::here();
            if !found.contains(&here) {
                found.push(here);
            }
        };
        let add = |found: &mut Vec<u32>, other: Vec<u32>| found.extend(other);
        let wide = Wide { width: 20_000 };
        let who_wide =
            move |_: &Wide, n: &u64, found: &mut Vec<u32>| who(&Path { length: 0 }, n, found);
        let mut found = par_enumerate(&cx, Splitting::StealDriven, who_wide, add, wide, 0).await?;
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [0, 1, 2]);
        let counts = cx.statistics().await?;
        assert!(counts.tasks < 2000, "a task only for whoever takes one: {}", counts.tasks);
        Ok(())
    });
}

/// A root with so many leaves.
#[derive(Clone, Serialize, Deserialize)]
struct Wide {
    width: u64,
}

impl Tree for Wide {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        1..if node == 0 { self.width } else { 0 }
    }
}

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
    for places in hierarchies() {
        job(places, async |cx| {
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
        // Only whoever gets the second half of the first nodes finds it.
        (*node > 0 && common::hierarchies::here() == 1).then_some(5)
    }

    fn bound(&self, node: &u64) -> u64 {
        if *node == 0 { u64::MAX - 1 } else { 5 }
    }
}

#[test]
fn what_one_pe_finds_the_others_need_not_beat() {
    job(racks(&[1, 1]), async |cx| {
        // PE 0 would go on for ever if it did not hear of what PE 1 finds.
        let found = par_maximise(&cx, Splitting::StealDriven, Row, 0).await?;
        assert_eq!(found.map(|(value, _)| value), Some(5));
        Ok(())
    });
}

/// The same without any solution.
#[derive(Clone, Serialize, Deserialize)]
struct NoSolution(Knapsack);

impl Tree for NoSolution {
    type Node = Packed;

    fn children(&self, node: Packed) -> impl Iterator<Item = Packed> + Send {
        self.0.children(node)
    }
}

impl Bounded for NoSolution {
    fn value(&self, _: &Packed) -> Option<u64> {
        None
    }

    fn bound(&self, _: &Packed) -> u64 {
        u64::MAX
    }
}
