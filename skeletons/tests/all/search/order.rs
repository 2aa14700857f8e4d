//! The order in which a branch and bound takes the subtrees that are tasks or records. In another
//! order than that of a depth-first search these trees take thousands of times as many visits.

use crate::common::job;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ultramarine::prelude::*;
use ultramarine::skeletons::search::{Maximise, Search};
use ultramarine_testkit::racks;

/// Items to choose from, heavy ones worth more, and all of nearly the same value by weight. Those
/// of greater value by weight come first.
#[derive(Clone, Serialize, Deserialize)]
struct Knapsack {
    test: usize,
    /// Weights and values.
    items: Vec<(u64, u64)>,
    /// The total weight and value of the items before each; then those of all.
    before: Vec<(u64, u64)>,
}

/// A choice: its value, the capacity that is left, and the first item that may still be added.
type Choice = (u64, u64, usize);

/// Seeds of searches that visit at most 200,000 nodes in the best order.
const SEEDS: [u64; 7] = [1, 2, 3, 4, 6, 9, 10];

const ITEMS: usize = 100;

/// A search that visits more gives up.
const VISITS_MAX: u64 = 1_000_000;

/// The number of nodes that were visited in each test. The PEs are threads of this process.
static VISITS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

impl Knapsack {
    fn drawn(test: usize, seed: u64) -> (Self, Choice) {
        let mut state = seed;
        let mut weight = || {
            // The constants of Knuth's MMIX.
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            10_000 + (state >> 33) % 90_001
        };
        let mut items: Vec<_> = (0..ITEMS).map(|_| weight()).map(|w| (w, w + 10_000)).collect();
        items.sort_unstable();
        let mut before = vec![(0, 0)];
        before.extend(items.iter().scan((0, 0), |sum: &mut (u64, u64), item| {
            *sum = (sum.0 + item.0, sum.1 + item.1);
            Some(*sum)
        }));
        let capacity = before[ITEMS].0 / 2;
        (Knapsack { test, items, before }, (0, capacity, 0))
    }
}

impl Tree for Knapsack {
    type Node = Choice;

    fn children(&self, (value, room, next): Choice) -> impl Iterator<Item = Choice> + Send {
        let later =
            (next..).zip(&self.items[next..]).filter(move |(_, (weight, _))| *weight <= room);
        later.map(move |(at, (weight, worth))| (value + worth, room - weight, at + 1))
    }
}

impl Bounded for Knapsack {
    fn value(&self, (value, ..): &Choice) -> Option<u64> {
        VISITS[self.test].fetch_add(1, Relaxed);
        Some(*value)
    }

    /// The value if the choice is filled up with the next items, the last of them cut.
    fn bound(&self, (value, room, next): &Choice) -> u64 {
        if VISITS[self.test].load(Relaxed) > VISITS_MAX {
            return 0;
        }
        let (weight, worth) = self.before[*next];
        let fits = |sum: &(u64, u64)| sum.0 - weight <= *room;
        let end = next + self.before[next + 1..].partition_point(fits);
        let rest = room - (self.before[end].0 - weight);
        let part = self.items.get(end).map_or(0, |item| rest * item.1 / item.0);
        value + (self.before[end].1 - worth) + part
    }

    fn has_falling_bounds(&self) -> bool {
        true
    }
}

fn search(test: usize, splitting: Splitting, seed: u64) -> Search<Knapsack, Maximise> {
    let (knapsack, empty) = Knapsack::drawn(test, seed);
    VISITS[test].store(0, Relaxed);
    maximise(splitting, knapsack, empty)
}

#[test]
fn a_search_with_a_journal_visits_about_as_many_nodes() {
    job(racks(&[1, 1], 1), async |cx| {
        for seed in SEEDS {
            let search = || search(0, Splitting::StealDriven, seed);
            let best = search().run(&cx).await?.expect("the empty choice is one").0;
            // Which thread spawns the subtrees is left to chance.
            for _ in 0..3 {
                let folder = tempfile::tempdir()?;
                let journalled = search().journal(folder.path().join("best.journal"));
                let found = journalled.run(&cx).await?.expect("the empty choice is one").0;
                let visits = VISITS[0].load(Relaxed);
                assert!(visits <= VISITS_MAX, "seed {seed}: it begins with the wrong subtrees");
                assert_eq!(found, best, "seed {seed}");
            }
        }
        Ok(())
    });
}

/// On one worker: there all is in order.
#[test]
fn however_a_search_is_split_it_begins_with_the_first_nodes() {
    job(racks(&[1], 1), async |cx| {
        let splittings = [1, 2].map(Splitting::Depth).into_iter();
        for splitting in splittings.chain([100, 10_000].map(Splitting::Budget)) {
            for seed in SEEDS {
                let best = search(1, Splitting::StealDriven, seed).run(&cx).await?;
                let without = VISITS[1].load(Relaxed);
                let found = search(1, splitting, seed).run(&cx).await?;
                let visits = VISITS[1].load(Relaxed);
                let value = |best: Option<(u64, Choice)>| best.expect("there is one").0;
                assert!(visits < 2 * without + 1000, "{splitting:?}, {seed}: {visits}, {without}");
                assert_eq!(value(found), value(best), "{splitting:?}, {seed}");
            }
        }
        for seed in SEEDS {
            search(1, Splitting::StealDriven, seed).run(&cx).await?;
            let without = VISITS[1].load(Relaxed);
            search(1, Splitting::Ordered, seed).run(&cx).await?;
            assert_eq!(VISITS[1].load(Relaxed), without, "{seed}: one worker splits nothing");
        }
        Ok(())
    });
}

#[test]
fn all_workers_of_an_ordered_search_keep_to_the_order() {
    for seed in SEEDS {
        let visits = [1, 3].map(|pes| {
            job(racks(&vec![1; pes], 1), async move |cx| {
                search(2, Splitting::Ordered, seed).run(&cx).await?.expect("there is one");
                Ok(())
            });
            VISITS[2].load(Relaxed)
        });
        // A worker searches ahead by milliseconds, and these searches are short.
        assert!(visits[1] < 2 * visits[0] + 100_000, "seed {seed}: {visits:?}");
    }
}
