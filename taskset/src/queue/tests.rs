use std::{collections::VecDeque, sync::Mutex, sync::atomic::AtomicBool, thread};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::test_memory::TestMemory;

/// Where the `n`th ring of a test lies, of 8 << n entries, and memory for five of them.
fn ring(n: u32) -> (u64, u64) {
    (64 << n, 8 << n)
}
const WORDS: usize = 512;

fn queue_of_8(memory: &TestMemory) -> Queue {
    let queue = Queue::default();
    queue.grow(memory, 64, 8).expect("the ring is good");
    queue
}

fn set(queue: &Queue, top: u64, bottom: u64) {
    queue.top.store(top, Relaxed);
    queue.bottom.store(bottom, Relaxed);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    Steal,
    Grow,
    Adopt,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::{Adopt, Grow, Pop, Push, Steal};
    let step = prop_oneof![
        6 => Just(Push), 2 => Just(Pop), 2 => Just(Steal), 1 => Just(Grow), 1 => Just(Adopt)
    ];
    vec(step, 0..300)
}

proptest! {
    #[test]
    fn one_thread_sees_a_double_ended_queue(steps in steps(), start in any::<u64>()) {
        let memory = TestMemory::new(WORDS);
        let queue = queue_of_8(&memory);
        set(&queue, start, start);
        let (mut model, mut grown) = (VecDeque::new(), 0);
        let running = AtomicU64::new(0);
        for (value, step) in (1..).zip(steps) {
            match step {
                Step::Push if model.len() == 8 << grown => {
                    prop_assert_eq!(queue.push(&memory, value), Err(Full));
                }
                Step::Push => {
                    prop_assert_eq!(queue.push(&memory, value), Ok(()));
                    model.push_back(value);
                }
                Step::Pop => {
                    let expected = model.pop_back();
                    prop_assert_eq!(queue.pop_into(&memory, &running), expected);
                    prop_assert_eq!(running.load(Relaxed), expected.unwrap_or(0));
                }
                Step::Steal => {
                    let expected = model.pop_front();
                    let stolen = expected.map_or(Steal::Empty, Steal::Taken);
                    prop_assert_eq!(queue.steal_into(&memory, &running), stolen);
                    prop_assert_eq!(running.load(Relaxed), expected.unwrap_or(0));
                }
                Step::Grow if grown < 4 => {
                    grown += 1;
                    let (offset, length) = ring(grown);
                    prop_assert_eq!(queue.grow(&memory, offset, length), Ok(()));
                }
                Step::Grow => {}
                Step::Adopt => queue.adopt(),
            }
            prop_assert_eq!(queue.len(), model.len() as u64);
        }
    }

    #[test]
    fn damage_harms_only_what_is_found(
        [top, bottom, ring_word] in any::<[u64; 3]>(), near in 0..20_u64, keeps_ring: bool
    ) {
        for bottom in [bottom, top.wrapping_add(near), top.wrapping_sub(near)] {
            let memory = TestMemory::new(WORDS);
            let queue = queue_of_8(&memory);
            set(&queue, top, bottom);
            if !keeps_ring {
                queue.ring.store(ring_word, Relaxed);
            }
            if !(1..=8).contains(&count(top, bottom)) {
                prop_assert_eq!(queue.steal(&memory), Steal::Empty);
            }
            let _ = (queue.pop(&memory), queue.push(&memory, 1));
            queue.adopt();
            let (offset, length) = ring(3);
            prop_assert_eq!(queue.grow(&memory, offset, length), Ok(()));
            prop_assert!(queue.len() <= 64);
            while queue.pop(&memory).is_some() {}
            queue.push(&memory, 7).expect("the ring is new, and the queue empty");
            prop_assert_eq!(queue.steal(&memory), Steal::Taken(7));
        }
    }
}

#[test]
fn an_owner_that_died_in_pop_leaves_an_empty_queue() {
    let memory = TestMemory::new(WORDS);
    for is_adopted in [true, false] {
        let queue = queue_of_8(&memory);
        set(&queue, 5, 4);
        assert_eq!(queue.steal(&memory), Steal::Empty);
        if is_adopted {
            queue.adopt();
        }
        assert_eq!(queue.pop(&memory), None);
        queue.push(&memory, 1).expect("there is room");
        assert_eq!((queue.len(), queue.steal(&memory)), (1, Steal::Taken(1)));
    }
}

#[test]
fn a_ring_must_fit() {
    let memory = TestMemory::new(WORDS);
    let queue = queue_of_8(&memory);
    for value in 1..=8 {
        queue.push(&memory, value).expect("there is room");
    }
    let far = 8 * WORDS as u64;
    for (offset, length) in
        [(0, 16), (72, 16), (128, 12), (128, 0), (128, 4), (far, 16), (64, 1 << 63)]
    {
        assert_eq!(queue.grow(&memory, offset, length), Err(BadRing { offset, length }));
    }
    assert_eq!((queue.len(), queue.steal(&memory)), (8, Steal::Taken(1)));
}

#[test]
fn a_zeroed_queue_is_empty_and_full() {
    let memory = TestMemory::new(WORDS);
    let queue = Queue::default();
    assert_eq!(queue.push(&memory, 1), Err(Full));
    assert_eq!((queue.pop(&memory), queue.steal(&memory)), (None, Steal::Empty));
}

/// The owner grows the queue, hands it on to another thread now and then, and takes most of the
/// entries itself; thieves take the rest.
#[test]
fn each_entry_is_taken_once() {
    const ENTRIES: u64 = if cfg!(miri) { 300 } else { 300_000 };
    let memory = TestMemory::new(WORDS);
    let queue = queue_of_8(&memory);
    let is_done = AtomicBool::new(false);
    let taken = Mutex::new(Vec::new());
    let own = |first: u64, last: u64| {
        queue.adopt();
        let (mut own, mut grown) = (Vec::new(), 0);
        for value in first..last {
            while queue.push(&memory, value).is_err() {
                own.extend(queue.pop(&memory));
                grown += 1;
                let (offset, length) = ring(grown.min(4));
                let _ = queue.grow(&memory, offset, length);
            }
            if value % 3 == 0 {
                own.extend(queue.pop(&memory));
            }
        }
        taken.lock().expect("no thread panics").append(&mut own);
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut stolen = Vec::new();
                while !is_done.load(Acquire) || !queue.is_empty() {
                    match queue.steal(&memory) {
                        Steal::Taken(value) => stolen.push(value),
                        _ => thread::yield_now(),
                    }
                }
                taken.lock().expect("no thread panics").append(&mut stolen);
            });
        }
        for part in 0..10 {
            let [first, last] = [part, part + 1].map(|part| 1 + part * ENTRIES / 10);
            scope.spawn(move || own(first, last)).join().expect("the owner does not panic");
        }
        is_done.store(true, Release);
    });
    let mut taken = taken.into_inner().expect("no thread panicked");
    taken.sort_unstable();
    assert!(taken.into_iter().eq(1..=ENTRIES));
}
