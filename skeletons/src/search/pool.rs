//! The parts of a tree that are left to search, in the order of a depth-first search. It must never
//! know of tasks, nor what is searched for.
//!
//! Their nodes are encoded. So those that a task has are kept at no cost, for another that may run
//! in its place; and no worker frees what another has allocated, which can be slow.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::wire::{WireError, decode_first, encode_into};

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

    /// Whether it is that of the part at this place, or of the same part when it is searched again.
    fn is_of(&self, place: &Place) -> bool {
        let again = self.0.strip_prefix(place.0.as_slice());
        again.is_some_and(|again| again.iter().all(|number| *number == 0))
    }

    /// The place of the nodes of this part after the first ones.
    pub(super) fn after(&self, nodes: usize) -> Self {
        let mut place = self.clone();
        place.0.iter_mut().last().into_iter().for_each(|last| *last += nodes as u64);
        place
    }
}

/// Part of a tree: siblings, with all that is below them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) place: Place,
    nodes: Nodes,
}

impl Part {
    pub(super) fn new<N: Serialize>(place: Place, nodes: &[N]) -> Result<Self, TaskError> {
        Ok(Part { place, nodes: Nodes::encoded(nodes).map_err(|error| codec_error(&error))? })
    }

    pub(super) fn nodes<N: DeserializeOwned>(&self) -> Result<Vec<N>, TaskError> {
        self.nodes.decoded().map_err(|error| codec_error(&error))
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.ends.len()
    }
}

fn codec_error(error: &WireError) -> TaskError {
    TaskError::Codec { what: "part of a tree".to_owned(), reason: error.to_string() }
}

/// Encoded nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Nodes {
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// Where each node ends.
    ends: Vec<usize>,
}

impl Nodes {
    fn encoded<N: Serialize>(nodes: &[N]) -> Result<Self, WireError> {
        let mut all = Nodes::default();
        for node in nodes {
            encode_into(node, &mut all.bytes)?;
            all.ends.push(all.bytes.len());
        }
        Ok(all)
    }

    fn decoded<N: DeserializeOwned>(&self) -> Result<Vec<N>, WireError> {
        let mut bytes = self.bytes.as_slice();
        self.ends.iter().map(|_| decode_first(&mut bytes)).collect()
    }

    /// A copy of some of them.
    fn some(&self, nodes: Range<usize>) -> Self {
        let from = nodes.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends: Vec<_> = self.ends[nodes].iter().map(|end| end - from).collect();
        let bytes = self.bytes[from..][..ends.last().copied().unwrap_or(0)].to_vec();
        Nodes { bytes, ends }
    }
}

/// A part of which the first nodes may have been taken.
#[derive(Debug)]
struct Rest {
    nodes: Nodes,
    taken: usize,
}

/// A task gets no further parts once it has this much, in bytes.
const TAKEN_BYTES: usize = 256 << 10;

/// The parts that wait for a task, and those that tasks have.
#[derive(Debug)]
pub(super) struct Pool {
    waiting: BTreeMap<Place, Rest>,
    /// The parts that tasks have, by the numbers of the tasks, in the order in which they got them.
    held: HashMap<u64, Vec<Part>>,
    /// The number of nodes that wait.
    nodes: usize,
}

impl Pool {
    pub(super) fn new(first: Part) -> Self {
        let mut pool = Pool { waiting: BTreeMap::new(), held: HashMap::new(), nodes: 0 };
        pool.give(first);
        pool
    }

    /// Adds a part.
    pub(super) fn give(&mut self, part: Part) {
        self.nodes += part.len();
        let former = self.waiting.insert(part.place, Rest { nodes: part.nodes, taken: 0 });
        assert!(former.is_none(), "a place is given once");
    }

