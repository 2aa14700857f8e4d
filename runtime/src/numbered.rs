//! A map from ascending numbers to values that are removed in about the order in which they were
//! inserted.
//!
//! The values stand in one block of memory in the order of their numbers, so that mostly the place
//! of a value follows from its number without a search: an ordinary map took a third of the time of
//! a placed task. A removed value leaves an empty place; when most places are empty, the others
//! move together. So the map takes at most twice the memory of its values, whichever are removed.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    /// By number, ascending. Neither the first nor the last place is empty.
    places: VecDeque<(u64, Option<T>)>,
    /// The number of places that are not empty.
    taken: usize,
    /// Values that were inserted after one with a greater number.
    late: BTreeMap<u64, T>,
}

/// This many empty places are always allowed.
const EMPTY_MAX: usize = 32;

impl<T> Numbered<T> {
    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.taken + self.late.len()
    }

    /// Whether there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a value, in place of the one that may have this number.
    pub(crate) fn insert(&mut self, number: u64, value: T) {
        let last = self.places.back().map(|(last, _)| *last);
        if last.is_none_or(|last| last < number) && !self.late.contains_key(&number) {
            self.places.push_back((number, Some(value)));
            self.taken += 1;
        } else if let Some((_, place)) = self.find(number).and_then(|at| self.places.get_mut(at)) {
            self.taken += usize::from(place.is_none());
            *place = Some(value);
        } else {
            self.late.insert(number, value);
        }
    }

    /// The value with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        match self.find(number) {
            Some(at) => self.places[at].1.as_ref(),
            None => self.late.get(&number),
        }
    }

    /// The value with this number, to be changed.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match self.find(number) {
            Some(at) => self.places[at].1.as_mut(),
            None => self.late.get_mut(&number),
        }
    }

    /// Removes the value with this number.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let Some(at) = self.find(number) else { return self.late.remove(&number) };
        let value = self.places[at].1.take()?;
        self.taken -= 1;
        while let Some((_, None)) = self.places.front() {
            self.places.pop_front();
        }
        while let Some((_, None)) = self.places.back() {
            self.places.pop_back();
        }
        if self.places.len() > 2 * self.taken + EMPTY_MAX {
            self.places.retain(|(_, place)| place.is_some());
            self.places.shrink_to(2 * self.taken + EMPTY_MAX);
        }
        Some(value)
    }

    /// The index of this number's place.
    fn find(&self, number: u64) -> Option<usize> {
        let (first, _) = self.places.front()?;
        self.places.back().filter(|(last, _)| number <= *last)?;
        // Right if no number is missing before it.
        let at = usize::try_from(number.checked_sub(*first)?).ok()?;
        if self.places.get(at).is_some_and(|(there, _)| *there == number) {
            return Some(at);
        }
        self.places.binary_search_by_key(&number, |(there, _)| *there).ok()
    }

    /// The smallest number.
    pub(crate) fn first(&self) -> Option<u64> {
        let first = self.places.front().map(|(number, _)| *number);
        let late = self.late.first_key_value().map(|(number, _)| *number);
        first.into_iter().chain(late).min()
    }

    /// The values with their numbers; those that were inserted late come last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let places = self.places.iter();
        let there = places.filter_map(|(number, place)| Some((*number, place.as_ref()?)));
        there.chain(self.late.iter().map(|(number, value)| (*number, value)))
    }

    /// The values; those that were inserted late come last.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.places.into_iter().filter_map(|(_, place)| place).chain(self.late.into_values())
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { places: VecDeque::new(), taken: 0, late: BTreeMap::new() }
    }
}

impl<T> Numbered<T> {
    fn sorted(&self) -> Vec<(u64, &T)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }
}

impl<T: PartialEq> PartialEq for Numbered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }
}

impl<T: Eq> Eq for Numbered<T> {}

impl<T: Hash> Hash for Numbered<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sorted().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..3_u8, 0..60_u64), 0..400)) {
            let (mut numbered, mut map, mut next) = (Numbered::default(), BTreeMap::new(), 0);
            for (step, number) in steps {
                match step {
                    0 => {
                        next += 1 + number % 3 / 2;
                        numbered.insert(next, number);
                        map.insert(next, number);
                    }
                    1 => {
                        numbered.insert(number, number);
                        map.insert(number, number);
                    }
                    _ => prop_assert_eq!(numbered.remove(number), map.remove(&number)),
                }
                prop_assert_eq!(numbered.get(number), map.get(&number));
                prop_assert_eq!(numbered.get_mut(number), map.get_mut(&number));
                prop_assert_eq!(numbered.len(), map.len());
                prop_assert_eq!(numbered.first(), map.keys().next().copied());
                let sorted: Vec<_> = map.iter().map(|(number, value)| (*number, value)).collect();
                prop_assert_eq!(numbered.sorted(), sorted);
                prop_assert!(numbered.places.len() <= 2 * numbered.taken + EMPTY_MAX);
            }
        }
    }

    #[test]
    fn a_value_that_stays_does_not_keep_the_places_of_removed_ones() {
        let mut numbered = Numbered::default();
        numbered.insert(0, 0);
        for number in 1..100_000 {
            numbered.insert(number, number);
            assert_eq!(numbered.remove(number), Some(number));
        }
        assert!(numbered.places.capacity() < 1000);
        assert_eq!(numbered.get(0), Some(&0));
    }
}
