//! Things by number, for numbers that are given out one after the other and whose things go in
//! about the order in which they came.
//!
//! They stand in one piece of memory in the order of their numbers, so that mostly it is clear
//! where one is without a search: a map took a third of the time of a placed task. Where a thing
//! was that is gone, its place is empty; when most are, the others move together. So it all takes
//! no more memory than twice that of the things, whichever of them go.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

/// Things by number.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    /// By number, ascending. Neither the first nor the last place is empty.
    places: VecDeque<(u64, Option<T>)>,
    /// How many of the places are not empty.
    taken: usize,
    /// Those that came after one with a greater number.
    late: BTreeMap<u64, T>,
}

/// This many empty places do not matter.
const EMPTY_MAX: usize = 32;

impl<T> Numbered<T> {
    /// How many things there are.
    pub(crate) fn len(&self) -> usize {
        self.taken + self.late.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a thing there in the place of the one that may have this number.
    pub(crate) fn insert(&mut self, number: u64, thing: T) {
        let last = self.places.back().map(|(last, _)| *last);
        if last.is_none_or(|last| last < number) && !self.late.contains_key(&number) {
            self.places.push_back((number, Some(thing)));
            self.taken += 1;
        } else if let Some((_, place)) = self.find(number).and_then(|at| self.places.get_mut(at)) {
            self.taken += usize::from(place.is_none());
            *place = Some(thing);
        } else {
            self.late.insert(number, thing);
        }
    }

    /// The thing with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        match self.find(number) {
            Some(at) => self.places[at].1.as_ref(),
            None => self.late.get(&number),
        }
    }

    /// The thing with this number, to be changed.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match self.find(number) {
            Some(at) => self.places[at].1.as_mut(),
            None => self.late.get_mut(&number),
        }
    }

    /// Takes the thing with this number out.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let Some(at) = self.find(number) else { return self.late.remove(&number) };
        let thing = self.places[at].1.take()?;
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
        Some(thing)
    }

    /// Where the place of this number is.
    fn find(&self, number: u64) -> Option<usize> {
        let (first, _) = self.places.front()?;
        self.places.back().filter(|(last, _)| number <= *last)?;
        // Where no number is missing before it.
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

    /// The things with their numbers, those that came late last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let places = self.places.iter();
        let there = places.filter_map(|(number, place)| Some((*number, place.as_ref()?)));
        there.chain(self.late.iter().map(|(number, thing)| (*number, thing)))
    }

    /// The things, those that came late last.
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
                let sorted: Vec<_> = map.iter().map(|(number, thing)| (*number, thing)).collect();
                prop_assert_eq!(numbered.sorted(), sorted);
                prop_assert!(numbered.places.len() <= 2 * numbered.taken + EMPTY_MAX);
            }
        }
    }

    #[test]
    fn one_that_stays_keeps_nobody_elses_place() {
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
