//! The living PEs, in a row and as trees.

use std::ops::Range;
use ultramarine_topology::Pe;

/// The living PEs of a job, as seen by a PE that knows these dead.
///
/// News goes down a binary tree over them, so that it reaches all in O(log n) steps: the children
/// of the PE at index `i` of the row are those at `2 i + 1` and `2 i + 2`.
///
/// ```
/// use ultramarine_runtime::protocol::Living;
/// use ultramarine_topology::Pe;
/// let living = Living::new(6, &[Pe::new(4), Pe::new(1)]);
/// assert_eq!(living.iter().collect::<Vec<_>>(), [0, 2, 3, 5].map(Pe::new));
/// assert_eq!(living.children(Pe::ROOT).collect::<Vec<_>>(), [2, 3].map(Pe::new));
/// assert_eq!(living.parent(Pe::new(5)), Some(Pe::new(2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Living {
    pes: u32,
    /// Ascending, each once, all below `pes`. Only these take memory, so each question takes
    /// O(log d) steps with `d` dead.
    dead: Vec<u32>,
}

impl Living {
    /// The PEs of a job of `pes` that are not dead. Numbers in `dead` that the job does not have
    /// are ignored.
    pub fn new(pes: u32, dead: &[Pe]) -> Self {
        let mut living = Living { pes, dead: Vec::new() };
        living.remove(dead);
        living
    }

    /// These die, too.
    pub fn remove(&mut self, dead: &[Pe]) {
        if let [one] = dead {
            // Sorting the list at each death would take minutes if there are 10^5.
            if let (true, Err(at)) =
                (one.number() < self.pes, self.dead.binary_search(&one.number()))
            {
                self.dead.insert(at, one.number());
            }
            return;
        }
        self.dead.extend(dead.iter().map(|pe| pe.number()).filter(|number| *number < self.pes));
        self.dead.sort_unstable();
        self.dead.dedup();
    }

    /// The number of PEs that the job began with.
    pub(super) fn pes(&self) -> u32 {
        self.pes
    }

    /// The number of living PEs.
    pub fn count(&self) -> u32 {
        self.pes - self.dead.len() as u32
    }

    /// Whether the job has this PE, and it lives.
    pub fn contains(&self, pe: Pe) -> bool {
        pe.number() < self.pes && self.dead.binary_search(&pe.number()).is_err()
    }

    /// Whether this PE has died.
    pub fn is_dead(&self, pe: Pe) -> bool {
        self.dead.binary_search(&pe.number()).is_ok()
    }

    /// Whether no PE has died.
    pub fn are_all(&self) -> bool {
        self.dead.is_empty()
    }

    /// The number of living PEs with a smaller number.
    pub fn count_below(&self, number: u32) -> u32 {
        let number = number.min(self.pes);
        number - self.dead.partition_point(|dead| *dead < number) as u32
    }

    /// The number of living PEs with these numbers.
    pub fn count_in(&self, numbers: Range<u32>) -> u32 {
        self.count_below(numbers.end).saturating_sub(self.count_below(numbers.start))
    }

    /// The dead PEs with these numbers.
    pub(in crate::protocol) fn dead_in(&self, numbers: Range<u32>) -> impl Iterator<Item = Pe> {
        let first = self.dead.partition_point(|dead| *dead < numbers.start);
        self.dead[first..].iter().copied().take_while(move |dead| *dead < numbers.end).map(Pe::new)
    }

    /// The first living PE with one of these numbers.
    pub fn first_in(&self, numbers: Range<u32>) -> Option<Pe> {
        self.at(self.count_below(numbers.start)).filter(|pe| pe.number() < numbers.end)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = Pe> + '_ {
        (0..self.pes).map(Pe::new).filter(|pe| self.contains(*pe))
    }

    /// The index of a PE in the row; `None` if it is not there.
    pub fn index_of(&self, pe: Pe) -> Option<u32> {
        let below = self.dead.binary_search(&pe.number()).err()?;
        (pe.number() < self.pes).then_some(pe.number() - below as u32)
    }

