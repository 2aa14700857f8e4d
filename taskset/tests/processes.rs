//! Processes that share a queue or a barrier, and are killed at random.
#![cfg(not(loom))]

mod common;

use std::{
    hint,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Child, SLOTS, Shared};
use ultramarine_taskset::{
    barrier::{Outcome, pause},
    queue::Steal,
};

/// How long a test may take; past that it has failed.
const PATIENCE: Duration = Duration::from_mins(1);
const KILLS: u32 = 200;
/// Where the parent says that the workers are to end.
const STOP: usize = 1024;

/// Kills a random worker again and again, at least until `is_done`, and has the others end.
/// `live(worker, life)` is what a worker does; `bury(worker, life)` is called when it has been
/// killed.
fn kill_at_random(
    shared: &Shared,
    workers: usize,
    is_done: impl Fn() -> bool,
    live: impl Fn(usize, u32) -> bool,
    bury: impl Fn(usize, u32),
) {
    let start = Instant::now();
    let revive = |worker, life| Child::run(|| live(worker, life));
    let mut workers: Vec<_> = (0..workers).map(|worker| (1, revive(worker, 1))).collect();
    let mut random = xorshift(42);
    let mut kills = 0;
    while kills < KILLS || !is_done() {
        assert!(start.elapsed() < PATIENCE, "the workers make no progress after {kills} kills");
        thread::sleep(Duration::from_micros(random() % 2000));
        let worker = random() as usize % workers.len();
        let (life, child) = workers.swap_remove(worker);
        assert!(!child.has_ended(), "a worker saw what must not be");
        child.kill();
        kills += 1;
        bury(worker, life);
        workers.push((life + 1, revive(worker, life + 1)));
        let last = workers.len() - 1;
        workers.swap(worker, last);
    }
    shared.word(STOP).store(1, Release);
    for (_, child) in workers {
        while !child.has_ended() {
            assert!(start.elapsed() < PATIENCE, "a worker does not end");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(child.ends_well(), "a worker saw what must not be");
    }
}

fn is_over(shared: &Shared) -> bool {
    shared.word(STOP).load(Acquire) == 1
}

/// Pseudo-random numbers by Marsaglia's xorshift.
fn xorshift(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    }
}

mod queue {
    use super::*;

    const ENTRIES: u64 = 200_000;
    const WORKERS: usize = 3;
    const QUEUE: usize = 0;
    /// How many entries have been pushed.
    const PUSHED: usize = 1032;
    /// The running slot of each worker.
    const RUNNING: usize = 1040;
    const RING: u64 = 4096;
    const RING_LENGTH: u64 = 1024;
    /// By entry: how many times it has been claimed.
    const CLAIMS: usize = RING as usize + 8 * RING_LENGTH as usize;

    fn claims(shared: &Shared, entry: u64) -> &AtomicU64 {
        shared.word(CLAIMS + 8 * entry as usize)
    }

    fn run(shared: &Shared, entry: u64) {
        if claims(shared, entry).compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
            (0..20).for_each(|_| hint::spin_loop());
        }
    }

    fn own(shared: &Shared, running: &AtomicU64) {
        let queue = shared.queue(QUEUE);
        queue.adopt();
        while !is_over(shared) {
            let entry = shared.word(PUSHED).load(Relaxed) + 1;
            if entry <= ENTRIES && queue.push(shared, entry).is_ok() {
                shared.word(PUSHED).store(entry, Release);
            }
            if entry > ENTRIES || entry.is_multiple_of(3) {
                queue.pop_into(shared, running).into_iter().for_each(|entry| run(shared, entry));
            }
        }
    }

    fn rob(shared: &Shared, running: &AtomicU64) {
        while !is_over(shared) {
            match shared.queue(QUEUE).steal_into(shared, running) {
                Steal::Taken(entry) => run(shared, entry),
                Steal::Empty | Steal::Retry => hint::spin_loop(),
            }
        }
    }

    #[test]
    fn no_entry_is_lost_when_workers_are_killed() {
        let shared = Shared::new(CLAIMS + 8 * (ENTRIES as usize + 1));
        shared.queue(QUEUE).grow(&shared, RING, RING_LENGTH).expect("the ring is good");
        let live = |worker: usize, _| {
            let running = shared.word(RUNNING + 8 * worker);
            // What the last life had taken; 0 is never looked at.
            run(&shared, running.load(Acquire));
            let work = if worker == 0 { own } else { rob };
            work(&shared, running);
            true
        };
        let is_done = || (1..=ENTRIES).all(|entry| claims(&shared, entry).load(Acquire) == 1);
        kill_at_random(&shared, WORKERS, is_done, live, |_, _| ());
    }
}

mod barrier {
    use super::*;

    const RELEASES: u64 = 500;
    const MEMBERS: usize = 4;
    /// By member: the number of the release for which it came last.
    const CAME: usize = 1040;
    const NOT_THERE: u64 = u64::MAX;
    /// By member: the last incarnation that was killed.
    const DEAD: usize = CAME + 8 * SLOTS;

    fn remove_the_dead(shared: &Shared) {
        for slot in 0..MEMBERS {
            let incarnation = shared.word(DEAD + 8 * slot).load(Acquire) as u32;
            shared.barrier(0).remove(slot, incarnation);
        }
    }

    /// Meets the others until all is over; `false` when it was released and another that lives had
    /// not come.
    fn live(shared: &Shared, slot: usize, incarnation: u32) -> bool {
        let barrier = shared.barrier(0);
        let Ok(mut member) = barrier.join(slot, incarnation) else { return false };
        let came = |slot: usize| shared.word(CAME + 8 * slot);
        came(slot).store(barrier.releases(), Relaxed);
        while !is_over(shared) {
            let release = barrier.releases() + 1;
            came(slot).store(release, Relaxed);
            let outcome = barrier.wait(&mut member, |round| {
                remove_the_dead(shared);
                pause(round);
            });
            match outcome {
                Ok(Outcome::Changed) => {}
                Ok(Outcome::Released { .. }) => {
                    if (0..MEMBERS).any(|other| came(other).load(Relaxed) < release) {
                        return false;
                    }
                    (0..1000 * slot).for_each(|_| hint::spin_loop());
                }
                Err(_) => return false,
            }
        }
        barrier.leave(member);
        true
    }

    #[test]
    fn all_that_live_meet_when_others_are_killed() {
        let shared = Shared::new(4096);
        let came = |slot| shared.word(CAME + 8 * slot);
        (0..MEMBERS).for_each(|slot| came(slot).store(NOT_THERE, Relaxed));
        let is_done = || shared.barrier(0).releases() >= RELEASES;
        let bury = |slot: usize, incarnation: u32| {
            came(slot).store(NOT_THERE, Relaxed);
            shared.word(DEAD + 8 * slot).store(incarnation.into(), Release);
        };
        let live = |slot, incarnation| live(&shared, slot, incarnation);
        kill_at_random(&shared, MEMBERS, is_done, live, bury);
    }
}
