//! Terms of office.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use ultramarine_topology::Pe;

/// A judge's term of office. Terms are ordered by round; of one round, the term of the PE with the
/// smaller number is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Term {
    /// The number of the vote that it begins with.
    pub round: u32,
    /// The judge, or the PE that would be.
    pub judge: Pe,
}

impl Term {
    /// The root's, with which each job begins.
    pub const FIRST: Term = Term { round: 0, judge: Pe::ROOT };
}

impl Ord for Term {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |term: &Term| (term.round, Reverse(term.judge));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Term {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_round_the_smaller_number_has_the_later_term() {
        let term = |round, judge| Term { round, judge: Pe::new(judge) };
        assert!(term(0, 0) < term(1, 7) && term(1, 7) < term(1, 3) && term(1, 3) < term(2, 9));
    }
}
