//! The pool of tasks, and which task is chosen next (SymGridPar2 §4.2).
//!
//! A pool has one shelf for each radius that the job's hierarchy tells apart.
//!
//! - A worker of this PE gets a task of the smallest radius, and of these the youngest. Small radii
//!   mean small tasks, and the youngest task's data is most likely in the cache.
//! - A thief at distance `d` gets a task of the smallest radius not below `d`, and of these the
//!   oldest. In a divide-and-conquer program the oldest task is the largest, and worth the way.
//!
//! The policy is written here once. The owner chooses what a shelf is made of: a `VecDeque` in
//! tests and simulations, lock-free deques shared by threads in the executor.

use std::collections::VecDeque;
use ultramarine_topology::{Distance, Topology};

/// The tasks of one radius, in the order of their arrival.
pub trait Shelf {
    /// The type of the tasks.
    type Task;
    /// Takes the task that arrived last.
    fn take_youngest(&mut self) -> Option<Self::Task>;
    /// Takes the task that arrived first.
    fn take_oldest(&mut self) -> Option<Self::Task>;
    /// The number of tasks.
    fn len(&self) -> usize;
    /// Whether there are no tasks.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Shelf for VecDeque<T> {
    type Task = T;
    fn take_youngest(&mut self) -> Option<T> {
        self.pop_back()
    }
    fn take_oldest(&mut self) -> Option<T> {
        self.pop_front()
    }
    fn len(&self) -> usize {
        VecDeque::len(self)
    }
}

/// The radii that make a difference in a job, ascending from 0.
///
/// Any other radius has the same ball as the largest of these below it, which stands for it.
#[derive(Clone, Debug)]
pub struct Radii(Box<[Distance]>);

impl Radii {
    /// The radii of this hierarchy.
    pub fn of(topology: &Topology) -> Self {
        Radii(topology.radii().into())
    }

    /// The number of shelves of a pool.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The shelf for tasks of this radius.
    pub fn shelf(&self, radius: Distance) -> usize {
        self.0.partition_point(|r| *r <= radius).saturating_sub(1)
    }

    /// The radius of a shelf.
    pub fn radius(&self, shelf: usize) -> Distance {
        self.0[shelf]
    }
}

/// The tasks of a PE that have not started.
#[derive(Debug)]
pub struct Pool<S> {
    /// By radius, ascending as in [`Radii`].
    shelves: Box<[S]>,
}

impl<S: Shelf> Pool<S> {
    /// A pool of these shelves, one for each of the job's [`Radii`].
    pub fn new(shelves: impl IntoIterator<Item = S>) -> Self {
        Pool { shelves: shelves.into_iter().collect() }
    }

    /// The shelf with this index.
    pub fn shelf(&mut self, index: usize) -> &mut S {
        &mut self.shelves[index]
    }

    /// Takes the task that a worker of this PE should run next.
    pub fn select_local(&mut self) -> Option<S::Task> {
        self.shelves.iter_mut().find_map(S::take_youngest)
    }

    /// Takes the task for a thief whose distance is the radius of shelf `nearest`.
    pub fn select_remote(&mut self, nearest: usize) -> Option<S::Task> {
        self.shelves[nearest..].iter_mut().find_map(S::take_oldest)
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.shelves.iter().map(S::len).sum()
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.shelves.iter().all(S::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(tasks: &[(usize, u32)]) -> Pool<VecDeque<u32>> {
        let mut pool = Pool::new((0..3).map(|_| VecDeque::new()));
        for &(shelf, task) in tasks {
            pool.shelf(shelf).push_back(task);
        }
        pool
    }

    #[test]
    fn at_home_the_smallest_radius_goes_first_and_of_these_the_youngest() {
        let mut pool = pool(&[(2, 1), (1, 2), (1, 3), (2, 4)]);
        let order: Vec<_> = std::iter::from_fn(|| pool.select_local()).collect();
        assert_eq!(order, [3, 2, 4, 1]);
    }

    #[test]
    fn a_thief_gets_the_smallest_radius_that_reaches_it_and_of_these_the_oldest() {
        let mut pool = pool(&[(0, 1), (1, 2), (2, 3), (1, 4), (2, 5)]);
        assert_eq!(pool.select_remote(1), Some(2));
        assert_eq!(pool.select_remote(2), Some(3));
        assert_eq!(pool.select_remote(1), Some(4));
        assert_eq!(pool.select_remote(1), Some(5));
        assert_eq!(pool.select_remote(1), None, "radius 0 never leaves the PE");
        assert_eq!(pool.len(), 1);
    }
}
