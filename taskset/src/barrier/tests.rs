use std::{
    sync::atomic::{AtomicU64 as Count, Ordering::SeqCst},
    thread,
};

use proptest::prelude::*;

use super::*;

const LEADER: Result<Outcome, Removed> = Ok(Outcome::Released { leader: true });
const CHANGED: Result<Outcome, Removed> = Ok(Outcome::Changed);

fn never(_: u32) {
    panic!("it waits");
}

#[test]
fn zeroed_bytes_are_a_barrier_without_members() {
    let barrier = Barrier::<2>::new();
    assert_eq!(barrier.word.load(SeqCst), 0);
    assert_eq!((size_of_val(&barrier), align_of_val(&barrier)), (128, 128));
}

/// Where the processor cannot, all else in this file fails: there the members cannot meet.
#[test]
fn members_join_where_the_processor_is_lock_free() {
    let joined = Barrier::<2>::new().join(0, 1);
    let is_refused = joined == Err(CannotJoin::NotLockFree(NotLockFree));
    assert_eq!(is_refused, !AtomicBits::is_lock_free());
}

#[test]
fn an_incarnation_joins_once_and_in_order() {
    let barrier = Barrier::<2>::new();
    assert_eq!(barrier.join(2, 1), Err(CannotJoin::NoSlot { slot: 2, slots: 2 }));
    let old = |incarnation, last| Err(CannotJoin::Old { slot: 0, incarnation, last });
    assert_eq!(barrier.join(0, 0), old(0, 0));
    let member = barrier.join(0, 3).expect("the slot is free");
    assert_eq!(barrier.join(0, 3), old(3, 3));
    barrier.leave(member);
    assert_eq!(barrier.join(0, 3), old(3, 3));
    let mut late = barrier.join(0, 4).expect("that is a later one");
    let mut next = barrier.join(0, 5).expect("that is a later one, too: the other is dead");
    assert_eq!(barrier.wait(&mut late, never), Err(Removed { slot: 0, incarnation: 4 }));
    barrier.leave(late);
    assert!(!barrier.remove(0, 4));
    assert_eq!(barrier.wait(&mut next, never), LEADER);
}

#[test]
fn one_of_two_removes() {
    let barrier = Barrier::<2>::new();
    let mut member = barrier.join(0, 1).expect("the slot is free");
    let _dead = barrier.join(1, 1).expect("the slot is free");
    assert!(barrier.remove(1, 1));
    assert!(!barrier.remove(1, 1));
    assert!(!barrier.remove(7, 1));
    assert_eq!(barrier.wait(&mut member, never), CHANGED);
    assert_eq!(barrier.wait(&mut member, never), LEADER);
    assert_eq!(barrier.releases(), 1);
}

/// Removed by its next incarnation before it announced itself, it believes that it has joined.
#[test]
fn a_member_removed_within_join_does_not_count() {
    let barrier = Barrier::<2>::new();
    let mut late = barrier.join(0, 1).expect("the slot is free");
    let _next = barrier.join(0, 2).expect("the other is dead");
    late.seen = barrier.recall();
    assert_eq!(barrier.wait(&mut late, never), Err(Removed { slot: 0, incarnation: 1 }));
}

#[test]
fn a_release_without_it_is_none_for_a_member_removed() {
    let barrier = Barrier::<2>::new();
    let mut late = barrier.join(1, 1).expect("the slot is free");
    let mut other = barrier.join(0, 1).expect("the slot is free");
    assert_eq!(barrier.wait(&mut late, never), CHANGED);
    let removed = barrier.wait(&mut late, |_| {
        barrier.remove(1, 1);
        assert_eq!(
            [barrier.wait(&mut other, never), barrier.wait(&mut other, never)],
            [CHANGED, LEADER]
        );
    });
    assert_eq!(removed, Err(Removed { slot: 1, incarnation: 1 }));
}

#[test]
fn the_pause_can_end_the_wait() {
    let barrier = Barrier::<2>::new();
    let [mut member, _other] = [0, 1].map(|slot| barrier.join(slot, 1).expect("it is free"));
    assert_eq!(barrier.wait(&mut member, never), CHANGED);
    let mut pauses = 0;
    let pause = |round| {
        pauses += 1;
        if round == 3 {
            barrier.recall();
        }
    };
    assert_eq!(barrier.wait(&mut member, pause), CHANGED);
    assert_eq!(pauses, 4);
}

#[test]
fn a_damaged_slot_is_no_member() {
    let barrier = Barrier::<3>::new();
    for (slot, bits) in [(0, 3), (1, 1 << 40 | 1)] {
        barrier.slots[slot].store(bits, SeqCst);
        assert_eq!(barrier.join(slot, 7), Err(CannotJoin::Damaged { slot }));
    }
    let mut member = barrier.join(2, 1).expect("it is free");
    assert_eq!(barrier.wait(&mut member, never), LEADER);
    barrier.word.store(Word { waiting: 9, ..barrier.load() }.bits(), SeqCst);
    assert_eq!(barrier.wait(&mut member, never), LEADER);
}

proptest! {
    #[test]
    fn a_word_keeps_its_parts(
        waiting: u32, membership in 0..1_u64 << 48, release in 0..1_u64 << 48
    ) {
        let word = Word { waiting: waiting.into(), membership, release };
        prop_assert_eq!(Word::from_bits(word.bits()), word);
        let released = Word::from_bits(word.released().bits());
        prop_assert_eq!((released.waiting, released.membership), (0, membership));
        let changed = Word::from_bits(word.changed().bits());
        prop_assert_eq!((changed.waiting, changed.release), (0, release));
    }
}

/// Members come and go; no release passes one that is there.
#[test]
fn threads_meet_while_others_come_and_go() {
    const ROUNDS: u64 = if cfg!(miri) { 5 } else { 300 };
    const STEADY: usize = 3;
    let barrier = Barrier::<5>::new();
    let came = [const { Count::new(0) }; STEADY];
    let meet = |member: &mut Member| loop {
        match barrier.wait(member, pause).expect("no one is removed") {
            Outcome::Released { leader } => break leader,
            Outcome::Changed => {}
        }
    };
    let members = [0, 1, 2].map(|slot| barrier.join(slot, 1).expect("it is free"));
    let leaders = thread::scope(|scope| {
        let steady = members.map(|mut member| {
            let (barrier, came, meet) = (&barrier, &came, &meet);
            scope.spawn(move || {
                let mut lead = |round| {
                    came[member.slot].store(round, SeqCst);
                    let is_leader = meet(&mut member);
                    assert!(came.iter().all(|came| came.load(SeqCst) >= round));
                    u64::from(is_leader)
                };
                let leads = (1..=ROUNDS).map(&mut lead).sum::<u64>();
                barrier.leave(member);
                leads
            })
        });
        for slot in [3, 4] {
            let (barrier, meet) = (&barrier, &meet);
            scope.spawn(move || {
                for incarnation in 1..=ROUNDS as u32 / 10 {
                    let mut member = barrier.join(slot, incarnation).expect("it is free");
                    if incarnation.is_multiple_of(2) {
                        meet(&mut member);
                    }
                    barrier.leave(member);
                }
            });
        }
        steady.map(|member| member.join().expect("no member panics")).into_iter().sum::<u64>()
    });
    assert!(leaders <= barrier.releases() && barrier.releases() >= ROUNDS);
}
