//! The frontier: the nodes that a task of a search has not visited yet. It must never know of
//! tasks, nor why nodes are taken out.

use std::collections::VecDeque;
use std::vec;

/// The largest number of nodes taken out at a time: enough to keep thieves busy, and few enough to
/// be cheap to send. The docs of [`Splitting`](super::Splitting) state this number, too.
pub(super) const HANDED_OVER_MAX: usize = 256;

/// The nodes that a task of a search has not visited yet: the siblings still to visit on each level
/// from its first nodes down to its current node. They are iterators, so that a node is generated
/// only when its turn comes.
///
/// ```
/// use ultramarine_skeletons::Frontier;
///
/// // Node `n` has the children `0..n`.
/// let mut frontier = Frontier::new(vec![3]);
/// let mut visited = Vec::new();
/// while let Some(n) = frontier.next() {
///     visited.push(n);
///     frontier.descend(0..n);
/// }
/// assert_eq!(visited, [3, 0, 1, 0, 2, 0, 1, 0]);
/// ```
#[derive(Debug)]
pub struct Frontier<I, N> {
    levels: VecDeque<Level<I, N>>,
}

/// Nodes, and the bound of the one whose children they are.
#[derive(Debug)]
pub(super) struct Level<I, N> {
    pub(super) nodes: Nodes<I, N>,
    pub(super) ceiling: u64,
}

/// Those that are left of a level.
#[derive(Debug)]
pub(super) enum Nodes<I, N> {
    /// All are children of one node.
    Lazy(I),
    /// Children of one node that were generated early, by a split.
    Siblings(vec::IntoIter<N>),
    /// Any nodes.
    Assorted(vec::IntoIter<N>),
}

impl<I: Iterator<Item = N>, N> Level<I, N> {
    /// The children of a node of this bound.
    pub(super) fn below(ceiling: u64, children: I) -> Self {
        Level { nodes: Nodes::Lazy(children), ceiling }
    }

    fn are_siblings(&self) -> bool {
        !matches!(self.nodes, Nodes::Assorted(_))
    }

    #[inline]
    fn next(&mut self) -> Option<N> {
        match &mut self.nodes {
            Nodes::Lazy(nodes) => nodes.next(),
            Nodes::Siblings(nodes) | Nodes::Assorted(nodes) => nodes.next(),
        }
    }
}

impl<I: Iterator<Item = N>, N> Frontier<I, N> {
    /// Begins with these nodes.
    pub fn new(nodes: Vec<N>) -> Self {
        Frontier::begin(Nodes::Assorted(nodes.into_iter()))
    }

    /// Begins with children of one node.
    pub(super) fn of_siblings(nodes: Vec<N>) -> Self {
        Frontier::begin(Nodes::Siblings(nodes.into_iter()))
    }

    fn begin(nodes: Nodes<I, N>) -> Self {
        Frontier { levels: VecDeque::from([Level { nodes, ceiling: u64::MAX }]) }
    }

    /// Continues with the children of the last node.
    #[inline]
    pub fn descend(&mut self, children: I) {
        // Most nodes of most trees are leaves, and their iterators often know it.
        if children.size_hint().1 != Some(0) {
            self.levels.push_back(Level::below(u64::MAX, children));
        }
    }

    /// Takes out the level of the last node.
    pub(super) fn pop_lowest(&mut self) -> Option<Level<I, N>> {
        self.levels.pop_back()
    }

    /// Adds levels, the lowest last.
    pub(super) fn extend(&mut self, levels: impl IntoIterator<Item = Level<I, N>>) {
        self.levels.extend(levels);
    }

    /// Takes out every other node, from the highest level down, because the largest subtrees are at
    /// the top. Both halves have about the same number of nodes, unless the limit
    /// 256 is reached.
    pub fn split(&mut self) -> Vec<N> {
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
            let (are_siblings, ceiling) = (level.are_siblings(), level.ceiling);
            if parted.len() == HANDED_OVER_MAX {
                // Nodes not yet looked at come after those kept.
                levels.push(level);
            }
            // An empty level would be looked at again by each split.
            if !kept.is_empty() {
                let kept = kept.into_iter();
                let nodes =
                    if are_siblings { Nodes::Siblings(kept) } else { Nodes::Assorted(kept) };
                levels.push(Level { nodes, ceiling });
            }
        }
        levels.into_iter().rev().for_each(|level| self.levels.push_front(level));
        parted
    }

    /// Takes out the nodes of the highest level that has any, at most 256. Further
    /// nodes stay.
    pub fn take_highest(&mut self) -> Vec<N> {
        while let Some(level) = self.levels.front_mut() {
            let nodes: Vec<N> = std::iter::from_fn(|| level.next()).take(HANDED_OVER_MAX).collect();
            if !nodes.is_empty() {
                return nodes;
            }
            self.levels.pop_front();
        }
        Vec::new()
    }

    /// Takes out the highest level.
    pub(super) fn take_level(&mut self) -> Self {
        Frontier { levels: self.levels.pop_front().into_iter().collect() }
    }
}

impl<I: Iterator<Item = N>, N> Iterator for Frontier<I, N> {
    type Item = N;

    /// The next node in depth-first order.
    #[inline]
    fn next(&mut self) -> Option<N> {
        while let Some(level) = self.levels.back_mut() {
            if let Some(node) = level.next() {
                return Some(node);
            }
            self.levels.pop_back();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree in which node `n` has the children `0..n`.
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
        assert_eq!(one, [7], "a single node goes to the idle worker");
    }

    #[test]
    fn the_nodes_that_stay_keep_their_order() {
        let mut frontier = Frontier::<std::ops::Range<u32>, _>::new(vec![5, 9]);
        assert_eq!(frontier.next(), Some(5));
        frontier.descend(children(5));
        assert_eq!(frontier.take_highest(), [9]);
        assert_eq!(visit(&mut frontier, 1), [0]);
    }
}
