//! A worker dies at each instruction in turn, and another goes on with what it left.
//!
//! One child runs instruction by instruction. After each that changed the shared memory, a copy of
//! this is what a death there would have left, and is examined.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::Ordering::Relaxed;

use common::{Child, SLOTS, Shared};
use ultramarine_taskset::{
    barrier::{Barrier, Outcome, Removed},
    queue::{Queue, Steal},
};

const BYTES: usize = 4096;
const ENTRIES: u64 = 24;
const QUEUE: usize = 0;
const RUNNING: usize = 1024;
/// By entry: 1 when it has been pushed, 2 when it has been run.
const STATES: usize = 1032;
const RINGS: usize = 2048;

/// Runs `work` in a child, and `examine` on copies of the memory. Returns how many there were.
fn crash_everywhere(shared: &Shared, work: impl Fn() -> bool, examine: impl Fn(&Shared)) -> usize {
    let copy = Shared::new(BYTES);
    let read = |shared: &Shared| -> Vec<u64> {
        shared.all().iter().map(|word| word.load(Relaxed)).collect()
    };
    let mut last = Vec::new();
    let mut points = 0;
    let ended_well = Child::step(work, || {
        let now = read(shared);
        if now != last {
            points += 1;
            copy.all().iter().zip(&now).for_each(|(word, value)| word.store(*value, Relaxed));
            examine(&copy);
            last = now;
        }
    });
    assert!(ended_well, "the work went wrong of itself");
    points
}

fn state(shared: &Shared, entry: u64) -> &std::sync::atomic::AtomicU64 {
    shared.word(STATES + 8 * entry as usize)
}

fn push(shared: &Shared, entry: u64, rings: &mut u64) -> bool {
    let queue = shared.queue(QUEUE);
    if queue.push(shared, entry).is_err() {
        let (offset, length) = (RINGS as u64 + (64 << *rings), 8 << *rings);
        *rings += 1;
        let has_grown = queue.grow(shared, offset, length).is_ok();
        if !has_grown || queue.push(shared, entry).is_err() {
            return false;
        }
    }
    state(shared, entry).store(1, Relaxed);
    true
}

fn run(shared: &Shared, entry: u64) {
    state(shared, entry).store(2, Relaxed);
    shared.word(RUNNING).store(0, Relaxed);
}

/// The successor finds each entry that was pushed and has not been run, in the queue once or in the
/// running slot; and the queue still works.
fn examine_queue(shared: &Shared) {
    let queue: &Queue = shared.queue(QUEUE);
    queue.adopt();
    let mut found = Vec::new();
    while let Steal::Taken(entry) = queue.steal(shared) {
        found.push(entry);
        found.extend(queue.pop(shared));
    }
    found.sort_unstable();
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "twice in {found:?}");
    let running = shared.word(RUNNING).load(Relaxed);
    for entry in 1..=ENTRIES {
        if state(shared, entry).load(Relaxed) == 1 {
            assert!(running == entry || found.contains(&entry), "{entry} not in {found:?}");
        }
    }
    if queue.grow(shared, RINGS as u64 + 512, 64).is_ok() {
        queue.push(shared, 99).expect("the ring is new");
        assert_eq!((queue.len(), queue.pop(shared)), (1, Some(99)));
    }
}

#[test]
fn an_owner_dies_anywhere() {
    if !Child::can_be_stepped() {
        return;
    }
    let shared = Shared::new(BYTES);
    let running = shared.word(RUNNING);
    let work = || {
        let queue = shared.queue(QUEUE);
        queue.adopt();
        let mut rings = 0;
        let are_pushed = (1..=ENTRIES).all(|entry| {
            let is_pushed = push(&shared, entry, &mut rings);
            if entry % 3 == 0 {
                let popped = queue.pop_into(&shared, running);
                popped.into_iter().for_each(|entry| run(&shared, entry));
            }
            is_pushed
        });
        while let Some(entry) = queue.pop_into(&shared, running) {
            run(&shared, entry);
        }
        are_pushed && queue.is_empty()
    };
    let points = crash_everywhere(&shared, work, examine_queue);
    assert!(points > 150, "{points}");
}

#[test]
fn a_thief_dies_anywhere() {
    if !Child::can_be_stepped() {
        return;
    }
    let shared = Shared::new(BYTES);
    let mut rings = 0;
    assert!((1..=ENTRIES).all(|entry| push(&shared, entry, &mut rings)));
    let work = || {
        while let Steal::Taken(entry) =
            shared.queue(QUEUE).steal_into(&shared, shared.word(RUNNING))
        {
            run(&shared, entry);
        }
        shared.queue(QUEUE).is_empty()
    };
    let points = crash_everywhere(&shared, work, examine_queue);
    assert!(points > 90, "{points}");
}

/// Members 1 and 2 live in the child. When it has died, two others remove them, and meet.
fn examine_barrier(shared: &Shared) {
    let barrier: &Barrier<SLOTS> = shared.barrier(0);
    for slot in [1, 2] {
        (1..=2).for_each(|incarnation| _ = barrier.remove(slot, incarnation));
    }
    let [mut anna, mut bert] = [0, 3].map(|slot| barrier.join(slot, 1).expect("it is free"));
    for _ in 0..2 {
        while barrier.wait(&mut bert, |_| _ = barrier.recall()) != Ok(Outcome::Changed) {}
        let mut has_bert_come = false;
        let mut outcome = Ok(Outcome::Changed);
        while outcome == Ok(Outcome::Changed) {
            outcome = barrier.wait(&mut anna, |_| {
                has_bert_come =
                    matches!(barrier.wait(&mut bert, |_| ()), Ok(Outcome::Released { .. }));
            });
        }
        assert_eq!((outcome, has_bert_come), (Ok(Outcome::Released { leader: false }), true));
    }
    assert!(barrier.join(1, 3).is_ok());
}

#[test]
fn a_member_dies_anywhere() {
    if !Child::can_be_stepped() {
        return;
    }
    let shared = Shared::new(BYTES);
    let work = || {
        let barrier = shared.barrier(0);
        let (Ok(mut first), Ok(mut second)) = (barrier.join(1, 1), barrier.join(2, 1)) else {
            return false;
        };
        let recall = |_| _ = barrier.recall();
        let is_right = barrier.wait(&mut first, recall) == Ok(Outcome::Changed)
            && barrier.wait(&mut first, recall) == Ok(Outcome::Changed)
            && barrier.wait(&mut second, recall) == Ok(Outcome::Changed);
        barrier.leave(second);
        let Ok(_) = barrier.join(2, 2) else { return false };
        is_right
            && barrier.remove(2, 2)
            && !barrier.remove(2, 2)
            && barrier.wait(&mut first, recall) == Ok(Outcome::Changed)
            && barrier.wait(&mut first, recall) == Ok(Outcome::Released { leader: true })
            && barrier.remove(1, 1)
            && barrier.wait(&mut first, recall) == Err(Removed { slot: 1, incarnation: 1 })
    };
    let points = crash_everywhere(&shared, work, examine_barrier);
    assert!(points > 20, "{points}");
}
