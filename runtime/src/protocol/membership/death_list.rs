//! The list of the dead: a beginning of the root's list.

use super::living::Living;
use super::notice::Notice;
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// The dead, in the order in which the root declared them, and the living.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeathList {
    order: Vec<Pe>,
    /// All other PEs of the job.
    living: Living,
}

/// What a bulletin adds to a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// These follow.
    New(Vec<Pe>),
    /// It begins behind the end of the list: something is missing in between.
    Gap,
    /// Nothing, or it is no part of the root's list.
    Nothing,
}

impl DeathList {
    /// The list of a job of this many PEs, all of which live.
    pub(super) fn new(pes: u32) -> Self {
        DeathList { order: Vec::new(), living: Living::new(pes, &[]) }
    }

    pub(super) fn order(&self) -> &[Pe] {
        &self.order
    }

    pub(super) fn living(&self) -> &Living {
        &self.living
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn contains(&self, pe: Pe) -> bool {
        self.living.is_dead(pe)
    }

    /// Where a PE stands in the list.
    pub(super) fn position(&self, pe: Pe) -> Option<usize> {
        self.order.iter().position(|dead| *dead == pe)
    }

    pub(super) fn append(&mut self, new: &[Pe]) {
        self.order.extend(new);
        self.living.remove(new);
    }

    /// The part of the list from this position on.
    pub(super) fn bulletin(&self, after: usize) -> Notice {
        self.bulletin_to(after, self.len())
    }

    /// The part between two positions.
    pub(super) fn bulletin_to(&self, after: usize, end: usize) -> Notice {
        let after = after.min(end);
        Notice::Bulletin { after: after as u32, dead: self.order[after..end].to_vec() }
    }

    /// What a bulletin adds to this list.
    pub(super) fn addition(&self, after: u32, dead: &[Pe]) -> Addition {
        let after = after as usize;
        if !self.living.could_die(dead) {
            return Addition::Nothing;
        }
        let Some(known) = self.order.get(after..) else { return Addition::Gap };
        let (again, new) = dead.split_at(known.len().min(dead.len()));
        let is_known = |pe: &Pe| self.contains(*pe);
        if new.is_empty() || !known.starts_with(again) || new.iter().any(is_known) {
            return Addition::Nothing;
        }
        Addition::New(new.to_vec())
    }
}

impl Living {
    /// Whether the root can have declared these PEs dead: the job has them, each is named once,
    /// and the root is not among them.
    fn could_die(&self, dead: &[Pe]) -> bool {
        let may_die = |pe: &Pe| *pe != Pe::ROOT && pe.number() < self.pes();
        dead.iter().all(may_die) && dead.iter().collect::<BTreeSet<_>>().len() == dead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever parts of the root's list arrive in whatever order, the result is a beginning of
        /// it, and a gap is noticed.
        #[test]
        fn a_list_is_always_a_beginning_of_the_roots(
            order in Just((1..30u32).map(Pe::new).collect::<Vec<_>>()).prop_shuffle(),
            parts in prop::collection::vec((0..30usize, 0..30usize), 0..60),
        ) {
            let mut root = DeathList::new(30);
            root.append(&order);
            let mut list = DeathList::new(30);
            for (one, other) in parts {
                let (after, end) = (one.min(other).min(29), one.max(other).min(29));
                let Notice::Bulletin { after, dead } = root.bulletin_to(after, end) else {
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
                prop_assert!(order.starts_with(list.order()));
                for (position, pe) in order.iter().enumerate() {
                    let is_known = position < list.len();
                    prop_assert_eq!(list.contains(*pe), is_known);
                    prop_assert_eq!(list.position(*pe), is_known.then_some(position));
                }
                prop_assert_eq!(list.living(), &Living::new(30, list.order()));
            }
        }
    }
}
