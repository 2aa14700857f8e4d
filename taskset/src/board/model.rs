//! All interleavings of few steps, within Loom's model of weak memory.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::test_memory::TestMemory;

type TestBoard = Arc<Board<TestMemory>>;

fn board() -> TestBoard {
    Arc::new(Board::new(TestMemory::new(WORDS)))
}

fn post(board: &TestBoard, slot: usize, number: u64) {
    board.post(slot, 0, number, &[number as u8; 8]);
}

/// Takes a task, as this process: its number.
fn take(board: &TestBoard, taker: u32) -> Option<u64> {
    let mut bytes = Vec::new();
    board.take(taker, 0, &mut bytes).then(|| {
        assert_eq!(bytes, [bytes[0]; 8], "the copy is whole");
        bytes[0].into()
    })
}

/// Two takers and the owner want the same task: one gets it, and the owner knows which.
#[test]
fn one_has_a_task() {
    loom::model(|| {
        let board = board();
        post(&board, 0, 1);
        let takers = [1, 2].map(|taker| {
            let board = board.clone();
            thread::spawn(move || take(&board, taker).map(|number| (number, taker)))
        });
        let own = board.take_back(0);
        let taken = takers.map(|thread| thread.join().unwrap());
        let got: Vec<_> = taken.into_iter().flatten().collect();
        match own {
            Ok(()) => assert_eq!(got, []),
            Err(taker) => assert_eq!(got, [(1, taker)]),
        }
    });
}

/// The owner uses a slot again as soon as the task in it was taken. A slow taker gets no part of
/// the one for the other.
#[test]
fn a_slot_is_filled_again() {
    loom::model(|| {
        let board = board();
        post(&board, 0, 1);
        let takers = [1, 2].map(|taker| {
            let board = board.clone();
            thread::spawn(move || take(&board, taker))
        });
        let mut posted = 1;
        if let Slot::Taken(_) = board.slot(0) {
            board.free(0);
            post(&board, 0, 2);
            posted = 2;
        }
        let mut taken: Vec<_> =
            takers.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(1..=taken.len() as u64) && taken.len() <= posted);
    });
}

/// A taker that has been told finds what it was told of; an owner that has been asked sees the need
/// of the process that asks.
#[test]
fn signals_come_behind_what_they_are_about() {
    loom::model(|| {
        let (victim, thief) = (board(), board());
        let (there, here) = (victim.clone(), thief.clone());
        let other = thread::spawn(move || {
            here.set_need(7);
            there.raise(Signal::Asks, 1);
            let is_told = here.take_raised(Signal::Posted).next() == Some(0);
            (is_told, take(&there, 1))
        });
        let is_asked = victim.take_raised(Signal::Asks).next() == Some(1);
        assert!(!is_asked || thief.need() == 7);
        post(&victim, 0, 1);
        thief.raise(Signal::Posted, 0);
        let (is_told, taken) = other.join().unwrap();
        assert!(!is_told || taken == Some(1));
    });
}

/// A signal that is raised again while its owner takes it is seen with what it is about, or is
/// there still.
#[test]
fn a_signal_that_was_set_before_is_not_lost() {
    loom::model(|| {
        let (victim, thief) = (board(), board());
        thief.raise(Signal::Posted, 0);
        let (there, here) = (victim.clone(), thief.clone());
        let other = thread::spawn(move || {
            here.take_raised(Signal::Posted).for_each(drop);
            take(&there, 1)
        });
        post(&victim, 0, 1);
        thief.raise(Signal::Posted, 0);
        let taken = other.join().unwrap();
        assert!(taken.is_some() || thief.is_raised(Signal::Posted, 1));
    });
}
