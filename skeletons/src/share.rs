//! Divides data into parts for tasks and into shares for PEs. It is plain arithmetic, and must
//! never know of tasks.

use std::ops::Range;

/// Splits a range into `count` consecutive ranges whose lengths differ by at most one. No range is
/// empty, so a short range gives fewer. A `count` of 0 counts as 1.
///
/// Each range is then an item of a map, whose function takes a range. Where the function takes a
/// number, [`Map::chunks`](crate::map::Map::chunks) puts a given number of items into each task.
///
/// ```
/// use ultramarine::prelude::*;
/// assert_eq!(split_range(1..11, 3), [1..4, 4..7, 7..11]);
/// assert_eq!(split_range(1..3, 5), [1..2, 2..3]);
/// assert_eq!(split_range(1..3, 0), [1..3]);
/// ```
pub fn split_range(range: Range<u64>, count: usize) -> Vec<Range<u64>> {
    let length = u128::from(range.end.saturating_sub(range.start));
    let count = (count.max(1) as u128).min(length);
    let cut = |i: u128| range.start + (length * i).checked_div(count).unwrap_or(0) as u64;
    (0..count).map(|i| cut(i)..cut(i + 1)).collect()
}

/// Deals out the items numbered `0..items` in proportion to `weights`. Returns the numbers that
/// each weight gets, ascending.
///
/// Each share is spread evenly over the items. So if the work grows along the items, as it often
/// does, the shares are still fair.
///
/// ```
/// use ultramarine::skeletons::shares;
/// assert_eq!(shares(6, &[2, 1]), [vec![0, 2, 3, 5], vec![1, 4]]);
/// ```
///
/// # Panics
///
/// If there are no weights or all are 0.
pub fn shares(items: usize, weights: &[u64]) -> Vec<Vec<usize>> {
    Deal::new(items, weights).split(0..items)
}

/// To which share each of a row of items goes, as [`shares`] says.
///
/// Both ways take the items in their order. (To take them share by share misses the cache at each
/// item: for 13 million items and 128 shares that took 90 ns an item in all, and this takes 25, on
/// a busy machine.)
pub(crate) struct Deal {
    /// The shares of the items of a period, in order. Each further period is alike.
    period: Vec<u32>,
    /// Those of the items after the last whole period.
    rest: Vec<u32>,
    items: usize,
    shares: usize,
}

impl Deal {
    /// Deals out this number of items in proportion to `weights`.
    pub(crate) fn new(items: usize, weights: &[u64]) -> Self {
        let common = weights.iter().fold(0, |common, weight| gcd(common, *weight));
        assert!(common > 0, "at least one weight must be positive");
        let weights: Vec<u64> = weights.iter().map(|weight| weight / common).collect();
        let total: u128 = weights.iter().map(|w| u128::from(*w)).sum();
        let period = usize::try_from(total).unwrap_or(usize::MAX).min(items.max(1));
        let (period, rest) = (row(period, &weights), row(items % period, &weights));
        Deal { period, rest, items, shares: weights.len() }
    }

    /// The shares of all items, in order.
    fn row(&self) -> impl Iterator<Item = usize> {
        let whole = self.items - self.rest.len();
        let periods = self.period.iter().cycle().take(whole);
        periods.chain(&self.rest).map(|share| *share as usize)
    }

    /// The items of each share, in their order.
    pub(crate) fn split<T>(&self, items: impl IntoIterator<Item = T>) -> Vec<Vec<T>> {
        let mut counts = vec![0; self.shares];
        self.row().for_each(|share| counts[share] += 1);
        let mut split: Vec<Vec<T>> = counts.into_iter().map(Vec::with_capacity).collect();
        self.row().zip(items).for_each(|(share, item)| split[share].push(item));
        split
    }

    /// The inverse: all items, in their order.
    pub(crate) fn join<T>(&self, split: Vec<Vec<T>>) -> Vec<T> {
        let mut split: Vec<_> = split.into_iter().map(Vec::into_iter).collect();
        let mut items = Vec::with_capacity(self.items);
        items.extend(self.row().filter_map(|share| split.get_mut(share)?.next()));
        items
    }
}

