//! One board, by hand and in other processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::*;
use crate::test_memory::TestMemory;
use crate::test_process::{in_child, was_killed, words};

fn board() -> Board<TestMemory> {
    Board::new(TestMemory::new(WORDS))
}

fn take<M: Memory>(board: &Board<M>, taker: u32, nearest: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    board.take(taker, nearest, &mut bytes).then_some(bytes)
}

#[test]
fn a_taker_gets_the_smallest_level_that_reaches_it_and_of_that_the_oldest() {
    let board = board();
    for (slot, (level, number)) in [(2, 1), (1, 4), (1, 3), (0, 2)].into_iter().enumerate() {
        board.post(slot, level, number, &[number as u8; 9]);
    }
    assert_eq!(take(&board, 7, 1), Some(vec![3; 9]));
    assert_eq!(take(&board, 7, 1), Some(vec![4; 9]));
    assert_eq!(take(&board, 7, 3), None);
    assert_eq!(take(&board, 8, 1), Some(vec![1; 9]));
    assert_eq!(take(&board, 7, 1), None, "that of level 0 does not reach it");
    let slots = [Slot::Taken(8), Slot::Taken(7), Slot::Taken(7), Slot::Ready, Slot::Empty];
    assert_eq!(array::from_fn(|slot| board.slot(slot)), slots);
}

#[test]
fn a_task_is_taken_back_unless_another_process_has_it() {
    let board = board();
    for slot in [0, 1] {
        board.post(slot, 0, slot as u64, &[]);
    }
    assert_eq!(take(&board, u32::MAX, 0), Some(vec![]));
    assert_eq!([0, 1].map(|slot| board.take_back(slot)), [Err(u32::MAX), Ok(())]);
    assert_eq!([0, 1].map(|slot| board.slot(slot)), [Slot::Taken(u32::MAX), Slot::Empty]);
    board.free(0);
    assert_eq!(board.slot(0), Slot::Empty);
    assert_eq!(take(&board, 1, 0), None);
}

#[test]
fn the_longest_task_is_taken_whole() {
    let board = board();
    let bytes: Vec<u8> = (0..BYTES_MAX).map(|n| (n * 7) as u8).collect();
    board.post(SLOTS - 1, u8::MAX, (1 << 43) - 1, &bytes);
    board.post(SLOTS - 2, u8::MAX, 0, &bytes[1..]);
    assert_eq!(take(&board, 1, 0).as_deref(), Some(&bytes[1..]));
    assert_eq!(take(&board, 1, u8::MAX).as_deref(), Some(&bytes[..]));
}

#[test]
fn a_damaged_state_is_no_task() {
    let board = board();
    board.post(0, 0, 1, &[1]);
    let longer = (BYTES_MAX as u64 + 1) << LENGTH_AT;
    for damaged in [READY | longer, 3, u64::MAX, READY | u64::MAX << LENGTH_AT] {
        board.state(0).store(damaged, Relaxed);
        assert_eq!(take(&board, 1, 0), None, "{damaged:#x}");
    }
}

#[test]
fn a_signal_is_taken_once() {
    let board = board();
    for process in [0, 63, 64, SIGNALLERS_MAX - 1, 63] {
        board.raise(Signal::Asks, process);
    }
    assert!(board.is_raised(Signal::Asks, 2) && !board.is_raised(Signal::Posted, SIGNALLERS_MAX));
    let taken: Vec<_> = board.take_raised(Signal::Asks).collect();
    assert_eq!(taken, [0, 63, 64, SIGNALLERS_MAX - 1]);
    assert_eq!(board.take_raised(Signal::Asks).next(), None);
    board.raise(Signal::Posted, 5);
    assert!(board.is_raised(Signal::Posted, 6) && !board.is_raised(Signal::Asks, SIGNALLERS_MAX));
}

#[test]
fn another_file_is_refused() {
    let own = OwnBoard::create().unwrap();
    let open = |at, identity| Board::open(at, identity);
    assert!(matches!(open(own.address(), [1, 2]), Err(Refusal::NotYet)));
    own.board().announce([1, 2]);
    own.board().post(0, 0, 1, b"task");
    let opened = open(own.address(), [1, 2]).unwrap();
    assert_eq!(take(&opened, 1, 0).as_deref(), Some(&b"task"[..]));
    assert_eq!(own.board().slot(0), Slot::Taken(1));
    for identity in [[1, 3], [2, 2]] {
        assert!(matches!(open(own.address(), identity), Err(Refusal::Other)));
    }
    let file = tempfile::tempfile().unwrap();
    file.set_len(Board::<SharedFile>::MEMORY_BYTES as u64).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file) as u32;
    let other = Address { descriptor, ..own.address() };
    assert!(matches!(open(other, [1, 2]), Err(Refusal::Other)), "it could become shorter");
    let gone = Address { descriptor: 1 << 20, ..own.address() };
    assert!(matches!(open(gone, [1, 2]), Err(Refusal::Closed(_))));
}

/// How long a test may take; past that it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Tasks that the owner posts.
const TASKS: u64 = 20_000;

/// A taker is killed each time that this many more are posted.
const TASKS_TO_A_KILL: u64 = 2_000;

