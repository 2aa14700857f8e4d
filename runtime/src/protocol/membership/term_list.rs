//! The list of the dead that the judge of a term keeps.

use super::living::Living;
use super::notice::{Death, Evidence, Heading, Notice, Term};
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// A beginning of the list of the dead that the judge of a term keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TermList {
    pub(super) heading: Heading,
    /// In the order in which the judge declared them.
    deaths: Vec<Death>,
    /// All other PEs of the job.
    living: Living,
}

/// What a bulletin adds to a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// These follow.
    New(Vec<Death>),
    /// It begins behind the end of the list: something is missing in between.
    Gap,
    /// Nothing, or it is no part of the judge's list.
    Nothing,
}

impl TermList {
    /// The list of this term, in a job of this many PEs, all of which live.
    pub(super) fn new(heading: Heading, pes: u32) -> Self {
        TermList { heading, deaths: Vec::new(), living: Living::new(pes, &[]) }
    }

    pub(super) fn term(&self) -> Term {
        self.heading.term
    }

    pub(super) fn deaths(&self) -> &[Death] {
        &self.deaths
    }

    pub(super) fn living(&self) -> &Living {
        &self.living
    }

    pub(super) fn len(&self) -> usize {
        self.deaths.len()
    }

    pub(super) fn contains(&self, pe: Pe) -> bool {
        self.living.is_dead(pe)
    }

    /// Where a PE stands in the list.
    pub(super) fn position(&self, pe: Pe) -> Option<usize> {
        self.deaths.iter().position(|death| death.pe == pe)
    }

    pub(super) fn append(&mut self, new: &[Death]) {
        self.deaths.extend(new);
        let pes: Vec<Pe> = new.iter().map(|death| death.pe).collect();
        self.living.remove(&pes);
    }

    /// The part of the list between two positions.
    pub(super) fn bulletin_to(&self, after: usize, end: usize) -> Notice {
        let after = after.min(end);
        let dead = self.deaths[after..end].to_vec();
        Notice::Bulletin { of: self.heading, after: after as u32, dead }
    }

    /// What a part of a list of this term adds to this one.
    pub(super) fn addition(&self, after: u32, dead: &[Death]) -> Addition {
        let after = after as usize;
        if !self.could_declare(dead) {
            return Addition::Nothing;
        }
        let Some(known) = self.deaths.get(after..) else { return Addition::Gap };
        let (again, new) = dead.split_at(known.len().min(dead.len()));
        let is_known = |death: &Death| self.contains(death.pe);
        if new.is_empty() || !known.starts_with(again) || new.iter().any(is_known) {
            return Addition::Nothing;
        }
        Addition::New(new.to_vec())
    }

    /// Whether the judge can have declared these PEs dead: the job has them, each is named once,
    /// and the judge is not among them.
    pub(super) fn could_declare(&self, dead: &[Death]) -> bool {
        let judge = self.heading.term.judge;
        let may_die = |death: &Death| death.pe != judge && death.pe.number() < self.living.pes();
        let distinct: BTreeSet<Pe> = dead.iter().map(|death| death.pe).collect();
        dead.iter().all(may_die) && distinct.len() == dead.len()
    }

    /// The number of PEs that have a vote: all but those whose death is confirmed.
    pub(super) fn electorate(&self) -> u32 {
        self.living.count() + self.unconfirmed().count() as u32
    }

    /// The dead that have a vote: they may have given it to another.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = Death> + '_ {
        let confirmed = (self.heading.confirmed as usize).min(self.deaths.len());
        let others = self.deaths[confirmed..].iter().copied();
        others.filter(|death| death.evidence != Evidence::Confirmed)
    }

    /// Whether some of them may live.
    pub(super) fn has_silent(&self) -> bool {
        self.unconfirmed().any(|death| death.evidence == Evidence::Silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(order: &[Pe]) -> TermList {
        let mut list = TermList::new(Heading::FIRST, 30);
        let deaths: Vec<Death> = order.iter().copied().map(Death::silent).collect();
        list.append(&deaths);
        list
    }

    proptest! {
        /// Whatever parts of the judge's list arrive in whatever order, the result is a beginning
        /// of it, and a gap is noticed.
        #[test]
        fn a_list_is_always_a_beginning_of_the_judges(
            order in Just((1..30u32).map(Pe::new).collect::<Vec<_>>()).prop_shuffle(),
            parts in prop::collection::vec((0..30usize, 0..30usize), 0..60),
        ) {
            let judges = list(&order);
            let mut list = list(&[]);
            for (one, other) in parts {
                let (after, end) = (one.min(other).min(29), one.max(other).min(29));
                let Notice::Bulletin { after, dead, .. } = judges.bulletin_to(after, end) else {
                    unreachable!("a bulletin")
                };
                match list.addition(after, &dead) {
                    Addition::New(new) => {
                        prop_assert!(after as usize <= list.len() && end > list.len());
                        list.append(&new);
                        prop_assert_eq!(list.len(), end);
                    }
                    Addition::Gap => prop_assert!(after as usize > list.len()),
                    Addition::Nothing => prop_assert!(end <= list.len()),
                }
                prop_assert!(judges.deaths().starts_with(list.deaths()));
                for (position, pe) in order.iter().enumerate() {
                    let is_known = position < list.len();
                    prop_assert_eq!(list.contains(*pe), is_known);
                    prop_assert_eq!(list.position(*pe), is_known.then_some(position));
                }
                prop_assert_eq!(list.living(), &Living::new(30, &order[..list.len()]));
            }
        }
    }

    #[test]
    fn of_one_round_the_smaller_number_has_the_later_term() {
        let term = |round, judge| Term { round, judge: Pe::new(judge) };
        assert!(term(0, 0) < term(1, 7) && term(1, 7) < term(1, 3) && term(1, 3) < term(2, 9));
    }

    #[test]
    fn those_whose_death_is_confirmed_have_no_vote() {
        let mut list = list(&[]);
        let dead = |pe, evidence| Death { pe: Pe::new(pe), evidence };
        let gone = [dead(3, Evidence::Witnessed), dead(4, Evidence::Confirmed)];
        list.append(&[Death::silent(Pe::new(1)), gone[0], gone[1]]);
        let votes = |list: &TermList| (list.electorate(), list.has_silent());
        assert_eq!(votes(&list), (29, true));
        list.heading.confirmed = 1;
        assert_eq!(votes(&list), (28, false));
        list.heading.confirmed = 2;
        assert_eq!(votes(&list), (27, false));
    }
}