/// The shares of a row of items, one by one.
fn row(items: usize, weights: &[u64]) -> Vec<u32> {
    let total: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    // Largest remainders: round down, then add one to the shares that lost most by rounding.
    let exact = |w: u64| items as u128 * u128::from(w);
    let mut counts: Vec<usize> = weights.iter().map(|w| (exact(*w) / total) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|i| std::cmp::Reverse(exact(weights[*i]) % total));
    let missing = items - counts.iter().sum::<usize>();
    by_remainder.into_iter().take(missing).for_each(|i| counts[i] += 1);

    // The ideal position of the k-th of n items of a share is (k + 1/2) / n of the whole.
    let mut positions: Vec<(f64, u32)> = Vec::with_capacity(items);
    for (share, n) in (0..).zip(&counts) {
        positions.extend((0..*n).map(|k| ((k as f64 + 0.5) / *n as f64, share)));
    }
    positions.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    positions.into_iter().map(|(_, share)| share).collect()
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Groups of `size` consecutive items; the last group may be smaller.
pub(crate) fn chunked<A>(size: usize, items: impl IntoIterator<Item = A>) -> Vec<Vec<A>> {
    let mut items = items.into_iter();
    let chunk = || {
        Some(items.by_ref().take(size.max(1)).collect()).filter(|chunk: &Vec<A>| !chunk.is_empty())
    };
    std::iter::from_fn(chunk).collect()
}

/// Deals the items out in turn to at most this number of groups, none of which is empty.
pub(crate) fn sliced<A>(slices: usize, items: impl IntoIterator<Item = A>) -> Vec<Vec<A>> {
    let slices = slices.max(1);
    let mut groups: Vec<Vec<A>> = Vec::new();
    for (n, item) in items.into_iter().enumerate() {
        match groups.get_mut(n % slices) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The inverse of [`sliced`]: the items in their original order.
pub(crate) fn unsliced<R>(groups: Vec<Vec<R>>) -> Vec<R> {
    let mut groups: Vec<_> = groups.into_iter().map(Vec::into_iter).collect();
    let count = groups.iter().map(ExactSizeIterator::len).sum();
    let mut items = Vec::with_capacity(count);
    while items.len() < count {
        items.extend(groups.iter_mut().filter_map(Iterator::next));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_the_range_in_order_and_are_even(
            start in 0u64..1000,
            length in 0u64..1000,
            count in 0usize..50,
        ) {
            let parts = split_range(start..start + length, count);
            prop_assert_eq!(parts.len() as u64, (count.max(1) as u64).min(length));
            let joined: Vec<u64> = parts.iter().cloned().flatten().collect();
            prop_assert_eq!(joined, (start..start + length).collect::<Vec<_>>());
            let lengths = || parts.iter().map(|part| part.end - part.start);
            prop_assert!(lengths().max().unwrap_or(0) <= lengths().min().unwrap_or(0) + 1);
        }

        #[test]
        fn everything_is_dealt_out_once_and_in_proportion(
            items in 0usize..500,
            weights in prop::collection::vec(0u64..20, 1..9),
        ) {
            prop_assume!(weights.iter().any(|w| *w > 0));
            let dealt = shares(items, &weights);
            let mut all: Vec<usize> = dealt.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..items).collect::<Vec<_>>());
            let total: u64 = weights.iter().sum();
            for (share, weight) in dealt.iter().zip(&weights) {
                let exact = items as f64 * *weight as f64 / total as f64;
                prop_assert!((share.len() as f64 - exact).abs() < 1.0);
                prop_assert!(share.is_sorted());
            }
            let joined = Deal::new(items, &weights).join(dealt);
            prop_assert_eq!(joined, (0..items).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn groups_are_of_the_size_or_number_asked_for(items in 0..200_usize, count in 0..30_usize) {
            let chunks = chunked(count, 0..items);
            prop_assert_eq!(chunks.concat(), (0..items).collect::<Vec<_>>());
            prop_assert!(chunks.iter().rev().skip(1).all(|chunk| chunk.len() == count.max(1)));
            let slices = sliced(count, 0..items);
            prop_assert_eq!(slices.len(), items.min(count.max(1)));
            prop_assert!(slices.iter().all(|slice| !slice.is_empty()));
            prop_assert_eq!(unsliced(slices), (0..items).collect::<Vec<_>>());
        }
    }

    #[test]
    fn growing_work_is_shared_fairly() {
        let dealt = shares(400, &[1, 1]);
        let work = |share: &[usize]| share.iter().sum::<usize>() as f64;
        assert!((work(&dealt[0]) / work(&dealt[1]) - 1.0).abs() < 0.01);
    }

    #[test]
    fn parts_of_the_greatest_range_do_not_overflow() {
        let parts = split_range(0..u64::MAX, 7);
        assert_eq!((parts[0].start, parts[6].end), (0, u64::MAX));
    }

    #[test]
    fn of_no_parts_one_is_made_unless_there_is_nothing() {
        let (whole, none) = (3..9, 9..9);
        assert_eq!(split_range(whole.clone(), 0), [whole]);
        assert!(split_range(none, 0).is_empty());
    }
}
