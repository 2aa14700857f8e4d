//! The parts of a tree that are left to search, in the order of a depth-first search. It must never
//! know of tasks, nor what is searched for.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Where a part of the tree stands in the order of a depth-first search: parts compare as their
/// nodes do. A part is a row of siblings with all that is below them.
///
/// A task that searches a part may give back its end, again and again. Each piece stands after what
/// the task keeps, and before the pieces that it gave back earlier:
///
/// ```text
///   a part at P:   kept  │ second piece  │ first piece      next part
///   place:         P     │ P.(M-2)       │ P.(M-1)          > P.(M-1)
/// ```
///
/// The upper half of a number counts the pieces, downwards from M; the lower half counts the nodes
/// of a piece, so that the nodes of a piece can be dealt out one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place(Vec<u64>);

impl Place {
    /// The place of the part with this number, of parts that were numbered beforehand.
    pub(super) fn of_part(number: u64) -> Self {
        Place(vec![number])
    }

    /// The place of the piece that is given back after this number of others.
    pub(super) fn of_piece(&self, others: u32) -> Self {
        self.below(u64::from(u32::MAX - 1 - others) << 32)
    }

    /// The place of the same part when it is searched again, before all pieces that the first task
    /// has given back: these are searched again as well, and what is found there counts as later.
    fn again(&self) -> Self {
        self.below(0)
    }

    fn below(&self, number: u64) -> Self {
        Place(self.0.iter().copied().chain([number]).collect())
    }

    /// The place of the nodes of this part after the first ones.
    pub(super) fn after(&self, nodes: usize) -> Self {
        let mut place = self.clone();
        place.0.iter_mut().last().into_iter().for_each(|last| *last += nodes as u64);
        place
    }
}

/// Part of a tree: siblings, with all that is below them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part<N> {
    pub(super) place: Place,
    pub(super) nodes: Vec<N>,
}

/// The parts that wait for a task, and those that tasks have. `S` is a part that is saved to be
/// given to another task.
#[derive(Debug)]
pub(super) struct Pool<N, S> {
    waiting: BTreeMap<Place, Vec<N>>,
    /// The parts that tasks have, by the numbers of the tasks.
    held: HashMap<u64, (Place, S)>,
    /// The number of nodes that wait.
    nodes: usize,
}

impl<N, S> Pool<N, S> {
    pub(super) fn new(first: Part<N>) -> Self {
        let mut pool = Pool { waiting: BTreeMap::new(), held: HashMap::new(), nodes: 0 };
        pool.give(first);
        pool
    }

    /// Adds a part.
    pub(super) fn give(&mut self, part: Part<N>) {
        self.nodes += part.nodes.len();
        let former = self.waiting.insert(part.place, part.nodes);
        debug_assert!(former.is_none(), "a place is given once");
    }

    /// Takes out the first nodes, of one part: at most this number, and no more than half of the
    /// part, or one.
    pub(super) fn take(&mut self, most: usize) -> Option<Part<N>> {
        let (place, mut nodes) = self.waiting.pop_first()?;
        let taken = most.min(nodes.len().div_ceil(2)).max(1);
        let rest = nodes.split_off(taken);
        if !rest.is_empty() {
            self.waiting.insert(place.after(taken), rest);
        }
        self.nodes -= nodes.len();
        Some(Part { place, nodes })
    }

    /// A task has a part.
    pub(super) fn hold(&mut self, task: u64, place: Place, saved: S) {
        self.held.insert(task, (place, saved));
    }

    /// A task has searched the part at this place. Returns whether it had one there.
    pub(super) fn end(&mut self, task: u64, place: &Place) -> bool {
        let is_held = self.held.get(&task).is_some_and(|(held, _)| held == place);
        is_held.then(|| self.held.remove(&task)).is_some()
    }

    /// The part that a task has. If it asks for one, it runs for a second time.
    pub(super) fn held(&mut self, task: u64) -> Option<(&Place, &S)> {
        let (place, saved) = self.held.get_mut(&task)?;
        *place = place.again();
        Some((place, saved))
    }

    /// The number of nodes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.nodes
    }

    /// The number of tasks that have, or could have, a part.
    pub(super) fn tasks(&self) -> usize {
        self.held.len() + self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches a row of numbers by tasks that take parts, keep the first number, and give the rest
    /// back in two pieces; with `deaths`, a task may run again when it has given them back.
    fn order(steps: Vec<(usize, bool)>) -> Vec<(Place, u32)> {
        let root = Part { place: Place::default(), nodes: (0..40).collect() };
        let (mut pool, mut seen) = (Pool::<u32, Vec<u32>>::new(root), Vec::new());
        let mut steps = steps.into_iter().cycle();
        while pool.tasks() > 0 {
            let (most, dies) = steps.next().expect("it never ends");
            let Part { mut place, mut nodes } = pool.take(most).expect("none is held");
            pool.hold(7, place.clone(), nodes.clone());
            for run in 0..=u8::from(dies) {
                if run == 1 {
                    let (again, saved) = pool.held(7).expect("it has not ended");
                    (place, nodes) = (again.clone(), saved.clone());
                }
                seen.push((place.clone(), nodes[0]));
                let mut rest = nodes.split_off(1);
                let last = rest.split_off(rest.len() / 2);
                for (others, nodes) in (0..).zip([last, rest]) {
                    if !nodes.is_empty() {
                        pool.give(Part { place: place.of_piece(others), nodes });
                    }
                }
            }
            assert!(!pool.end(7, &Place::of_part(99)) && pool.end(7, &place));
        }
        seen
    }

    proptest! {
        #[test]
        fn places_are_in_the_order_of_the_nodes(
            steps in prop::collection::vec((0..9_usize, Just(false)), 1..9),
        ) {
            let mut seen = order(steps);
            prop_assert!(seen.iter().map(|(_, n)| *n).eq(0..40), "the first is taken first");
            seen.sort();
            prop_assert!(seen.iter().map(|(_, n)| *n).eq(0..40));
        }

        #[test]
        fn what_is_searched_again_is_before_what_the_dead_gave_back(
            steps in prop::collection::vec((1..9_usize, any::<bool>()), 1..6),
        ) {
            // At the first place of each number, which is that of a task that ran to its end.
            let mut seen = order(steps.into_iter().chain([(1, false)]).collect());
            seen.sort();
            let mut known = std::collections::BTreeSet::new();
            seen.retain(|(_, n)| known.insert(*n));
            prop_assert!(seen.iter().map(|(_, n)| *n).eq(0..40), "{seen:?}");
        }
    }
}
