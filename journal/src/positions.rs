//! A set of positions, kept as ranges. A job that runs from the first item to the last has one.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of positions of items.
///
/// It needs memory for its ranges and not for its positions: about 20 bytes for each range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// The end of each range, by its start. No two ranges overlap or touch.
    ends: BTreeMap<u64, u64>,
    count: u64,
}

/// What [`Positions::add`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// All positions are new, and now in the set.
    New,
    /// All positions were in the set.
    Known,
    /// Some were in the set, and some not. The set is as before.
    Overlaps,
}

impl Positions {
    /// The number of positions in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the position is in the set.
    pub fn contains(&self, position: u64) -> bool {
        self.ends.range(..=position).next_back().is_some_and(|(_, end)| position < *end)
    }

    /// The set as ranges, in ascending order. They neither overlap nor touch.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(first, end)| *first..*end)
    }

    /// The positions below `items` that are not in the set, as ranges in ascending order.
    pub fn gaps(&self, items: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let firsts = std::iter::once(0).chain(self.ends.values().copied());
        let ends = self.ends.keys().copied().chain([items]);
        firsts
            .zip(ends)
            .map(move |(first, end)| first..end.min(items))
            .filter(|gap| !gap.is_empty())
    }

    /// Adds the positions of a range that is not empty, if all of them are new.
    pub(crate) fn add(&mut self, range: Range<u64>) -> Added {
        assert!(range.start < range.end, "the caller has refused empty ranges");
        let before = self.ends.range(..=range.start).next_back().map(|(first, end)| (*first, *end));
        let after = self.ends.range(range.start..).next().map(|(first, end)| (*first, *end));
        if before.is_some_and(|(_, end)| range.end <= end) {
            return Added::Known;
        }
        if before.is_some_and(|(_, end)| range.start < end)
            || after.is_some_and(|(first, _)| first < range.end)
        {
            return Added::Overlaps;
        }
        self.count += range.end - range.start;
        let first =
            before.filter(|(_, end)| *end == range.start).map_or(range.start, |(first, _)| first);
        let touching = after.filter(|(first, _)| *first == range.end);
        if let Some((first, _)) = touching {
            self.ends.remove(&first);
        }
        self.ends.insert(first, touching.map_or(range.end, |(_, end)| end));
        Added::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(ranges in prop::collection::vec((0..40_u64, 1..6_u64), 0..30)) {
            let mut positions = Positions::default();
            let mut model = BTreeSet::new();
            for (first, length) in ranges {
                let range = first..first + length;
                let known = range.clone().filter(|position| model.contains(position)).count();
                let expected = match known {
                    0 => Added::New,
                    _ if known as u64 == length => Added::Known,
                    _ => Added::Overlaps,
                };
                prop_assert_eq!(positions.add(range.clone()), expected);
                if expected == Added::New {
                    model.extend(range);
                }
            }
            let ranges: Vec<_> = positions.ranges().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(ranges.into_iter().flatten().eq(model.iter().copied()));
            prop_assert_eq!(positions.count(), model.len() as u64);
            let agree = |position| positions.contains(position) == model.contains(&position);
            prop_assert!((0..50).all(agree));
            let missing = (0..30).filter(|position| !model.contains(position));
            prop_assert!(positions.gaps(30).flatten().eq(missing));
        }
    }
}
