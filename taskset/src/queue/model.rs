//! All interleavings of small programs, within Loom's model of weak memory.

use loom::{model::Builder, sync::Arc, thread};

use super::*;
use crate::test_memory::TestMemory;

const RINGS: [(u64, u64); 2] = [(64, 2), (128, 4)];

struct World {
    memory: TestMemory,
    queue: Queue,
    /// What the owner writes before it pushes an entry, by entry.
    written: [AtomicU64; 4],
}

impl World {
    fn push(&self, entry: u64) {
        self.written[entry as usize].store(entry, Relaxed);
        self.queue.push(&self.memory, entry).expect("there is room");
    }

    fn pop(&self) -> Option<u64> {
        self.queue.pop(&self.memory)
    }

    /// Tries `times`, and sees what was written before each entry.
    fn steal(&self, times: usize) -> Vec<u64> {
        let steal = |_| match self.queue.steal(&self.memory) {
            Steal::Taken(entry) => {
                assert_eq!(self.written[entry as usize].load(Relaxed), entry);
                Some(entry)
            }
            Steal::Empty | Steal::Retry => None,
        };
        (0..times).filter_map(steal).collect()
    }

    fn rest(&self) -> Vec<u64> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

fn check(preemptions_max: usize, program: impl Fn(Arc<World>) + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(move || {
        let memory = TestMemory::new(20);
        let queue = Queue::default();
        queue.grow(&memory, RINGS[0].0, RINGS[0].1).expect("the ring is good");
        let written = std::array::from_fn(|_| AtomicU64::new(0));
        program(Arc::new(World { memory, queue, written }));
    });
}

fn thief(world: &Arc<World>, times: usize) -> thread::JoinHandle<Vec<u64>> {
    let world = Arc::clone(world);
    thread::spawn(move || world.steal(times))
}

fn assert_taken(parts: impl IntoIterator<Item = Vec<u64>>, all: std::ops::RangeInclusive<u64>) {
    let mut taken: Vec<u64> = parts.into_iter().flatten().collect();
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(all), "{taken:?}");
}

#[test]
fn the_owner_and_a_thief_share_the_entries() {
    check(4, |world| {
        world.push(1);
        let thief = thief(&world, 2);
        world.push(2);
        let mut own: Vec<u64> = world.pop().into_iter().collect();
        own.extend(world.pop());
        own.extend(world.rest());
        assert_taken([own, thief.join().unwrap()], 1..=2);
    });
}

#[test]
fn three_want_the_last_entry() {
    check(3, |world| {
        world.push(1);
        let thieves = [thief(&world, 1), thief(&world, 1)];
        let own = world.rest();
        let [first, second] = thieves.map(|thief| thief.join().unwrap());
        assert_taken([own, world.rest(), first, second], 1..=1);
    });
}

/// The place of the entry that the thief reads is used again.
#[test]
fn a_ring_goes_round() {
    check(3, |world| {
        world.push(1);
        world.push(2);
        let thief = thief(&world, 2);
        world.written[3].store(3, Relaxed);
        let own = match world.queue.push(&world.memory, 3) {
            Ok(()) => world.rest(),
            Err(Full) => [vec![3], world.rest()].concat(),
        };
        assert_taken([own, thief.join().unwrap()], 1..=3);
    });
}

#[test]
fn a_thief_sees_the_entries_of_a_new_ring() {
    check(3, |world| {
        world.push(1);
        world.push(2);
        let thief = thief(&world, 2);
        world.queue.grow(&world.memory, RINGS[1].0, RINGS[1].1).expect("the ring is good");
        world.push(3);
        let own = world.rest();
        assert_taken([own, thief.join().unwrap()], 1..=3);
    });
}

/// The owner dies in `pop`, just before it would look at `top`, while a thief takes entries.
#[test]
fn an_adopted_queue_loses_only_what_was_popped() {
    for entries in 1..=2 {
        check(3, move |world| {
            (1..=entries).for_each(|entry| world.push(entry));
            let thief = thief(&world, 2);
            let owner = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.queue.set_bottom(entries - 1))
            };
            owner.join().unwrap();
            world.queue.adopt();
            world.push(3);
            let mut taken = [world.rest(), thief.join().unwrap()].concat();
            taken.retain(|entry| *entry != entries);
            let others = (1..entries).chain([3]).collect::<Vec<_>>();
            taken.sort_unstable();
            assert_eq!(taken, others);
        });
    }
}

/// A thief sees what a dead owner wrote, through whatever its successor does.
#[test]
fn an_adopted_queue_publishes_what_the_last_owner_wrote() {
    check(3, |world| {
        let thief = thief(&world, 2);
        let owner = {
            let world = Arc::clone(&world);
            thread::spawn(move || [1, 2].map(|entry| world.push(entry)))
        };
        owner.join().unwrap();
        world.queue.adopt();
        let own = world.rest();
        assert_taken([own, thief.join().unwrap()], 1..=2);
    });
}
