//! Collections of a problem's parts, which become collections of solutions of the same length. They
//! must never know what a part is, nor of other PEs.

use std::array;

/// The parts of a problem: an array, if their number is fixed, or a vector. Other types need not
/// implement it.
pub trait Parts: Sized {
    /// A part.
    type Item;
    /// A collection of the same length and order with other items.
    type Mapped<T: Send>: AsMut<[T]> + Send;

    /// Applies `f` to each part, one after another.
    ///
    /// ```
    /// use ultramarine::skeletons::Parts;
    /// assert_eq!(vec![3, 1, 2].map_each(|n| n * n), [9, 1, 4]);
    /// ```
    fn map_each<T: Send>(self, f: impl FnMut(Self::Item) -> T) -> Self::Mapped<T>;

    /// Applies `f` to each item of a mapped collection.
    fn map<T: Send, U: Send>(all: Self::Mapped<T>, f: impl FnMut(T) -> U) -> Self::Mapped<U>;

    /// Applies `put_by` to all parts but the first, and then `first` to that one. Where `put_by`
    /// has returned nothing, `last` makes the item afterwards: the last first.
    ///
    /// ```
    /// use ultramarine::skeletons::Parts;
    /// let mut stack = Vec::new();
    /// let put_by = |stack: &mut Vec<_>, n| {
    ///     stack.push(n);
    ///     None
    /// };
    /// let squares = [3, 1, 2].first_first(&mut stack, put_by, |_, n| n * n, |stack| {
    ///     stack.pop().map_or(0, |n| n * n)
    /// });
    /// assert_eq!(squares, [9, 1, 4]);
    /// ```
    fn first_first<S, T: Send>(
        self,
        state: &mut S,
        put_by: impl FnMut(&mut S, Self::Item) -> Option<T>,
        first: impl FnOnce(&mut S, Self::Item) -> T,
        last: impl FnMut(&mut S) -> T,
    ) -> Self::Mapped<T>;

    /// The values if all are there.
    ///
    /// # Errors
    ///
    /// What was given, if one is not.
    fn all_ok<T: Send, E: Send>(
        mut all: Self::Mapped<Result<T, E>>,
    ) -> Result<Self::Mapped<T>, Self::Mapped<Result<T, E>>> {
        if all.as_mut().iter().any(Result::is_err) {
            return Err(all);
        }
        Ok(Self::map(all, |item| match item {
            Ok(item) => item,
            Err(_) => unreachable!("all are there"),
        }))
    }

    /// Applies `f` to each part, on all threads of this PE.
    ///
    /// ```
    /// use ultramarine::skeletons::Parts;
    /// assert_eq!([3, 1, 2].join_each(&|n| n * n), [9, 1, 4]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `f` panics, with its message.
    fn join_each<T: Send>(self, f: &(impl Fn(Self::Item) -> T + Sync)) -> Self::Mapped<T>
    where
        Self::Item: Send;
}

impl<P, const N: usize> Parts for [P; N] {
    type Item = P;
    type Mapped<T: Send> = [T; N];

    fn map_each<T: Send>(self, f: impl FnMut(P) -> T) -> [T; N] {
        self.map(f)
    }

    fn map<T: Send, U: Send>(all: [T; N], f: impl FnMut(T) -> U) -> [U; N] {
        all.map(f)
    }

    #[inline]
    fn first_first<S, T: Send>(
        self,
        state: &mut S,
        mut put_by: impl FnMut(&mut S, P) -> Option<T>,
        first: impl FnOnce(&mut S, P) -> T,
        mut last: impl FnMut(&mut S) -> T,
    ) -> [T; N] {
        let mut parts = self.into_iter();
        if N == 2 {
            // The usual case. The direct way saves 9 of 16 ns for each division.
            let (left, right) = two(parts);
            let right = put_by(state, right);
            let left = first(state, left);
            let right = match right {
                Some(right) => right,
                None => last(state),
            };
            return from_two(left, right);
        }
        let mut items = [const { None }; N];
        if let (Some(part), Some((item, others))) = (parts.next(), items.split_first_mut()) {
            others.iter_mut().zip(parts).for_each(|(item, part)| *item = put_by(state, part));
            *item = Some(first(state, part));
            for item in others.iter_mut().rev().filter(|item| item.is_none()) {
                *item = Some(last(state));
            }
        }
        items.map(|item| item.expect("each item is made"))
    }