/// What a taker does in a process of its own, which is killed at any time: it appends each task
/// that it has taken to a file.
#[test]
#[ignore = "a process of other tests"]
fn taker() {
    let Some(words) = words() else { return };
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let at = Address { process: number(0) as u32, descriptor: number(1) as u32 };
    let (taker, changes) = (number(2) as u32, number(3) as i64);
    let mut log = File::options().append(true).open(&words[4]).unwrap();
    let board = Board::open(at, [1, 2]).unwrap();
    if changes > 0 {
        crate::crash::after(changes);
    }
    let (mut bytes, begun) = (Vec::new(), Instant::now());
    while board.need() == 0 && begun.elapsed() < PATIENCE {
        if board.take(taker, 0, &mut bytes) {
            let task = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(bytes[8..].iter().all(|byte| *byte == task as u8), "the copy is whole");
            log.write_all(&bytes[..8]).unwrap();
        } else {
            board.raise(Signal::Asks, taker as usize);
        }
    }
}

fn start(own: &OwnBoard, taker: u64, changes: i64, log: &Path) -> Child {
    let Address { process, descriptor } = own.address();
    let words = format!("{process} {descriptor} {taker} {changes} {}", log.display());
    in_child("board::tests::taker", &words).spawn().unwrap()
}

/// Posts tasks until all are taken, by takers that are killed meanwhile: each is taken once, or
/// taken back.
#[test]
fn takers_that_are_killed_take_each_task_once() {
    let own = OwnBoard::create().unwrap();
    own.board().announce([1, 2]);
    let log = NamedTempFile::new().unwrap();
    let start = |taker| start(&own, taker, 0, log.path());
    let mut takers: BTreeMap<u64, Child> = (0..3).map(|taker| (taker, start(taker))).collect();
    let (mut here, mut posted, mut kills) = ([0; SLOTS], 0, 0);
    let (mut taken, mut back, begun) = (0, BTreeSet::new(), Instant::now());
    while posted < TASKS || here != [0; SLOTS] {
        assert!(begun.elapsed() < PATIENCE, "{posted} posted, {taken} taken");
        for (slot, task) in here.iter_mut().enumerate() {
            match own.board().slot(slot) {
                Slot::Taken(taker) => {
                    assert!(*task > 0 && u64::from(taker) < 3 + kills, "{taker} has {task}");
                    own.board().free(slot);
                    (*task, taken) = (0, taken + 1);
                }
                Slot::Ready if posted == TASKS || posted % 64 == 0 => {
                    if own.board().take_back(slot).is_ok() {
                        back.insert(std::mem::take(task));
                    }
                }
                Slot::Empty if posted < TASKS => {
                    posted += 1;
                    let length = posted as usize % 40;
                    let mut bytes = posted.to_le_bytes().to_vec();
                    bytes.resize(8 + length, posted as u8);
                    own.board().post(slot, 0, posted, &bytes);
                    *task = posted;
                }
                Slot::Ready | Slot::Empty => {}
            }
        }
        if posted / TASKS_TO_A_KILL > kills {
            let (number, mut child) = takers.pop_first().unwrap();
            child.kill().unwrap();
            assert!(was_killed(child.wait().unwrap()), "{number}");
            kills += 1;
            takers.insert(2 + kills, start(2 + kills));
        }
    }
    own.board().set_need(1);
    for mut child in takers.into_values() {
        assert!(child.wait().unwrap().success());
    }
    let log = std::fs::read(log.path()).unwrap();
    let logged = log.as_chunks().0.iter().map(|task| u64::from_le_bytes(*task));
    let distinct: BTreeSet<u64> = logged.clone().collect();
    assert_eq!(logged.count(), distinct.len(), "no task was taken twice");
    assert!(distinct.is_disjoint(&back), "none was taken that is back");
    // A taker may be killed between taking a task and saying so.
    let unsaid = taken - distinct.len() as u64;
    assert!(unsaid <= kills && kills >= 5, "{taken} taken, {unsaid} unsaid, {kills} kills");
    assert_eq!(taken + back.len() as u64, TASKS);
}

/// A descriptor that was a board's may be anything later: what is no file is not opened.
#[test]
fn what_is_no_file_is_refused_unopened() {
    // To open a socket is an error of its own.
    let (socket, _other) = UnixStream::pair().unwrap();
    let at = Address { descriptor: socket.as_raw_fd() as u32, process: std::process::id() };
    let refused = Board::<SharedFile>::open(at, [1, 2]);
    assert!(matches!(refused, Err(Refusal::Other)), "{refused:?}");
}

/// A taker dies right after each change of the memory that it makes: the task is there still, or
/// the owner knows who has it.
#[test]
fn a_taker_that_dies_at_any_point_leaves_the_board_as_it_was_or_its_number() {
    let mut seen = Vec::new();
    for changes in 1..=3 {
        let own = OwnBoard::create().unwrap();
        own.board().announce([1, 2]);
        own.board().post(0, 0, 1, &1_u64.to_le_bytes());
        if changes == 3 {
            own.board().post(1, 0, 2, &2_u64.to_le_bytes());
        }
        assert!(was_killed(start(&own, 5, changes, Path::new("/dev/null")).wait().unwrap()));
        seen.push([0, 1].map(|slot| own.board().slot(slot)));
        assert_eq!(own.board().is_raised(Signal::Asks, 6), changes > 1);
    }
    let alone = [Slot::Taken(5), Slot::Empty];
    assert_eq!(seen, [alone, alone, [Slot::Taken(5), Slot::Taken(5)]]);
}
