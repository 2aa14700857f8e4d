//! A queue that one thread at a time empties.

use crate::lock::Lock;
use std::collections::VecDeque;

/// Items that are handled one after the other.
pub(crate) struct Serial<T>(Lock<Queue<T>>);

struct Queue<T> {
    waiting: VecDeque<T>,
    /// Whether a thread is emptying it.
    is_served: bool,
}

impl<T> Default for Serial<T> {
    fn default() -> Self {
        Serial(Lock::new(Queue { waiting: VecDeque::new(), is_served: false }))
    }
}

impl<T> Serial<T> {
    /// Adds an item at the end. Returns whether the caller must have the queue emptied, since no
    /// thread is at it.
    #[must_use]
    pub(crate) fn push(&self, item: T) -> bool {
        let mut queue = self.0.lock();
        queue.waiting.push_back(item);
        !std::mem::replace(&mut queue.is_served, true)
    }

    /// The next item, for the thread that empties the queue. `None`: the queue is empty, and that
    /// thread must stop.
    pub(crate) fn next(&self) -> Option<T> {
        let mut queue = self.0.lock();
        let next = queue.waiting.pop_front();
        queue.is_served = next.is_some();
        next
    }

    /// Drops the items that wait.
    pub(crate) fn clear(&self) {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        drop(waiting);
    }

    /// Whether another item waits. If not, the thread that empties the queue must stop.
    pub(crate) fn goes_on(&self) -> bool {
        let mut queue = self.0.lock();
        queue.is_served = !queue.waiting.is_empty();
        queue.is_served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_empties_it() {
        let serial = Serial::default();
        assert_eq!([1, 2].map(|item| serial.push(item)), [true, false], "one is called");
        assert!(serial.goes_on());
        assert_eq!([(); 3].map(|()| serial.next()), [Some(1), Some(2), None]);
        assert!(serial.push(3), "it has stopped");
        assert_eq!(serial.next(), Some(3));
        assert!(!serial.goes_on());
        assert!(serial.push(4), "it has stopped");
    }
}
