//! Claims, ends and closing under Loom: all interleavings of a few steps.

use loom::sync::Arc;
use loom::thread;

use crate::closing::{Attempt, keep_open};
use crate::state::{Runner, State, Status};
use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicU64, load};

const DEAD: Runner = Runner { worker: 0, incarnation: 1 };

fn words<const N: usize>(first: Status) -> Arc<[AtomicU64; N]> {
    let value = |at| if at == 0 { State::new(first).bits() } else { 0 };
    Arc::new(std::array::from_fn(|at| AtomicU64::new(value(at))))
}

/// Of all that claim a task one has it.
#[test]
fn one_claims() {
    loom::model(|| {
        let task = words::<1>(Status::Ready);
        let claim = |worker| {
            let task = Arc::clone(&task);
            let runner = Runner { worker, incarnation: 1 };
            thread::spawn(move || State::claim(&task[0], runner).is_some())
        };
        let claims = [claim(0), claim(1)].map(|claim| claim.join().unwrap());
        assert_eq!(claims.into_iter().filter(|claimed| *claimed).count(), 1);
    });
}

/// A worker that was taken for dead finishes its task, while one takes it over and another, in the
/// next incarnation of its number, runs it: one result counts.
#[test]
fn one_finishes() {
    loom::model(|| {
        let task = words::<1>(Status::Ready);
        let claimed = State::claim(&task[0], DEAD).unwrap();
        let silent = Arc::clone(&task);
        let silent = thread::spawn(move || claimed.become_in(&silent[0], Status::Finished(64)));
        let taker = Arc::clone(&task);
        let taker = thread::spawn(move || State::release(&taker[0], DEAD));
        let next = Runner { incarnation: 2, ..DEAD };
        let finished = State::claim(&task[0], next)
            .is_some_and(|claimed| claimed.become_in(&task[0], Status::Finished(128)));
        let [silent, released] = [silent, taker].map(|thread| thread.join().unwrap());
        assert_ne!(silent, released);
        let status = State::load(&task[0]).status;
        assert_eq!(status == Status::Finished(64), silent);
        assert_eq!(status == Status::Finished(128), finished);
    });
}

/// A task is added while two workers try to end the set: no one ends it without the task, unless
/// the one that adds it is told.
#[test]
fn no_task_is_left_behind() {
    loom::model(|| {
        // The end, and the table's word for the task.
        let set = words::<2>(Status::Waiting(0));
        let close = || {
            let set = Arc::clone(&set);
            thread::spawn(move || {
                let Some(attempt) = Attempt::begin(&set[0]) else { return };
                if load(&set[1]) == 0 {
                    attempt.finish(&set[0]);
                } else {
                    attempt.give_up(&set[0]);
                }
            })
        };
        let closing = [close(), close()];
        let _ = set[1].compare_exchange(0, 1, SeqCst, SeqCst);
        let is_kept = keep_open(&set[0]);
        closing.into_iter().for_each(|thread| thread.join().unwrap());
        let has_ended = matches!(State::load(&set[0]).status, Status::Finished(_));
        assert_ne!(is_kept, has_ended);
    });
}

/// A task begins to await another that finishes: one of the two workers sees that.
#[test]
fn no_dependent_is_forgotten() {
    loom::model(|| {
        // What is awaited, and the list of those that await it.
        let task = words::<2>(Status::Ready);
        let claimed = State::claim(&task[0], DEAD).unwrap();
        let newcomer = Arc::clone(&task);
        let newcomer = thread::spawn(move || {
            let _ = newcomer[1].compare_exchange(0, 64, SeqCst, SeqCst);
            matches!(State::load(&newcomer[0]).status, Status::Finished(_))
        });
        assert!(claimed.become_in(&task[0], Status::Finished(0)));
        let is_told = load(&task[1]) == 64;
        assert!(newcomer.join().unwrap() || is_told);
    });
}
