//! Tasks that wait for the same thing.

use std::task::Waker;

/// Tasks that wait: mostly one. All are woken at once, and those that find nothing wait again.
#[derive(Default)]
pub(super) struct Waiting {
    first: Option<(Wait, Waker)>,
    others: Vec<(Wait, Waker)>,
    last: u64,
}

/// Tells the waits for the same thing apart.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wait(u64);

impl Waiting {
    /// A task waits, perhaps in place of the one that has begun this wait. Returns what is to be
    /// dropped after the lock.
    #[must_use]
    pub(super) fn add(&mut self, wait: &mut Wait, waker: &Waker) -> Option<Waker> {
        let mut known = self.first.iter_mut().chain(&mut self.others);
        if let Some((_, known)) = known.find(|(known, _)| known == wait) {
            return Some(std::mem::replace(known, waker.clone()));
        }
        self.last += 1;
        *wait = Wait(self.last);
        let new = (*wait, waker.clone());
        if self.first.is_none() {
            self.first = Some(new);
        } else {
            self.others.push(new);
        }
        None
    }

    /// This wait is over. Returns what is to be dropped after the lock.
    #[must_use]
    pub(super) fn remove(&mut self, wait: Wait) -> Option<Waker> {
        if let Some((_, waker)) = self.first.take_if(|(known, _)| *known == wait) {
            return Some(waker);
        }
        let at = self.others.iter().position(|(known, _)| *known == wait)?;
        Some(self.others.swap_remove(at).1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    /// Removes all, to be woken after the lock.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let first = self.first.take();
        first.into_iter().chain(std::mem::take(&mut self.others)).map(|(_, waker)| waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_is_over_leaves_nothing() {
        let (mut waiting, mut waits) = (Waiting::default(), [Wait::default(); 3]);
        for wait in &mut waits {
            assert!(waiting.add(wait, Waker::noop()).is_none());
        }
        assert!(waiting.add(&mut waits[1], Waker::noop()).is_some(), "it waits again");
        assert!(waiting.remove(Wait::default()).is_none());
        assert!(waits.iter().all(|wait| waiting.remove(*wait).is_some()));
        assert!(waiting.is_empty());
        assert!(waiting.remove(waits[0]).is_none());
    }

    #[test]
    fn all_are_woken() {
        let mut waiting = Waiting::default();
        for _ in 0..3 {
            drop(waiting.add(&mut Wait::default(), Waker::noop()));
        }
        assert_eq!(waiting.take().count(), 3);
        assert!(waiting.is_empty());
    }
}
