//! The queue beside that of crossbeam, and the barrier beside that of `std`: between threads, which
//! see the same memory as processes do.

use crate::launch::Bench;
use crate::{Report, Sample, Unit};
use crossbeam_deque::{Steal as TheirSteal, Worker as Deque};
use std::hint::{black_box, spin_loop};
use std::sync::Barrier as StdBarrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Instant;
use ultramarine::taskset::Memory;
use ultramarine::taskset::barrier::{Barrier, Member, pause};
use ultramarine::taskset::queue::{Queue, RING_ALIGN, Steal};

const SAMPLES: usize = 31;
const BATCH: u64 = 1000;
const RING_LENGTH: u64 = 1024;
/// Turns of the victim and the thief.
const TURNS: u64 = 5000;
/// Entries after the first that the thief takes in a turn.
const MORE: u64 = 64;
const MEETINGS: u64 = 20_000;
const MEMBERS: usize = 2;

/// The ring of a queue.
struct Ring(Vec<AtomicU64>);

impl Memory for Ring {
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        let first = usize::try_from(offset / 8).ok()?;
        self.0.get(first..first.checked_add(count)?).filter(|_| offset.is_multiple_of(8))
    }
}

pub(super) fn measure(bench: &Bench, report: &Report) {
    let words = RING_ALIGN / 8 + RING_LENGTH;
    let ring = Ring((0..words).map(|_| AtomicU64::new(0)).collect());
    let queue = Queue::default();
    queue.grow(&ring, RING_ALIGN, RING_LENGTH).expect("the ring is as the queue wants it");
    let samples = bench.rounds(SAMPLES);
    one_thread(report, samples, &queue, &ring);
    another_thread(report, &queue, &ring);
    let ours = (0..samples).map(|_| threads_meet()).collect();
    report.figure("2 threads meet", &ours, Unit::NANOS);
    let theirs = (0..samples).map(|_| threads_meet_by_std()).collect();
    report.figure("2 threads meet, std", &theirs, Unit::NANOS);
}

/// Nanoseconds for each of `count` in `work`.
fn timed(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

fn push(queue: &Queue, ring: &Ring, entry: u64) {
    // The ring has room for a batch.
    let _ = queue.push(ring, entry);
}

fn one_thread(report: &Report, samples: usize, queue: &Queue, ring: &Ring) {
    let running = AtomicU64::new(0);
    let theirs = Deque::new_lifo();
    let [mut own, mut other] = [const { Sample::new() }; 2];
    for _ in 0..20 * samples {
        own.push(timed(BATCH, || {
            (1..=BATCH).for_each(|entry| push(queue, ring, entry));
            while let Some(entry) = queue.pop_into(ring, &running) {
                black_box(entry);
            }
        }));
        other.push(timed(BATCH, || {
            (1..=BATCH).for_each(|entry| theirs.push(entry));
            while let Some(entry) = theirs.pop() {
                black_box(entry);
            }
        }));
    }
    report.figure("the queue alone: push + pop", &own, Unit::NANOS);
    report.figure("crossbeam-deque: push + pop, in batches of 1000", &other, Unit::NANOS);
}

/// The victim pushes entries; the thief takes them, and is timed. Each waits for the other's turn.
fn another_thread(report: &Report, queue: &Queue, ring: &Ring) {
    let turn = AtomicU64::new(0);
    let await_turn = |whose: u64| {
        while turn.load(Acquire) != whose {
            spin_loop();
        }
    };
    let victim = |push: &dyn Fn(u64)| {
        for step in 0..TURNS {
            await_turn(2 * step);
            (1..=MORE + 1).for_each(push);
            turn.store(2 * step + 1, Release);
        }
    };
    // The first steal, which finds all in the victim's cache, and the mean of the others.
    let thief = |steal: &dyn Fn() -> bool| {
        let mut samples = [const { Sample::new() }; 2];
        for step in 0..TURNS {
            await_turn(2 * step + 1);
            samples[0].push(timed(1, || _ = steal()));
            samples[1].push(timed(MORE, || (0..MORE).for_each(|_| _ = steal())));
            turn.store(2 * step + 2, Release);
        }
        samples
    };
    let running = AtomicU64::new(0);
    let ours = thread::scope(|scope| {
        scope.spawn(|| victim(&|entry| push(queue, ring, entry)));
        thief(&|| matches!(queue.steal_into(ring, &running), Steal::Taken(_)))
    });
    turn.store(0, Release);
    let deque = Deque::new_lifo();
    let stealer = deque.stealer();
    let theirs = thread::scope(|scope| {
        scope.spawn(move || victim(&|entry| deque.push(entry)));
        thief(&|| matches!(stealer.steal(), TheirSteal::Success(_)))
    });
    let clock = (0..TURNS).map(|_| timed(1, || ())).collect();
    report.figure("reading the clock", &clock, Unit::NANOS);
    for (whose, [first, more]) in [("the queue alone", ours), ("crossbeam-deque", theirs)] {
        report.figure(&format!("{whose}: first steal, with the clock"), &first, Unit::NANOS);
        report.figure(&format!("{whose}: {MORE} more, each"), &more, Unit::NANOS);
    }
}

fn threads_meet() -> f64 {
    let barrier = Barrier::<MEMBERS>::new();
    let joined: Vec<_> = (0..MEMBERS).filter_map(|slot| barrier.join(slot, 1).ok()).collect();
    let barrier = &barrier;
    let live = move |mut member: Member| {
        while barrier.releases() < MEETINGS && barrier.wait(&mut member, pause).is_ok() {}
        barrier.leave(member);
    };
    timed(MEETINGS, || {
        thread::scope(|scope| {
            for member in joined {
                scope.spawn(move || live(member));
            }
        });
    })
}

fn threads_meet_by_std() -> f64 {
    let barrier = StdBarrier::new(MEMBERS);
    timed(MEETINGS, || {
        thread::scope(|scope| {
            for _ in 0..MEMBERS {
                scope.spawn(|| (0..MEETINGS).for_each(|_| _ = barrier.wait()));
            }
        });
    })
}
