//! The state of a task, one word, and the steps from one state to the next.
//!
//! ```text
//! WAITING ──→ READY ──→ RUNNING(worker, incarnation) ──→ FINISHED(result)
//!               ↑            │ its worker has died
//!               └────────────┘
//! ```
//!
//! Each step is one compare-and-swap, so a death leaves the task before it or after it. RUNNING
//! names the worker and its incarnation, since numbers of workers come again: of all that try to
//! run a task one succeeds, and one that was taken for dead and comes back cannot finish it any
//! more.

use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicU64, load};

/// The bits of a word that name a block; the others are for the word's owner.
pub(crate) const BLOCK_MASK: u64 = (1 << 48) - 1;

/// A worker in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) worker: u16,
    pub(crate) incarnation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Something it awaits has not finished. A task does not use the number; of a set's end it says
    /// which attempt to close the set is under way.
    Waiting(u64),
    Ready,
    Running(Runner),
    /// The offset of the block with the result, or 0 if that lies in the task.
    Finished(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) status: Status,
    /// How many workers have died while they ran it.
    pub(crate) deaths: u16,
}

/// More deaths are not counted.
const DEATHS_MAX: u16 = (1 << 14) - 1;

impl State {
    pub(crate) const fn new(status: Status) -> Self {
        Self { status, deaths: 0 }
    }

    pub(crate) fn load(word: &AtomicU64) -> Self {
        Self::from_bits(load(word))
    }

    pub(crate) fn bits(self) -> u64 {
        let (tag, rest) = match self.status {
            Status::Waiting(attempt) => (0, attempt & BLOCK_MASK),
            Status::Ready => (1, 0),
            Status::Running(Runner { worker, incarnation }) => {
                (2, u64::from(worker) << 32 | u64::from(incarnation))
            }
            Status::Finished(result) => (3, result),
        };
        tag << 62 | u64::from(self.deaths) << 48 | rest
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        let rest = bits & BLOCK_MASK;
        let status = match bits >> 62 {
            0 => Status::Waiting(rest),
            1 => Status::Ready,
            2 => Status::Running(Runner { worker: (rest >> 32) as u16, incarnation: rest as u32 }),
            _ => Status::Finished(rest),
        };
        Self { status, deaths: (bits >> 48) as u16 & DEATHS_MAX }
    }

    /// Goes to `status`, unless another was quicker.
    ///
    /// Sequentially consistent, as are the changes of the list of those that await the task: either
    /// the one that finishes it sees a newcomer there, or the newcomer sees it finished.
    pub(crate) fn become_in(self, word: &AtomicU64, status: Status) -> bool {
        let new = Self { status, ..self };
        word.compare_exchange(self.bits(), new.bits(), SeqCst, SeqCst).is_ok()
    }

    /// Makes a task whose worker has died ready again; `false` if it is not this runner's any more.
    pub(crate) fn release(word: &AtomicU64, runner: Runner) -> bool {
        let old = Self::load(word);
        let deaths = (old.deaths + 1).min(DEATHS_MAX);
        let new = Self { status: Status::Ready, deaths };
        old.status == Status::Running(runner)
            && word.compare_exchange(old.bits(), new.bits(), SeqCst, SeqCst).is_ok()
    }

    /// Takes a task that is ready.
    pub(crate) fn claim(word: &AtomicU64, runner: Runner) -> Option<Self> {
        let old = Self::load(word);
        let is_mine = old.status == Status::Ready && old.become_in(word, Status::Running(runner));
        is_mine.then_some(Self { status: Status::Running(runner), ..old })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    /// Threads claim the same tasks at the same time, round after round.
    fn claims_are_counted(rounds: u64) {
        let tasks: Vec<_> = (0..1 << 16).map(|_| AtomicU64::new(0)).collect();
        for _ in 0..rounds {
            for task in &tasks {
                task.store(State::new(Status::Ready).bits(), SeqCst);
            }
            let claim_all = |worker| {
                let runner = Runner { worker, incarnation: 1 };
                tasks.iter().filter(|task| State::claim(task, runner).is_some()).count()
            };
            let claimed = thread::scope(|scope| {
                let claim_all = &claim_all;
                let threads = [0, 1, 2].map(|worker| scope.spawn(move || claim_all(worker)));
                threads.map(|thread| thread.join().unwrap()).into_iter().sum::<usize>()
            });
            assert_eq!(claimed, tasks.len());
        }
    }

    #[test]
    fn a_task_is_claimed_once() {
        claims_are_counted(8);
    }

    #[test]
    #[ignore = "takes a while"]
    fn a_hundred_million_tasks_are_claimed_once() {
        claims_are_counted(1526);
    }

    #[test]
    fn states_are_words() {
        let runner = Runner { worker: 0xfffe, incarnation: 0xffff_fffd };
        let offset = BLOCK_MASK & !63;
        let all = [
            Status::Waiting(7),
            Status::Ready,
            Status::Running(runner),
            Status::Finished(0),
            Status::Finished(offset),
        ];
        for status in all {
            let state = State { status, deaths: 9 };
            assert_eq!(State::from_bits(state.bits()), state);
        }
        // What names a block has its offset in these bits.
        assert_eq!(State::new(all[4]).bits() & BLOCK_MASK, offset);
        let task = AtomicU64::new(State { status: Status::Ready, deaths: DEATHS_MAX }.bits());
        assert_eq!(State::claim(&task, runner).unwrap().deaths, DEATHS_MAX);
        assert!(!State::release(&task, Runner { incarnation: 1, ..runner }));
        assert!(State::release(&task, runner));
        assert_eq!(State::load(&task), State { status: Status::Ready, deaths: DEATHS_MAX });
    }
}