    /// Gives a task the first nodes: at most this number, and no more than half of those that wait,
    /// or one.
    pub(super) fn take(&mut self, task: u64, most: usize) -> Vec<Part> {
        let mut most = most.min(self.nodes.div_ceil(2)).max(1);
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while most > 0
            && bytes < TAKEN_BYTES
            && let Some((place, Rest { nodes, taken })) = self.waiting.pop_first()
        {
            let left = nodes.ends.len() - taken;
            let takes = most.min(left);
            let part = Part { nodes: nodes.some(taken..taken + takes), place: place.clone() };
            bytes += part.nodes.bytes.len();
            parts.push(part);
            if takes < left {
                self.waiting.insert(place.after(takes), Rest { nodes, taken: taken + takes });
            }
            self.nodes -= takes;
            most -= takes;
        }
        if !parts.is_empty() {
            self.held.entry(task).or_default().extend(parts.iter().cloned());
        }
        parts
    }

    /// A task has searched the part at this place. Returns whether it had one there.
    pub(super) fn end(&mut self, task: u64, place: &Place) -> bool {
        let Some(held) = self.held.get_mut(&task) else { return false };
        let parts = held.len();
        held.retain(|held| !held.place.is_of(place));
        let is_held = held.len() < parts;
        if held.is_empty() {
            self.held.remove(&task);
        }
        is_held
    }

    /// The parts that a task has beyond this number. It runs for a second time if there are any,
    /// and gets them at new places.
    pub(super) fn give_again(&mut self, task: u64, parts: usize) -> Vec<Part> {
        let beyond = self.held.get_mut(&task).into_iter().flatten().skip(parts);
        beyond
            .map(|part| {
                part.place = part.place.again();
                part.clone()
            })
            .collect()
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

    /// Searches a row of numbers by tasks that take parts, keep the first number of each, and give
    /// the rest back in two pieces. With deaths, a task runs again when it has given them back.
    fn order(steps: Vec<(usize, bool)>) -> Vec<(Place, u32)> {
        let part = |place, nodes: &[u32]| Part::new(place, nodes).expect("it is encoded");
        let root = part(Place::of_part(0), &(0..40).collect::<Vec<_>>());
        let (mut pool, mut seen) = (Pool::new(root), Vec::new());
        let mut steps = steps.into_iter().cycle();
        while pool.tasks() > 0 {
            let (most, dies) = steps.next().expect("it never ends");
            let mut taken = pool.take(7, most);
            for run in 0..=u8::from(dies) {
                if run == 1 {
                    taken = pool.give_again(7, 0);
                }
                for Part { place, nodes } in &taken {
                    let nodes: Vec<u32> = nodes.decoded().expect("it is decoded");
                    seen.push((place.clone(), nodes[0]));
                    let (kept, last) = nodes[1..].split_at((nodes.len() - 1) / 2);
                    for (others, nodes) in (0..).zip([last, kept]) {
                        if !nodes.is_empty() {
                            pool.give(part(place.of_piece(others), nodes));
                        }
                    }
                }
            }
            assert!(
                pool.give_again(7, taken.len()).is_empty() && !pool.end(7, &Place::of_part(99))
            );
            assert!(taken.iter().all(|part| pool.end(7, &part.place)));
        }
        seen
    }

    #[test]
    fn a_part_that_is_given_again_ends_by_its_former_place_too() {
        let part = Part::new(Place::of_part(3), &[1, 2]).expect("it is encoded");
        let mut pool = Pool::new(part);
        let taken = pool.take(7, 1);
        assert_ne!(pool.give_again(7, 0)[0].place, taken[0].place);
        assert!(pool.end(7, &taken[0].place) && pool.give_again(7, 0).is_empty());
    }

    #[test]
    fn a_task_gets_few_long_parts_at_a_time() {
        let long = [vec![0_u8; TAKEN_BYTES / 2]];
        let part = |number| Part::new(Place::of_part(number), &long).expect("it is encoded");
        let mut pool = Pool::new(part(0));
        (1..20).for_each(|number| pool.give(part(number)));
        assert_eq!(pool.take(7, 10).len(), 2);
    }

    #[test]
    fn the_first_is_taken_first() {
        assert!(order(vec![(1, false)]).iter().map(|(_, n)| *n).eq(0..40));
    }

    proptest! {
        #[test]
        fn places_are_in_the_order_of_the_nodes(
            steps in prop::collection::vec((0..9_usize, Just(false)), 1..9),
        ) {
            let mut seen = order(steps);
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
