//! Tree searches in whole jobs of threads: for every splitting the results of a plain search.
//!
//! | file | what |
//! |---|---|
//! | `main` | every node is visited once |
//! | `splitting` | the number of tasks, and the PEs that take part |
//! | `bound` | the best node, the PEs that learn of it, and the values that are left |
//! | `order` | which nodes a branch and bound begins with |
//! | `first` | the first of the best nodes, with any number of PEs |

mod bound;
mod first;
mod order;
mod splitting;

use crate::common::{hierarchies, job};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;
use ultramarine_testkit::racks;

const SPLITTINGS: [Splitting; 8] = [
    Splitting::Ordered,
    Splitting::Depth(0),
    Splitting::Depth(1),
    Splitting::Depth(4),
    Splitting::Budget(0),
    Splitting::Budget(50),
    Splitting::Budget(1_000_000),
    Splitting::StealDriven,
];

/// A tree whose shape is not known beforehand: how many children a node has is drawn from
/// its number.
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
    for (first, places) in hierarchies().enumerate() {
        job(places, async move |cx| {
            let (tree, root) = (Grown { seed: 1 }, Shoot { number: 7, depth: 0 });
            let mut expected = Shape::default();
            visited(&tree, root.clone(), |node| look(&tree, node, &mut expected));
            assert!(expected.nodes > 100, "{expected:?}");
            // Each of the others on three hierarchies at least.
            let [others @ .., steal_driven] = SPLITTINGS;
            let some = others.into_iter().cycle().skip(2 * first).take(2);
            for splitting in some.chain([steal_driven]) {
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
    job(racks(&[1, 1], 1), async |cx| {
        let path = Path { length: 2_000_000 };
        let count = |_: &Path, _: &u64, found: &mut u64| *found += 1;
        let add = |found: &mut u64, other| *found += other;
        let by_budget = Splitting::Budget(500_000);
        for splitting in
            [Splitting::StealDriven, Splitting::Ordered, Splitting::Depth(3), by_budget]
        {
            let found = par_enumerate(&cx, splitting, count, add, path.clone(), 0).await;
            assert_eq!(found, Ok(path.length), "{splitting:?}");
        }
        Ok(())
    });
}
