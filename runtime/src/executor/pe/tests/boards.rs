//! PEs that take tasks from each other's boards, which are real files.

use super::{ByHand, end_of, end_with_turns_of, jobs, start};
use crate::executor::engine::boards::BoardSetup;
use crate::executor::pe::processor::Job;
use crate::handshake::JobKey;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use ultramarine_taskset::board::OwnBoard;
use ultramarine_testkit::eventually;
use ultramarine_topology::Distance;

/// Two PEs of one host. `knows` says whether they hear where the boards are as they are.
fn two_with_boards(knows: bool) -> [ByHand; 2] {
    let key = JobKey::random().expect("a key");
    let boards = [(); 2].map(|()| OwnBoard::create().expect("there are files without names"));
    let mut addresses = [&boards[0], &boards[1]].map(OwnBoard::address);
    if !knows {
        addresses.reverse();
    }
    let mut pes = jobs(2, 1).zip(boards).map(|(job, own)| {
        let boards =
            BoardSetup::new(job.me, &job.topology, own, |pe| Some(addresses[pe.index()]), key);
        assert!(boards.is_some());
        start(Job { boards, ..job })
    });
    [(); 2].map(|()| pes.next().expect("there are two"))
}

fn from_boards(pe: &ByHand) -> u64 {
    pe.0.local_statistics().by_distance.iter().map(|row| row.from_boards).sum()
}

/// The first PE's worker is kept busy, and the second takes turns: it runs the tasks of the first.
/// Returns how many of them came from the board.
fn steals_from(pes: &[ByHand; 2], argument_bytes: usize) -> u64 {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    IS_OPEN.store(false, SeqCst);
    IS_KEPT.store(false, SeqCst);
    let cx = pes[0].context();
    let keep = |()| {
        IS_KEPT.store(true, SeqCst);
        eventually("it is opened", || IS_OPEN.load(SeqCst));
    };
    let kept = cx.spawn_fn(Distance::ZERO, keep, ());
    eventually("it is kept", || IS_KEPT.load(SeqCst));
    let length = |text: Vec<String>| text.concat().len();
    let spawn = |_| cx.spawn_fn(Distance::ONE, length, vec!["x".repeat(argument_bytes)]);
    let stolen: Vec<_> = (0..20).map(spawn).collect();
    let stolen = async move {
        let mut lengths = 0;
        for task in stolen {
            lengths += task.await.expect("it is run");
        }
        lengths
    };
    let all = end_with_turns_of(pes, stolen);
    assert_eq!(all, 20 * argument_bytes);
    IS_OPEN.store(true, SeqCst);
    assert_eq!(end_of(kept), Ok(()));
    from_boards(&pes[1])
}

#[test]
fn tasks_are_taken_from_a_board_unless_they_are_long_or_it_cannot_be_opened() {
    assert!(steals_from(&two_with_boards(true), 10) > 0);
    assert_eq!(steals_from(&two_with_boards(true), 2000), 0, "by message");
    assert_eq!(steals_from(&two_with_boards(false), 10), 0, "by message");
}