    /// The PE at this index of the row; `None` if the row is shorter.
    pub fn at(&self, index: u32) -> Option<Pe> {
        if index >= self.count() {
            return None;
        }
        // The dead before it are those with at most `index` living PEs below them.
        let (mut low, mut high) = (0, self.dead.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.dead[middle] - middle as u32 <= index {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(Pe::new(index + low as u32))
    }

    /// The children of `pe` in the tree that begins with the first of the row, the root.
    pub fn children(&self, pe: Pe) -> impl Iterator<Item = Pe> + '_ {
        let indices = self.index_of(pe).map(below).into_iter().flatten();
        indices.filter_map(|index| self.at(index))
    }

    /// The parent of `pe` in that tree; `None` for the root, and for a PE that is not in it.
    pub fn parent(&self, pe: Pe) -> Option<Pe> {
        self.at(self.index_of(pe)?.checked_sub(1)? / 2)
    }

    /// The children of `pe` in the tree that begins with `herald`, goes on behind it in the row and
    /// round to its beginning, and leaves out the root.
    pub fn herald_children(&self, herald: Pe, pe: Pe) -> Vec<Pe> {
        let others = self.count().saturating_sub(1);
        let place = |pe| self.index_of(pe)?.checked_sub(1);
        let (Some(first), Some(own)) = (place(herald), place(pe)) else { return Vec::new() };
        let own = (own + others - first) % others;
        let around = |step: u32| {
            (step < others).then(|| u64::from(first) + u64::from(step)).map(|sum| {
                // Both are below `others`.
                1 + (sum % u64::from(others)) as u32
            })
        };
        below(own).into_iter().filter_map(around).filter_map(|index| self.at(index)).collect()
    }
}

/// The indices below this one in a binary tree.
fn below(index: u32) -> [u32; 2] {
    let left = index.saturating_mul(2).saturating_add(1);
    [left, left.saturating_add(1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Everybody below `first`, in the order in which the news comes to them.
    fn reached(first: Pe, children: impl Fn(Pe) -> Vec<Pe>) -> Vec<Pe> {
        let mut all = vec![first];
        let mut next = 0;
        while next < all.len() {
            all.extend(children(all[next]));
            next += 1;
            assert!(all.len() < 1000, "a tree has no ring");
        }
        all
    }

    proptest! {
        #[test]
        fn each_tree_reaches_everybody_once(
            pes in 1..40_u32,
            dead in prop::collection::vec(1..50_u32, 0..30),
            herald: prop::sample::Index,
        ) {
            let dead: Vec<_> = dead.into_iter().map(Pe::new).collect();
            let living = Living::new(pes, &dead);
            let row: Vec<_> = living.iter().collect();
            prop_assert_eq!(row.len(), living.count() as usize);
            for (index, pe) in row.iter().enumerate() {
                prop_assert_eq!(living.index_of(*pe), Some(index as u32));
                prop_assert_eq!(living.at(index as u32), Some(*pe));
                for child in living.children(*pe) {
                    prop_assert_eq!(living.parent(child), Some(*pe));
                }
            }
            prop_assert_eq!(living.at(living.count()), None);
            let mut one_by_one = Living::new(pes, &[]);
            dead.iter().for_each(|pe| one_by_one.remove(&[*pe]));
            prop_assert_eq!(&one_by_one, &living);
            let ends = |start| (0..pes + 3).map(move |end| (start, end));
            for (start, end) in (0..pes + 3).flat_map(ends) {
                let within = (start..end).map(Pe::new).filter(|pe| row.contains(pe));
                let within: Vec<_> = within.collect();
                prop_assert_eq!(living.count_in(start..end), within.len() as u32);
                prop_assert_eq!(living.first_in(start..end), within.first().copied());
                let absent = (start..end.min(pes)).map(Pe::new).filter(|pe| !row.contains(pe));
                prop_assert!(living.dead_in(start..end).eq(absent));
            }
            prop_assert_eq!(living.are_all(), row.len() == pes as usize);
            let all: BTreeSet<_> = row.iter().copied().collect();
            let reached_by_root = reached(Pe::ROOT, |pe| living.children(pe).collect());
            prop_assert_eq!(reached_by_root.len(), row.len());
            prop_assert_eq!(reached_by_root.into_iter().collect::<BTreeSet<_>>(), all);

            if row.len() > 1 {
                let herald = *herald.get(&row[1..]);
                let children = reached(herald, |pe| living.herald_children(herald, pe));
                prop_assert_eq!(children.len(), row.len() - 1);
                let rest: BTreeSet<_> = row[1..].iter().copied().collect();
                prop_assert_eq!(children.into_iter().collect::<BTreeSet<_>>(), rest);
            }
        }
    }

    #[test]
    fn whom_the_job_does_not_have_is_nowhere() {
        let living = Living::new(3, &[Pe::new(1), Pe::new(7)]);
        assert!(!living.contains(Pe::new(3)) && !living.contains(Pe::new(1)));
        assert_eq!(living.index_of(Pe::new(3)), None);
        assert_eq!(living.children(Pe::new(1)).count(), 0);
        assert_eq!(living.herald_children(Pe::new(1), Pe::new(2)), []);
        assert_eq!(living.herald_children(Pe::ROOT, Pe::new(2)), []);
    }
}
