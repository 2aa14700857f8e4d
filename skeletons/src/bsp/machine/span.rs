//! Values of collective operations, combined in an order that depends on the number of ranks alone.
//!
//! The ranks are the leaves of a binary tree; the value of a node is that of its left half combined
//! with that of its right half, or that of the only half that has one. So the result is the same,
//! bit for bit, whatever ranks a PE has. A PE begins with the values of the nodes that have ranks
//! of its own only. What it hears of others it adds; two halves make a whole. To hear of a node
//! twice does no harm.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A node of the tree: ranks from a multiple of 2^level on, 2^level of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Span {
    first: u32,
    level: u8,
}

impl Span {
    pub(super) fn of(rank: u32) -> Self {
        Span { first: rank, level: 0 }
    }

    fn end(self) -> u64 {
        u64::from(self.first) + (1 << self.level)
    }

    fn contains(self, other: Span) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }

    /// The node of which this is the left half.
    fn parent_of_left(self) -> Option<Span> {
        let is_left = u64::from(self.first) % (2 << self.level) == 0;
        is_left.then_some(Span { first: self.first, level: self.level + 1 })
    }

    fn halves(self) -> Option<[Span; 2]> {
        let level = self.level.checked_sub(1)?;
        Some([self.first, self.first + (1 << level)].map(|first| Span { first, level }))
    }

    /// The largest nodes of which a range consists, in order.
    fn cover(mut ranks: Range<u32>) -> impl Iterator<Item = Span> {
        std::iter::from_fn(move || {
            let left = ranks.end.checked_sub(ranks.start).filter(|left| *left > 0)?;
            let level = ranks.start.trailing_zeros().min(left.ilog2());
            let span = Span { first: ranks.start, level: level as u8 };
            ranks.start = ranks.start.saturating_add(1 << level);
            Some(span)
        })
    }

    /// The root of the tree of this many ranks.
    fn root(ranks: u32) -> Span {
        Span { first: 0, level: (u32::BITS - ranks.saturating_sub(1).leading_zeros()) as u8 }
    }
}

/// Values of nodes none of which contains another, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Spans<V>(Vec<(Span, V)>);

impl<V> Default for Spans<V> {
    fn default() -> Self {
        Spans(Vec::new())
    }
}

impl<V: Clone> Spans<V> {
    /// Those of a PE with these ranks, of which some have a value (in order).
    pub(super) fn of_own(
        own: Range<u32>,
        values: Vec<(u32, V)>,
        combine: &mut impl FnMut(&V, &V) -> V,
    ) -> Self {
        let leaves =
            Spans(values.into_iter().map(|(rank, value)| (Span::of(rank), value)).collect());
        let covered = Span::cover(own);
        Spans(covered.filter_map(|span| Some((span, leaves.value(span, combine)?))).collect())
    }

    /// Adds what another PE has.
    pub(super) fn add(&mut self, others: Spans<V>) {
        for (span, value) in others.0 {
            let from = self.0.partition_point(|(known, _)| known.end() <= u64::from(span.first));
            let known = &self.0[from..];
            if known.first().is_some_and(|(known, _)| known.contains(span)) {
                continue;
            }
            let to = from + known.partition_point(|(known, _)| u64::from(known.first) < span.end());
            self.0.splice(from..to, [(span, value)]);
        }
    }

    /// Has the values of these ranks one by one.
    pub(super) fn divide(&mut self, own: Range<u32>, values: impl IntoIterator<Item = (u32, V)>) {
        self.0.retain(|(span, _)| !own.contains(&span.first));
        self.add(Spans(values.into_iter().map(|(rank, value)| (Span::of(rank), value)).collect()));
    }

    /// Makes wholes of halves.
    pub(super) fn condense(&mut self, combine: &mut impl FnMut(&V, &V) -> V) {
        let mut done: Vec<(Span, V)> = Vec::with_capacity(self.0.len());
        for (mut span, mut value) in self.0.drain(..) {
            while let Some((left, _)) = done.last()
                && let Some(parent) = left.parent_of_left()
                && left.level == span.level
                && parent.end() == span.end()
                && let Some((_, left)) = done.pop()
            {
                (span, value) = (parent, combine(&left, &value));
            }
            done.push((span, value));
        }
        self.0 = done;
    }

