//! Short runs that are counted together.

use smallvec::SmallVec;

/// Functions beyond this number are counted as one.
const FUNCTIONS_MAX: usize = 8;

/// What functions beyond that number are called.
const OTHERS: &str = "others";

/// Runs of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) name: &'static str,
    pub(super) runs: u64,
    /// How long they took together, in nanoseconds.
    pub(super) busy: u64,
    /// The longest of them.
    pub(super) longest: u64,
}

/// What has been counted, by function.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(SmallVec<[Count; 2]>);

impl Counts {
    /// Counts a run that took this long.
    pub(super) fn add(&mut self, name: &'static str, took: u64) {
        let is_it = |count: &&mut Count| std::ptr::eq(count.name, name);
        if let Some(count) = self.0.iter_mut().rev().find(is_it) {
            count.runs += 1;
            count.busy += took;
            count.longest = count.longest.max(took);
        } else if self.0.len() < FUNCTIONS_MAX || std::ptr::eq(name, OTHERS) {
            self.0.push(Count { name, runs: 1, busy: took, longest: took });
        } else {
            self.add(OTHERS, took);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Count> {
        self.0.iter()
    }

    /// The function that took the longest.
    pub(super) fn most(&self) -> Option<&Count> {
        self.0.iter().max_by_key(|count| count.busy)
    }

    /// Whether no more than one run is counted.
    pub(super) fn is_one_run(&self) -> bool {
        matches!(&self.0[..], [Count { runs: 1, .. }])
    }
}

/// Runs one after the other.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// When the first began, and when the last ended.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_counted_apart_up_to_a_number() {
        let names: Vec<&'static str> =
            (0..FUNCTIONS_MAX + 3).map(|number| &*number.to_string().leak()).collect();
        let mut counts = Counts::default();
        for round in 1..=2 {
            names.iter().for_each(|name| counts.add(name, round));
        }
        assert_eq!(counts.iter().count(), FUNCTIONS_MAX + 1);
        assert_eq!(counts.iter().map(|count| count.runs).sum::<u64>(), 2 * names.len() as u64);
        let others = Count { name: OTHERS, runs: 6, busy: 9, longest: 2 };
        assert_eq!(counts.most(), Some(&others));
        assert!(!counts.is_one_run());
    }
}
