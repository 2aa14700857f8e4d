//! Runs that are counted together.

use smallvec::SmallVec;

/// Functions beyond this number are counted as one.
const FUNCTIONS_MAX: usize = 8;

/// What functions beyond that number are called.
const OTHERS: &str = "others";

/// Runs of one function, or spans of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) name: &'static str,
    pub(super) runs: u64,
    /// How long they took together.
    pub(super) busy_ns: u64,
    /// How long the longest of them took.
    pub(super) longest_ns: u64,
}

/// What has been counted, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(SmallVec<[Count; 2]>);

impl Counts {
    /// Counts a run that took this long.
    pub(super) fn add(&mut self, name: &'static str, took_ns: u64) {
        let is_full = self.0.len() >= FUNCTIONS_MAX;
        let is_it = |count: &Count| std::ptr::eq(count.name, name);
        let is_others = |count: &Count| is_full && count.name == OTHERS;
        let at = self.0.iter().rposition(is_it).or_else(|| self.0.iter().rposition(is_others));
        let at = at.unwrap_or_else(|| {
            let name = if is_full { OTHERS } else { name };
            self.0.push(Count { name, runs: 0, busy_ns: 0, longest_ns: 0 });
            self.0.len() - 1
        });
        let count = &mut self.0[at];
        count.runs += 1;
        count.busy_ns += took_ns;
        count.longest_ns = count.longest_ns.max(took_ns);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Count> {
        self.0.iter()
    }

    /// That which took the longest.
    pub(super) fn most(&self) -> Option<&Count> {
        self.0.iter().max_by_key(|count| count.busy_ns)
    }

    pub(super) fn runs(&self) -> u64 {
        self.0.iter().map(|count| count.runs).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Runs one after the other, and the short spans within them.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretch {
    /// When the first began, and when the last ended; none as long as no run is over.
    pub(super) times: Option<(u64, u64)>,
    pub(super) functions: Counts,
    pub(super) spans: Counts,
}

impl Stretch {
    /// Adds a run of which this much was its own, and not that of a run within it.
    pub(super) fn add(&mut self, name: &'static str, (begin, end): (u64, u64), own_ns: u64) {
        let (first, last) = self.times.unwrap_or((begin, end));
        self.times = Some((first.min(begin), last.max(end)));
        self.functions.add(name, own_ns);
    }
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
        assert_eq!(counts.runs(), 2 * names.len() as u64);
        let others = Count { name: OTHERS, runs: 6, busy_ns: 9, longest_ns: 2 };
        assert_eq!(counts.most(), Some(&others));
    }

    #[test]
    fn a_run_within_another_belongs_to_the_same_stretch() {
        let mut stretch = Stretch::default();
        stretch.add("inner", (20, 30), 10);
        stretch.add("outer", (10, 40), 20);
        assert_eq!(stretch.times, Some((10, 40)));
        assert_eq!(stretch.functions.iter().map(|count| count.busy_ns).sum::<u64>(), 30);
    }
}