    fn join_each<T: Send>(self, f: &(impl Fn(P) -> T + Sync)) -> [T; N]
    where
        P: Send,
    {
        if N == 2 {
            // The usual case. The direct way saves 4 ns for each division.
            let (left, right) = two(self.into_iter());
            let (left, right) = rayon::join(|| f(left), || f(right));
            return from_two(left, right);
        }
        let mut results = [const { None }; N];
        join_halves(&mut self.map(Some), &mut results, f);
        let mut results = results.into_iter().flatten();
        array::from_fn(|_| results.next().expect("each part has a result"))
    }
}

/// The items of an array of two.
fn two<T, const N: usize>(mut items: array::IntoIter<T, N>) -> (T, T) {
    let (Some(left), Some(right)) = (items.next(), items.next()) else {
        unreachable!("there are two items")
    };
    (left, right)
}

/// An array of two.
fn from_two<T, const N: usize>(left: T, right: T) -> [T; N] {
    let mut both = [Some(left), Some(right)];
    array::from_fn(|n| both[n].take().expect("there are two items"))
}

impl<P> Parts for Vec<P> {
    type Item = P;
    type Mapped<T: Send> = Vec<T>;

    fn map_each<T: Send>(self, f: impl FnMut(P) -> T) -> Vec<T> {
        self.into_iter().map(f).collect()
    }

    fn map<T: Send, U: Send>(all: Vec<T>, f: impl FnMut(T) -> U) -> Vec<U> {
        all.into_iter().map(f).collect()
    }

    fn first_first<S, T: Send>(
        self,
        state: &mut S,
        mut put_by: impl FnMut(&mut S, P) -> Option<T>,
        first: impl FnOnce(&mut S, P) -> T,
        mut last: impl FnMut(&mut S) -> T,
    ) -> Vec<T> {
        let mut parts = self.into_iter();
        let Some(part) = parts.next() else { return Vec::new() };
        let mut items = Vec::with_capacity(parts.len() + 1);
        items.push(None);
        items.extend(parts.map(|part| put_by(state, part)));
        items[0] = Some(first(state, part));
        for item in items.iter_mut().rev().filter(|item| item.is_none()) {
            *item = Some(last(state));
        }
        // Not `flatten`: this stays in the same memory.
        items.into_iter().map(|item| item.expect("each item is made")).collect()
    }

    fn join_each<T: Send>(self, f: &(impl Fn(P) -> T + Sync)) -> Vec<T>
    where
        P: Send,
    {
        let mut results: Vec<_> = self.iter().map(|_| None).collect();
        join_halves(&mut self.map_each(Some), &mut results, f);
        results.into_iter().flatten().collect()
    }
}

/// Applies `f` to the parts and stores the results; one thread for each half.
#[inline]
fn join_halves<P, T, F>(parts: &mut [Option<P>], results: &mut [Option<T>], f: &F)
where
    P: Send,
    T: Send,
    F: Fn(P) -> T + Sync,
{
    match (parts, results) {
        ([part], [result]) => *result = part.take().map(f),
        (parts, results) if !parts.is_empty() => {
            let half = parts.len() / 2;
            let (left, right) = parts.split_at_mut(half);
            let (first, second) = results.split_at_mut(half);
            rayon::join(|| join_halves(left, first, f), || join_halves(right, second, f));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_parts() {
        assert_eq!([3, 1, 2].join_each(&|n| n * n), [9, 1, 4]);
        assert_eq!(Parts::map_each([1, 2], |n| n + 1), [2, 3]);
        let many: Vec<u64> = (0..100).collect();
        let squares: Vec<u64> = many.iter().map(|n| n * n).collect();
        assert_eq!(many.join_each(&|n| n * n), squares);
        let none: [u64; 0] = [];
        assert_eq!(none.join_each(&|n| n), none);
        assert_eq!(Vec::<u64>::new().join_each(&|n| n), none);
    }
}
