//! The first of the best nodes, in the order of a search by one worker: the same with any number of
//! PEs. Most nodes of these trees are equally good.

use crate::common::{job, on_all_hierarchies};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;
use ultramarine_testkit::racks;

/// A tree in which each node has some of these numbers of children. Nodes are numbered by their
/// parents, so that different ones are unequal. All at depth `deepest` have the same value.
#[derive(Clone, Serialize, Deserialize)]
struct Equals {
    widths: Vec<u64>,
    deepest: u32,
}

/// Its number and its depth.
type Numbered = (u64, u32);

impl Equals {
    /// Takes about a microsecond.
    fn mixed(number: u64) -> u64 {
        (0..200).fold(number, |mixed, n| (mixed ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3)
    }
}

impl Tree for Equals {
    type Node = Numbered;

    fn children(&self, (number, depth): Numbered) -> impl Iterator<Item = Numbered> + Send {
        let mixed = Equals::mixed(number);
        let width = self.widths[mixed as usize % self.widths.len()];
        let width = if depth == self.deepest { 0 } else { width };
        (0..width).map(move |n| (mixed.wrapping_add(n), depth + 1))
    }
}

impl Bounded for Equals {
    /// The best are rare, and equally good.
    fn value(&self, (number, depth): &Numbered) -> Option<u64> {
        (*depth == self.deepest).then(|| u64::from(Equals::mixed(*number).is_multiple_of(64)))
    }

    fn bound(&self, _: &Numbered) -> u64 {
        1
    }
}

/// The first of the best nodes, by a search without a bound.
fn first_of(tree: &Equals, root: Numbered) -> Option<(u64, Numbered)> {
    let (mut best, mut stack) = (None::<(u64, Numbered)>, vec![root]);
    while let Some(node) = stack.pop() {
        let value = tree.value(&node);
        if value > best.map(|(value, _)| value) {
            best = value.map(|value| (value, node));
        }
        let children: Vec<_> = tree.children(node).collect();
        stack.extend(children.into_iter().rev());
    }
    best
}

/// More than 256 siblings, the most that are handed over at a time; many levels; and leaves only.
fn trees() -> impl Iterator<Item = (Equals, Numbered)> {
    let shapes = [(vec![3000], 1), (vec![300, 2], 2), (vec![2, 3, 0, 4], 12), (vec![0], 3)];
    shapes.into_iter().flat_map(|(widths, deepest)| {
        (1..6).map(move |root| (Equals { widths: widths.clone(), deepest }, (root, 0)))
    })
}

#[test]
fn the_first_of_the_best_is_found_by_any_number_of_pes() {
    on_all_hierarchies(async |cx| {
        for (tree, root) in trees() {
            let expected = first_of(&tree, root);
            let search = maximise(Splitting::StealDriven, tree.clone(), root).first();
            let found = search.run(&cx.supervised()).await?;
            assert_eq!(found, expected, "{:?} from {root:?}", tree.widths);
        }
        Ok(())
    });
}

#[test]
fn the_first_is_found_however_often_it_is_searched_for() {
    job(racks(&[2, 1], 1), async |cx| {
        // Later nodes of the same value are found first, now and then.
        let (tree, root) = (Equals { widths: vec![400, 2, 3], deepest: 5 }, (9, 0));
        let expected = first_of(&tree, root);
        for _ in 0..50 {
            let search = maximise(Splitting::Ordered, tree.clone(), root).first();
            assert_eq!(search.run(&cx).await?, expected);
        }
        Ok(())
    });
}

#[test]
fn a_tree_of_one_child_a_level_may_be_deep() {
    job(racks(&[1, 1], 1), async |cx| {
        let (tree, root) = (Equals { widths: vec![1], deepest: 100_000 }, (3, 0));
        let expected = first_of(&tree, root);
        for splitting in [Splitting::Ordered, Splitting::StealDriven, Splitting::Budget(1000)] {
            let found = maximise(splitting, tree.clone(), root).run(&cx.supervised()).await?;
            assert_eq!(found, expected, "{splitting:?}");
        }
        Ok(())
    });
}
