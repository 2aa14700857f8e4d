//! The backlog of a task or a thread: parts of its work that wait while it does others. They are
//! the parts of a problem that is divided, or the second functions of joins.
//!
//! A part that can be stolen must be a task, which costs an allocation and a place in a shared
//! queue: about 70 ns. Most parts are never stolen, because a thief takes the oldest one, which is
//! the largest. So a part waits in a plain queue, which costs almost nothing, and only the oldest
//! are *offered* as tasks: the first [`OFFERED_MIN`], and some more at each beat at which a thief
//! finds too little (heartbeat scheduling: Acar, Charguéraud, Guatto, Rainey and Sieczkowski, 2018;
//! before it, the lazy tasks of Mohr, Kranz and Halstead, 1991). A *beat* is when the worker [polls
//! the runtime](crate::executor::Context::poll_runtime), which it does at each division or join,
//! and a turn at the engine is due: each 4 µs while messages arrive, each 16 µs while none do.
//! Nothing ticks beside that, and where nothing is divided there is no beat. (A division takes 6 ns
//! with all of it.)

use std::collections::VecDeque;
use std::mem::take;
use ultramarine_topology::Distance;

/// A backlog has this number of parts on offer, if there are any; and offers this number at once.
/// So thieves find something though the task computes for long between two beats. (Few parts become
/// tasks for that: the fewer are on offer, the larger are the next ones.)
const OFFERED_MIN: usize = 4;

/// One of the oldest parts.
#[derive(Debug)]
pub enum Oldest<P, F> {
    /// Another worker may have taken it.
    Offered(F),
    /// None may take it.
    Kept(P),
}

/// The parts that wait. `F` is a part that another thread may take. The skeletons and the simulator
/// divide with it; programs need not.
#[derive(Debug)]
pub struct Backlog<P, F> {
    /// The oldest parts, the oldest first. Some may have been stolen.
    oldest: Vec<Oldest<P, F>>,
    /// How many of them are on offer.
    offered: usize,
    /// All younger ones, the oldest first.
    hidden: VecDeque<P>,
    /// [`OFFERED_MIN`], or none if this is the only worker of the job.
    offered_min: usize,
    /// Whether this is the only worker of its PE.
    is_only_worker: bool,
    /// Whether there were only parts that none may take when some were last to be offered. Then
    /// none are looked at before the next beat.
    were_all_kept: bool,
}

impl<P, F> Backlog<P, F> {
    /// The empty backlog of a task on a PE with this number of threads, in a job of this number of
    /// PEs.
    pub const fn new(threads: usize, pes: u32) -> Self {
        let is_only_worker = threads == 1;
        let offered_min = if is_only_worker && pes == 1 { 0 } else { OFFERED_MIN };
        Backlog {
            oldest: Vec::new(),
            offered: 0,
            hidden: VecDeque::new(),
            offered_min,
            is_only_worker,
            were_all_kept: false,
        }
    }

    /// Has an empty backlog serve a PE as a [new](Self::new) one would.
    pub(crate) fn move_to(&mut self, threads: usize, pes: u32) {
        debug_assert!(self.is_empty(), "its parts would be another PE's");
        let (oldest, hidden) = (take(&mut self.oldest), take(&mut self.hidden));
        *self = Backlog { oldest, hidden, ..Backlog::new(threads, pes) };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.oldest.is_empty() && self.hidden.is_empty()
    }

    /// Adds a part.
    #[inline]
    pub fn push(&mut self, part: P) {
        self.hidden.push_back(part);
    }

    /// The youngest part, unless it is one of the oldest.
    #[inline]
    pub fn youngest(&self) -> Option<&P> {
        self.hidden.back()
    }

    /// Takes the youngest part, unless it is one of the oldest.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        self.hidden.pop_back()
    }

    /// Takes the youngest of the oldest parts.
    pub fn pop_oldest(&mut self) -> Option<Oldest<P, F>> {
        let youngest = self.oldest.pop();
        self.offered -= usize::from(matches!(youngest, Some(Oldest::Offered(_))));
        youngest
    }

    /// Whether parts should be offered though no thief asks.
    #[inline]
    pub fn offers_too_little(&self) -> bool {
        self.offered < self.offered_min && !self.were_all_kept
    }

    /// Offers the oldest parts that another worker may take, each within its radius.
    pub fn offer(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(Distance, P) -> F,
    ) {
        let (offered, all) = (self.offered, self.oldest.len());
        for _ in 0..self.offered_min {
            if !self.offer_oldest(&radius, &mut fork) {
                break;
            }
        }
        self.were_all_kept = self.offered == offered && self.oldest.len() > all;
    }

    /// Offers the oldest part that another worker may take, and keeps those before it. Returns
    /// whether there was one.
    fn offer_oldest(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        fork: &mut impl FnMut(Distance, P) -> F,
    ) -> bool {
        while let Some(part) = self.hidden.pop_front() {
            let radius = radius(&part);
            if radius == Distance::ZERO && self.is_only_worker {
                self.oldest.push(Oldest::Kept(part));
                continue;
            }
            self.oldest.push(Oldest::Offered(fork(radius, part)));
            self.offered += 1;
            return true;
        }
        false
    }

    /// Offers all parts that another worker may take, and keeps the others: all are among the
    /// oldest then.
    pub fn pause(
        &mut self,
        radius: impl Fn(&P) -> Distance,
        mut fork: impl FnMut(Distance, P) -> F,
    ) {
        while self.offered_min > 0 && self.offer_oldest(&radius, &mut fork) {}
        self.oldest.extend(self.hidden.drain(..).map(Oldest::Kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that are on offer, and all in the order in which they are taken back.
    fn offered_and_all(mut backlog: Backlog<u32, u32>) -> (Vec<u32>, Vec<u32>) {
        let (mut offered, mut all) = (Vec::new(), Vec::new());
        all.extend(std::iter::from_fn(|| backlog.pop()));
        while let Some(part) = backlog.pop_oldest() {
            match part {
                Oldest::Offered(part) => {
                    offered.push(part);
                    all.push(part);
                }
                Oldest::Kept(part) => all.push(part),
            }
        }
        assert_eq!(backlog.offered, 0);
        (offered, all)
    }

    #[test]
    fn a_part_that_must_stay_keeps_no_other_from_thieves() {
        let near = |part: &u32| if part.is_multiple_of(3) { Distance::ZERO } else { Distance::ONE };
        for threads in 1..=2 {
            let mut backlog = Backlog::new(threads, 2);
            (0..9).for_each(|part| backlog.push(part));
            backlog.offer(near, |_, part| part);
            let first = if threads == 1 { vec![5, 4, 2, 1] } else { vec![3, 2, 1, 0] };
            assert_eq!(offered_and_all(backlog), (first, (0..9).rev().collect()));
        }
    }

    #[test]
    fn where_all_parts_must_stay_the_next_are_looked_at_at_a_beat() {
        let mut backlog = Backlog::new(1, 2);
        assert!(backlog.offers_too_little());
        backlog.push(0);
        backlog.offer(|_| Distance::ZERO, |_, part| part);
        backlog.push(1);
        assert!(!backlog.offers_too_little());
        backlog.offer(|_| Distance::ONE, |_, part| part);
        assert!(backlog.offers_too_little(), "one is on offer");
        assert_eq!(offered_and_all(backlog), (vec![1], vec![1, 0]));
    }
}
