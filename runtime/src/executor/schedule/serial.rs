//! A queue that is emptied by one thread at a time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Things to be done one after the other.
pub(crate) struct Serial<T>(Mutex<Queue<T>>);

struct Queue<T> {
    waiting: VecDeque<T>,
    /// Whether there is somebody who will take all that is in it.
    is_served: bool,
}

impl<T> Default for Serial<T> {
    fn default() -> Self {
        Serial(Mutex::new(Queue { waiting: VecDeque::new(), is_served: false }))
    }
}

impl<T> Serial<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts one more behind the others. Whether the caller is to have it served, since
    /// no thread is.
    #[must_use]
    pub(crate) fn push(&self, item: T) -> bool {
        let mut queue = self.lock();
        queue.waiting.push_back(item);
        !std::mem::replace(&mut queue.is_served, true)
    }

    /// The next one, for the one who serves it; `None`: it is empty, and the caller is to go.
    pub(crate) fn next(&self) -> Option<T> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.is_served = next.is_some();
        next
    }
}
