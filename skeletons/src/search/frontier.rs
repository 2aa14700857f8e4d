//! What a search has still to visit: it must never know of tasks, nor why something is taken out.

use std::collections::VecDeque;
use std::vec;

/// How many nodes are handed over at a time at most: enough for thieves to be busy, and few enough
/// that their bytes do not matter. [`Splitting`](super::Splitting) says this number, too.
const HANDED_OVER_MAX: usize = 256;

/// The siblings still to visit on each level between a task's first nodes and the node that it has
/// come to: iterators, so that nothing is generated before its turn comes.
pub(super) struct Frontier<I, N> {
    levels: VecDeque<Level<I, N>>,
}

struct Level<I, N> {
    /// Generated ahead of time, to be divided.
    listed: vec::IntoIter<N>,
    lazy: Option<I>,
}

impl<I: Iterator<Item = N>, N> Level<I, N> {
    #[inline]
    fn next(&mut self) -> Option<N> {
        self.listed.next().or_else(|| self.lazy.as_mut()?.next())
    }
}

impl<I: Iterator<Item = N>, N> Frontier<I, N> {
    pub(super) fn new(nodes: Vec<N>) -> Self {
        let first = Level { listed: nodes.into_iter(), lazy: None };
        Frontier { levels: VecDeque::from([first]) }
    }

    /// The next node in depth-first order.
    #[inline]
    pub(super) fn next(&mut self) -> Option<N> {
        while let Some(level) = self.levels.back_mut() {
            if let Some(node) = level.next() {
                return Some(node);
            }
            self.levels.pop_back();
        }
        None
    }

    /// Goes down to the children of the node that came last.
    #[inline]
    pub(super) fn descend(&mut self, children: I) {
        // Most nodes of most trees are leaves, and many of their iterators say so.
        if children.size_hint().1 != Some(0) {
            let listed = Vec::new().into_iter();
            self.levels.push_back(Level { listed, lazy: Some(children) });
        }
    }

    /// Leaves out the siblings of the node that came last, as far as they have not been generated.
    pub(super) fn leave_siblings(&mut self) {
        if let Some(level) = self.levels.back_mut() {
            level.lazy = None;
        }
    }

    /// Takes out every other node of all levels, beginning with the highest, where the largest
    /// subtrees are. What stays and what goes are about the same, if there are not too many to look
    /// at.
    pub(super) fn split(&mut self) -> Vec<N> {
        let (mut parted, mut levels) = (Vec::new(), Vec::new());
        let mut goes = false;
        while parted.len() < HANDED_OVER_MAX
            && let Some(mut level) = self.levels.pop_front()
        {
            let mut kept = Vec::new();
            while parted.len() < HANDED_OVER_MAX
                && let Some(node) = level.next()
            {
                goes = !goes;
                if goes { parted.push(node) } else { kept.push(node) }
            }
            if parted.len() == HANDED_OVER_MAX {
                // What was not looked at comes after what was.
                levels.push(level);
            }
            // Levels without any nodes would be looked at again each time.
            if !kept.is_empty() {
                levels.push(Level { listed: kept.into_iter(), lazy: None });
            }
        }
        levels.into_iter().rev().for_each(|level| self.levels.push_front(level));
        parted
    }

    /// Takes out what is left of the highest level that has anything left, up to
    /// [`HANDED_OVER_MAX`] nodes. Beyond that they stay.
    pub(super) fn take_highest(&mut self) -> Vec<N> {
        while let Some(level) = self.levels.front_mut() {
            let nodes: Vec<N> = std::iter::from_fn(|| level.next()).take(HANDED_OVER_MAX).collect();
            if !nodes.is_empty() {
                return nodes;
            }
            self.levels.pop_front();
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A node of a tree in which each has as many children as it has left.
    fn children(n: u32) -> std::ops::Range<u32> {
        0..n
    }

    fn visit(frontier: &mut Frontier<std::ops::Range<u32>, u32>, most: usize) -> Vec<u32> {
        let mut seen = Vec::new();
        while seen.len() < most
            && let Some(n) = frontier.next()
        {
            seen.push(n);
            frontier.descend(children(n));
        }
        seen
    }

    proptest! {
        #[test]
        fn each_node_is_visited_by_one(
            first in prop::collection::vec(0..7_u32, 0..9),
            steps in prop::collection::vec((0..40_usize, any::<bool>()), 0..12),
        ) {
            let mut all = visit(&mut Frontier::new(first.clone()), usize::MAX);
            let mut frontiers = vec![Frontier::new(first)];
            let mut seen = Vec::new();
            for (most, halves) in steps {
                let last = frontiers.last_mut().expect("there is one");
                seen.extend(visit(last, most));
                let parted = if halves { last.split() } else { last.take_highest() };
                frontiers.push(Frontier::new(parted));
            }
            for mut frontier in frontiers {
                seen.extend(visit(&mut frontier, usize::MAX));
            }
            all.sort_unstable();
            seen.sort_unstable();
            prop_assert_eq!(seen, all);
        }
    }

    #[test]
    fn about_half_goes() {
        let mut frontier = Frontier::<std::ops::Range<u32>, _>::new((0..100).collect());
        assert_eq!(frontier.split().len(), 50);
        assert_eq!(std::iter::from_fn(|| frontier.next()).count(), 50);
        let mut long = Frontier::<std::ops::Range<u32>, _>::new((0..10_000).collect());
        assert_eq!(long.split().len(), HANDED_OVER_MAX);
        let mut endless = Frontier::<std::ops::Range<u32>, _>::new(vec![u32::MAX]);
        assert_eq!(endless.next(), Some(u32::MAX));
        endless.descend(0..u32::MAX);
        assert_eq!(endless.split().len(), HANDED_OVER_MAX);
        assert_eq!(endless.take_highest().len(), HANDED_OVER_MAX);
        let one = Frontier::<std::ops::Range<u32>, _>::new(vec![7]).split();
        assert_eq!(one, [7], "a single one is better with the idle");
    }

    #[test]
    fn siblings_that_do_not_exist_yet_can_be_left_out() {
        let mut frontier = Frontier::<std::ops::Range<u32>, _>::new(vec![5, 9]);
        assert_eq!(frontier.next(), Some(5));
        frontier.descend(children(5));
        assert_eq!(frontier.next(), Some(0));
        frontier.leave_siblings();
        assert_eq!(frontier.next(), Some(9));
        frontier.leave_siblings();
        assert_eq!(frontier.next(), None);
    }

    #[test]
    fn the_order_of_what_stays_is_kept() {
        let mut frontier = Frontier::<std::ops::Range<u32>, _>::new(vec![5, 9]);
        assert_eq!(frontier.next(), Some(5));
        frontier.descend(children(5));
        assert_eq!(frontier.take_highest(), [9]);
        assert_eq!(visit(&mut frontier, 1), [0]);
    }
}
