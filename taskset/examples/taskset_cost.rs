//! What the queue and the barrier cost, beside `crossbeam-deque` and `std`'s barrier, in one run:
//! `cargo run --release -p ultramarine-taskset --example taskset_cost`.
//!
//! Prints medians with their quartiles, in ns.

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    hint::{black_box, spin_loop},
    sync::{
        Barrier as StdBarrier,
        atomic::Ordering::{Acquire, Release, SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Child, Shared};
use crossbeam_deque::{Steal as TheirSteal, Worker};
use ultramarine_taskset::{
    barrier::{Member, Outcome, pause},
    queue::{Queue, Steal},
};

const QUEUE: usize = 0;
/// Whose turn it is, between two processes.
const TURN: usize = 512;
const RUNNING: usize = 640;
/// What sleepers sleep on, and how many do.
const BELL: usize = 768;
const SLEEPERS: usize = 776;
const BARRIER: usize = 1024;
const RING: u64 = 4096;
const RING_LENGTH: u64 = 1024;
const SAMPLES: usize = 31;
const BATCH: u64 = 1000;

fn main() {
    let shared = Shared::new(1 << 16);
    shared.queue(QUEUE).grow(&shared, RING, RING_LENGTH).expect("the ring is good");
    one_thread(&shared);
    steals_from_another(&shared);
    for members in [2, 4] {
        meetings(members);
    }
}

/// Prints the quartiles of the samples.
fn report(what: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let quartile = |n: usize| samples[(samples.len() - 1) * n / 4];
    println!("{what:56} {:8.1} ({:.1} to {:.1}) ns", quartile(2), quartile(1), quartile(3));
}

/// ns for each of `count` in `work`.
fn timed(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

fn one_thread(shared: &Shared) {
    let queue: &Queue = shared.queue(QUEUE);
    let running = shared.word(RUNNING);
    let theirs = Worker::new_lifo();
    let stealer = theirs.stealer();
    let mut samples: [Vec<f64>; 5] = Default::default();
    let push_all =
        || (1..=BATCH).for_each(|entry| queue.push(shared, entry).expect("there is room"));
    for _ in 0..20 * SAMPLES {
        samples[0].push(timed(BATCH, || {
            push_all();
            while let Some(entry) = queue.pop_into(shared, running) {
                black_box(entry);
            }
        }));
        samples[1].push(timed(BATCH, || {
            (1..=BATCH).for_each(|entry| theirs.push(entry));
            while let Some(entry) = theirs.pop() {
                black_box(entry);
            }
        }));
        push_all();
        samples[2].push(timed(BATCH, || {
            while let Steal::Taken(entry) = queue.steal_into(shared, running) {
                black_box(entry);
            }
        }));
        (1..=BATCH).for_each(|entry| theirs.push(entry));
        samples[3].push(timed(BATCH, || {
            while let TheirSteal::Success(entry) = stealer.steal() {
                black_box(entry);
            }
        }));
        samples[4].push(timed(BATCH, || (0..BATCH).for_each(|_| queue.adopt())));
    }
    let [ours, theirs, our_steal, their_steal, adopt] = samples;
    report("push + pop_into", ours);
    report("push + pop, crossbeam", theirs);
    report("steal_into, by the owner's thread", our_steal);
    report("steal, crossbeam, by the owner's thread", their_steal);
    report("adopt", adopt);
}

/// The victim pushes 65 entries; the thief takes them, and is timed. Each waits for the other's
/// turn.
fn steals_from_another(shared: &Shared) {
    const MORE: u64 = 64;
    const TURNS: u64 = 5000;
    let turn = shared.word(TURN);
    let await_turn = |whose: u64| {
        while turn.load(Acquire) != whose {
            spin_loop();
        }
    };
    let victim = |push: &dyn Fn(u64)| {
        for step in 0..TURNS {
            await_turn(2 * step);
            (0..=MORE).for_each(push);
            turn.store(2 * step + 1, Release);
        }
    };
    // The first steal, which finds all in the victim's cache, and the mean of the others.
    let thief = |steal: &dyn Fn() -> bool| {
        let mut samples: [Vec<f64>; 2] = Default::default();
        for step in 0..TURNS {
            await_turn(2 * step + 1);
            samples[0].push(timed(1, || assert!(steal())));
            samples[1].push(timed(MORE, || (0..MORE).for_each(|_| assert!(steal()))));
            turn.store(2 * step + 2, Release);
        }
        samples
    };
    turn.store(0, Release);
    let queue: &Queue = shared.queue(QUEUE);
    let child = Child::run(|| {
        victim(&|entry| queue.push(shared, entry + 1).unwrap_or(()));
        true
    });
    let running = shared.word(RUNNING);
    let ours = thief(&|| matches!(queue.steal_into(shared, running), Steal::Taken(_)));
    assert!(child.ends_well());
    turn.store(0, Release);
    let worker = Worker::new_lifo();
    let stealer = worker.stealer();
    let theirs = thread::scope(|scope| {
        scope.spawn(move || victim(&|entry| worker.push(entry)));
        thief(&|| matches!(stealer.steal(), TheirSteal::Success(_)))
    });
    report("reading the clock", (0..TURNS).map(|_| timed(1, || ())).collect());
    for (what, [first, more]) in [("another process", ours), ("another thread, crossbeam", theirs)]
    {
        report(&format!("first steal from {what}, with the clock"), first);
        report("64 more, each", more);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pause {
    Sleep,
    Futex,
}

fn meetings(members: usize) {
    let mut samples: [Vec<f64>; 5] = Default::default();
    let late = Duration::from_millis(3);
    for _ in 0..SAMPLES {
        samples[0].push(processes_meet(members, Pause::Sleep, 20_000, Duration::ZERO));
        samples[1].push(processes_meet(members, Pause::Futex, 20_000, Duration::ZERO));
        samples[2].push(threads_meet(members));
        let late_ns = late.as_nanos() as f64;
        samples[3].push(processes_meet(members, Pause::Sleep, 20, late) - late_ns);
        samples[4].push(processes_meet(members, Pause::Futex, 20, late) - late_ns);
    }
    let [sleep, futex, std, late_sleep, late_futex] = samples;
    report(&format!("{members} processes meet, pause"), sleep);
    report(&format!("{members} processes meet, futex"), futex);
    report(&format!("{members} threads meet, std"), std);
    report(&format!("{members} processes meet, one 3 ms late, pause"), late_sleep);
    report(&format!("{members} processes meet, one 3 ms late, futex"), late_futex);
}

/// Member 0 works for a while before each meeting. Returns ns for a meeting.
fn processes_meet(members: usize, how: Pause, meetings: u64, work: Duration) -> f64 {
    let shared = Shared::new(4096);
    let barrier = shared.barrier(BARRIER);
    let [bell, sleepers] = [BELL, SLEEPERS].map(|offset| shared.word(offset));
    let join = |slot| barrier.join(slot, 1).expect("the slot is free");
    // All join before any meets.
    let mut joined: Vec<_> = (0..members).map(join).collect();
    let live = |slot: usize, mut member: Member| {
        while barrier.releases() < meetings {
            let start = Instant::now();
            while slot == 0 && start.elapsed() < work {
                spin_loop();
            }
            let seen = bell.load(Acquire) as u32;
            let outcome = barrier.wait(&mut member, |round| {
                if how == Pause::Sleep || round < 16 {
                    return pause(round);
                }
                sleepers.fetch_add(1, SeqCst);
                common::sleep_on(bell, seen);
                sleepers.fetch_sub(1, SeqCst);
            });
            match outcome {
                Ok(Outcome::Released { leader: true }) if how == Pause::Futex => {
                    bell.fetch_add(1, SeqCst);
                    if sleepers.load(SeqCst) > 0 {
                        common::wake_all(bell);
                    }
                }
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        barrier.leave(member);
        true
    };
    timed(meetings, || {
        let own = joined.remove(0);
        let run = |(slot, member)| Child::run(|| live(slot, member));
        let children: Vec<_> = (1..).zip(joined).map(run).collect();
        assert!(live(0, own) && children.into_iter().all(Child::ends_well));
    })
}

fn threads_meet(members: usize) -> f64 {
    const MEETINGS: u64 = 2000;
    let barrier = StdBarrier::new(members);
    timed(MEETINGS, || {
        thread::scope(|scope| {
            for _ in 0..members {
                scope.spawn(|| (0..MEETINGS).for_each(|_| _ = barrier.wait()));
            }
        });
    })
}
