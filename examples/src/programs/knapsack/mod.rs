//! The knapsack problem: choose items that weigh no more than the knapsack can carry and have the
//! greatest total value.
//!
//! An example of branch and bound. A node is a choice of items. Its children have one more item
//! each, which comes later in the order of value by weight. If items could be cut, it would be best
//! to fill the knapsack in this order (Dantzig, Discrete-variable extremum problems, 1957): this is
//! the bound.

mod items;

use crate::expanded::{expanded, note_expanded};
use crate::{Job, SearchFlags, name_of, ranged, run_program};
use clap::ValueEnum;
use items::{ITEMS_MAX, Item, Items};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;

/// Find the most valuable items that a knapsack can carry.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// Read the items from this file: the capacity on the first line, then `WEIGHT VALUE` on one
    /// line for each item [default: items drawn at random].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["items", "seed"])]
    file: Option<PathBuf>,
    /// The number of items drawn at random. A hundred or more may take long.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = ranged::<u32>(1..=ITEMS_MAX as i64))]
    items: u32,
    /// The seed of the random items.
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMaximise)]
    skeleton: Skeleton,
    #[command(flatten)]
    search: SearchFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// Tasks that any PE may steal.
    ParMaximise,
    /// The threads of the root only, by rayon.
    Rayon,
    /// One thread of the root, node after node.
    Sequential,
}

/// The number of levels of the tree that are divided among rayon's threads.
const RAYON_LEVELS: u32 = 4;

/// The data that all nodes share.
#[derive(Serialize, Deserialize)]
struct Knapsack {
    /// Items of greater value by weight come first.
    items: Vec<Item>,
    /// For each item the total weight and value of the items before it; then those of all items.
    before: Vec<(u64, u64)>,
}

/// A choice of items.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Choice {
    /// Their numbers.
    items: Vec<u32>,
    value: u64,
    /// The capacity that is left.
    room: u64,
    /// The index of the first item that may still be added.
    next: usize,
}

impl Knapsack {
    fn new(mut items: Vec<Item>) -> Self {
        // By value / weight, without division.
        items.sort_by_key(|item| item.number);
        items.sort_by(|a, b| (b.value * a.weight).cmp(&(a.value * b.weight)));
        let mut before = vec![(0, 0)];
        before.extend(items.iter().scan((0, 0), |(weight, value), item| {
            (*weight, *value) = (*weight + item.weight, *value + item.value);
            Some((*weight, *value))
        }));
        Knapsack { items, before }
    }
}

impl Tree for Knapsack {
    type Node = Choice;

    fn children(&self, from: Choice) -> impl Iterator<Item = Choice> + Send {
        note_expanded();
        let room = from.room;
        let later = (from.next..).zip(&self.items[from.next..]);
        later.filter(move |(_, item)| item.weight <= room).map(move |(at, item)| {
            let mut items = Vec::with_capacity(from.items.len() + 1);
            items.extend_from_slice(&from.items);
            items.push(item.number);
            let (value, room) = (from.value + item.value, room - item.weight);
            Choice { items, value, room, next: at + 1 }
        })
    }
}

impl Bounded for Knapsack {
    fn value(&self, choice: &Choice) -> Option<u64> {
        Some(choice.value)
    }

    /// The value of the choice if it is filled up with the next items, the last of them cut.
    fn bound(&self, choice: &Choice) -> u64 {
        let (weight, value) = self.before[choice.next];
        let fits = |sum: &(u64, u64)| sum.0 - weight <= choice.room;
        let end = choice.next + self.before[choice.next + 1..].partition_point(fits);
        let room = choice.room - (self.before[end].0 - weight);
        let part = self.items.get(end).map_or(0, |item| room * item.value / item.weight);
        choice.value + (self.before[end].1 - value) + part
    }

    /// Each child may add only items that are worse by weight than those of the child before it.
    fn has_falling_bounds(&self) -> bool {
        true
    }
}

/// The best choice so far. Its value is stored again outside the lock, for quick comparisons.
struct BestChoice {
    value: AtomicU64,
    choice: Mutex<Choice>,
}

/// Searches below a choice. `levels` levels are divided among rayon's threads.
fn search(knapsack: &Knapsack, from: Choice, best: &BestChoice, levels: u32) {
    if best.value.fetch_max(from.value, Ordering::Relaxed) < from.value {
        let mut known = best.choice.lock().unwrap_or_else(PoisonError::into_inner);
        if known.value < from.value {
            known.clone_from(&from);
        }
    }
    let is_hopeful = |child: &Choice| knapsack.bound(child) > best.value.load(Ordering::Relaxed);
    let children = knapsack.children(from).take_while(is_hopeful);
    if levels == 0 {
        children.for_each(|child| search(knapsack, child, best, 0));
    } else {
        let children: Vec<_> = children.collect();
        let hopeful = children.into_par_iter().filter(is_hopeful);
        hopeful.for_each(|child| search(knapsack, child, best, levels - 1));
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("knapsack", run)
}

async fn run(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { file, items, seed, skeleton, search: flags } = arguments;
    let drawn = || Ok(Items::drawn(items, seed));
    let Items { capacity, items } = file.as_deref().map_or_else(drawn, Items::read)?;
    if !matches!(skeleton, Skeleton::ParMaximise) {
        flags.journal.refuse_for(&skeleton)?;
    }
    let splitting = flags.splitting.unwrap_or(Splitting::Ordered);
    let start = Instant::now();
    let (knapsack, empty) = (Knapsack::new(items), Choice { room: capacity, ..Choice::default() });
    let by_hand = |levels| {
        let best = BestChoice { value: AtomicU64::new(0), choice: Mutex::new(empty.clone()) };
        search(&knapsack, empty.clone(), &best, levels);
        best.choice.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    let mut best = match skeleton {
        Skeleton::Rayon => by_hand(RAYON_LEVELS),
        Skeleton::Sequential => by_hand(0),
        Skeleton::ParMaximise => {
            let best = flags.run(&job, maximise(splitting, knapsack, empty)).await?;
            best.map_or_else(Choice::default, |(_, choice)| choice)
        }
    };
    best.items.sort_unstable();
    let report = job.report(name_of(&skeleton), start, best.value).await?;
    let report = report.with("items", best.items).with("room", best.room);
    report.with("expanded", expanded(&job.cx).await?).print()
}