    /// The value of a node.
    fn value(&self, span: Span, combine: &mut impl FnMut(&V, &V) -> V) -> Option<V> {
        let from = self.0.partition_point(|(known, _)| known.end() <= u64::from(span.first));
        let (first, value) = self.0.get(from)?;
        if u64::from(first.first) >= span.end() {
            return None;
        }
        if first.contains(span) {
            return (*first == span).then(|| value.clone());
        }
        let [left, right] = span.halves()?.map(|half| self.value(half, combine));
        match (left, right) {
            (Some(left), Some(right)) => Some(combine(&left, &right)),
            (one, other) => one.or(other),
        }
    }

    /// The value of all these ranks.
    pub(super) fn all(&self, ranks: u32, combine: &mut impl FnMut(&V, &V) -> V) -> Option<V> {
        self.value(Span::root(ranks), combine)
    }

    /// The value of the ranks before this one, from left to right.
    pub(super) fn before(&self, rank: u32, combine: &mut impl FnMut(&V, &V) -> V) -> Option<V> {
        let mut found: Option<V> = None;
        for span in Span::cover(0..rank) {
            if let Some(value) = self.value(span, combine) {
                found = Some(found.map_or_else(|| value.clone(), |found| combine(&found, &value)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shows in which order values are combined.
    fn combine(left: &String, right: &String) -> String {
        format!("({left}{right})")
    }

    fn whole(ranks: u32, who: &[bool]) -> Spans<String> {
        let values = (0..ranks).filter(|rank| who[*rank as usize]);
        let values = values.map(|rank| (rank, format!("{rank}."))).collect();
        Spans::of_own(0..ranks, values, &mut combine)
    }

    proptest! {
        #[test]
        fn the_order_depends_on_the_number_of_ranks_alone(
            ranks in 1..40_u32,
            who in prop::collection::vec(prop::bool::weighted(0.8), 40),
            cuts in prop::collection::vec(0..40_u32, 0..8),
            order in prop::collection::vec(0..20_usize, 0..20),
            is_condensed: bool,
        ) {
            let whole = whole(ranks, &who);
            let mut cuts: Vec<u32> = cuts.into_iter().map(|cut| cut % ranks).collect();
            cuts.extend([0, ranks]);
            cuts.sort_unstable();
            let part = |own: &[u32]| {
                let values = (own[0]..own[1]).filter(|rank| who[*rank as usize]);
                let values = values.map(|rank| (rank, format!("{rank}."))).collect();
                Spans::of_own(own[0]..own[1], values, &mut combine)
            };
            let parts: Vec<_> = cuts.windows(2).map(part).collect();
            let mut found = Spans::default();
            let some = order.iter().map(|number| number % parts.len());
            for number in some.chain(0..parts.len()) {
                found.add(parts[number].clone());
                if is_condensed {
                    found.condense(&mut combine);
                }
            }
            prop_assert_eq!(found.all(ranks, &mut combine), whole.all(ranks, &mut combine));
            if !is_condensed {
                // What a rank needs of its own PE is there in parts.
                for own in cuts.windows(2) {
                    let before = found.before(own[0], &mut combine);
                    let values = (0..own[0]).filter(|rank| who[*rank as usize]);
                    let values = values.map(|rank| (rank, format!("{rank}."))).collect();
                    let alone = Spans::of_own(0..own[0], values, &mut combine);
                    prop_assert_eq!(before, alone.before(own[0], &mut combine));
                }
            }
        }
    }

    #[test]
    fn halves_make_wholes_in_order() {
        let all = [true; 8];
        assert_eq!(whole(5, &all).all(5, &mut combine), Some("(((0.1.)(2.3.))4.)".into()));
        let mut leaves = whole(6, &all);
        leaves.divide(0..6, (0..6).map(|rank| (rank, format!("{rank}."))));
        assert_eq!(leaves.before(5, &mut combine), Some("(((0.1.)(2.3.))4.)".into()));
        leaves.condense(&mut combine);
        assert_eq!(leaves.0.len(), 2);
    }
}
