//! A function applied to many items: one task for each item, spread as the skeletons do
//! (`skeletons/src/map/spread.rs`).

use super::{Activity, Batch, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use crate::dice::Dice;
use std::sync::Arc;
use ultramarine_runtime::array::Array;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_skeletons::shares;
use ultramarine_topology::{Distance, Pe, Topology};

/// How the tasks are spread over the PEs (`SymGridPar2` §4.4, figure 5): the skeletons that apply a
/// function to many items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Skeleton {
    /// All PEs steal from the root
    #[value(name = "par_map")]
    Stolen,
    /// The tasks are placed on all PEs in turn
    #[value(name = "par_map_placed")]
    Placed,
    /// Shares are placed on coordinators; only PEs near one steal from it
    #[value(name = "par_map_2level")]
    TwoLevel,
    /// The same, but all PEs may steal
    #[value(name = "par_map_2level_relaxed")]
    Relaxed,
}

impl Skeleton {
    /// Those at two levels.
    pub const TWO_LEVEL: [Skeleton; 2] = [Skeleton::TwoLevel, Skeleton::Relaxed];

    /// What it is called in the library.
    pub fn name(self) -> &'static str {
        match self {
            Skeleton::Stolen => "par_map",
            Skeleton::Placed => "par_map_placed",
            Skeleton::TwoLevel => "par_map_2level",
            Skeleton::Relaxed => "par_map_2level_relaxed",
        }
    }
}

// What spreading the tasks costs the task that does it, in nanoseconds. Spawning was measured
// (`bench spawn`: 95 ns for a task whose argument is a few bytes). The others are estimates,
// rounded up.

/// For each item: to deal it out to a share (`skeletons/src/share.rs` takes 4 ns for that).
const DEAL_NS: u64 = 10;
/// For each item: to encode it and decode it as a part of a share, which is a copy of 8 bytes with
/// a checked length.
const PACK_NS: u64 = 20;
/// For each task: to spawn it.
const SPAWN_NS: u64 = 95;
/// For each task: to take its result, which is a move.
const TAKE_NS: u64 = 10;

/// The argument of a task and its result, each, in bytes.
const ITEM_BYTES: usize = 8;

/// What each item costs, in nanoseconds.
pub trait ItemCosts: Send + Sync {
    /// The cost of the item with this number.
    fn item_ns(&self, item: u64) -> u64;
}

impl<F: Fn(u64) -> u64 + Send + Sync> ItemCosts for F {
    fn item_ns(&self, item: u64) -> u64 {
        self(item)
    }
}

/// See the [module](self). The value of each task is 1, and that of the job the number of items.
pub struct MapWorkload {
    /// What spreading costs the main task at least, all together, in nanoseconds. What is more than
    /// usual comes before the first task: the first map of a job runs code that no cache has.
    pub main_spread_ns: u64,
    plan: Arc<Plan>,
}

struct Plan {
    items: u64,
    costs: Arc<dyn ItemCosts>,
    skeleton: Skeleton,
    is_supervised: bool,
    /// The coordinators, with the items of each.
    shares: Vec<(Pe, Vec<u32>)>,
    /// How far from its coordinator an item's task may go.
    stolen_within: Distance,
}

/// A task spawns this many tasks at a time, once it has taken as long as all of them cost. Others
/// may go on meanwhile.
const SPAWNED_AT_ONCE: u64 = 128;

const ITEM: u8 = 0;
const COORDINATOR: u8 = 1;

impl MapWorkload {
    /// A map over this many items in a job of this hierarchy. The basis PEs come from the seed.
    pub fn new(
        items: u64,
        costs: Arc<dyn ItemCosts>,
        skeleton: Skeleton,
        is_supervised: bool,
        topology: &Topology,
        seed: u64,
    ) -> Self {
        let mut dice = Dice::new(seed);
        let coordinators = if Skeleton::TWO_LEVEL.contains(&skeleton) {
            topology.equidistant_basis(Pe::ROOT, Distance::ONE, &mut || dice.next())
        } else {
            Vec::new()
        };
        let weights: Vec<u64> = coordinators.iter().map(|(_, power)| *power).collect();
        let shares = if weights.is_empty() { Vec::new() } else { shares(items as usize, &weights) };
        let shares = shares.into_iter().map(|share| share.into_iter().map(|item| item as u32));
        let shares = coordinators.iter().zip(shares).map(|((pe, _), share)| (*pe, share.collect()));
        let stolen_within = match skeleton {
            Skeleton::TwoLevel => Distance::ONE.half(),
            _ => Distance::ONE,
        };
        let shares = shares.collect();
        let plan = Plan { items, costs, skeleton, is_supervised, shares, stolen_within };
        MapWorkload { main_spread_ns: 0, plan: Arc::new(plan) }
    }
}

impl Plan {
    fn item(&self, item: u64, place: SpawnPlace) -> (Bytes, SpawnMode) {
        let mut body = vec![ITEM];
        body.extend(item.to_le_bytes());
        (body.into(), SpawnMode { is_supervised: self.is_supervised, place })
    }

    fn coordinator(&self, number: usize) -> (Bytes, SpawnMode) {
        let (pe, share) = &self.shares[number];
        let mut few = vec![COORDINATOR];
        few.extend((number as u64).to_le_bytes());
        let many = Some(Array::from(vec![0_u8; share.len() * ITEM_BYTES]));
        let mode = SpawnMode { is_supervised: self.is_supervised, place: SpawnPlace::At(*pe) };
        (Bytes { few: few.into(), many }, mode)
    }
}

impl Workload for MapWorkload {
    fn main(&self) -> Box<dyn Activity> {
        let plan = Arc::clone(&self.plan);
        let (items, coordinators) = (plan.items, plan.shares.len() as u64);
        let is_dealt = coordinators > 0;
        let (count, each, ahead, after) = if is_dealt {
            // The share of each coordinator is packed, and leaves, before the next one's.
            let each = SPAWN_NS + items * PACK_NS / coordinators;
            (coordinators, each, items * DEAL_NS, items * (TAKE_NS + PACK_NS))
        } else {
            (items, SPAWN_NS, 0, items * TAKE_NS)
        };
        let ahead = ahead.max(self.main_spread_ns.saturating_sub(count * each));
        let at_once = if is_dealt { 1 } else { SPAWNED_AT_ONCE };
        let child = move |number: u64, cx: &TaskContext<'_>| match plan.skeleton {
            // The caller's own part comes last, so that it does not start before the others are
            // sent.
            Skeleton::TwoLevel | Skeleton::Relaxed => {
                plan.coordinator((coordinators - 1 - number) as usize)
            }
            Skeleton::Placed => {
                let to = Pe::new((number % u64::from(cx.topology.pes())) as u32);
                plan.item(number, SpawnPlace::At(to))
            }
            Skeleton::Stolen => plan.item(number, SpawnPlace::Within(Distance::ONE)),
        };
        let overhead_ns = OverheadNs { ahead, each, after };
        Box::new(Spawner { overhead_ns, count, at_once, ..Spawner::of(child) })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let (kind, number) = body.few.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match *kind {
            ITEM if number < self.plan.items => {
                let compute_ns = Some(self.plan.costs.item_ns(number));
                Some(Box::new(Batch { compute_ns, tasks: None, end: |_: &TaskContext<'_>| 1 }))
            }
            COORDINATOR => {
                let plan = Arc::clone(&self.plan);
                let count = plan.shares.get(number as usize)?.1.len() as u64;
                let result = Some(count as usize * ITEM_BYTES);
                let within = SpawnPlace::Within(plan.stolen_within);
                let item = move |at: u64, _: &TaskContext<'_>| {
                    plan.item(u64::from(plan.shares[number as usize].1[at as usize]), within)
                };
                let (ahead, after) = (count * PACK_NS, count * (TAKE_NS + PACK_NS));
                let overhead_ns = OverheadNs { ahead, each: SPAWN_NS, after };
                Some(Box::new(Spawner { overhead_ns, count, result, ..Spawner::of(item) }))
            }
            _ => None,
        }
    }

    fn expected(&self) -> u64 {
        self.plan.items
    }
}

/// What a spawner spends beside its tasks, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct OverheadNs {
    ahead: u64,
    /// For each task that it spawns.
    each: u64,
    after: u64,
}

/// It spawns tasks, awaits them, and sums up their values.
struct Spawner<F> {
    overhead_ns: OverheadNs,
    next: u64,
    /// The tasks below this one have been paid for, and are spawned in the next step.
    paid: u64,
    count: u64,
    at_once: u64,
    /// The length of its result, if it has an array.
    result: Option<usize>,
    child: F,
    is_awaited: bool,
}

impl<F> Spawner<F> {
    fn of(child: F) -> Self {
        Spawner {
            overhead_ns: OverheadNs::default(),
            next: 0,
            paid: 0,
            count: 0,
            at_once: SPAWNED_AT_ONCE,
            result: None,
            child,
            is_awaited: false,
        }
    }
}

impl<F> Activity for Spawner<F>
where
    F: FnMut(u64, &TaskContext<'_>) -> (Bytes, SpawnMode) + Send,
{
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        let ahead = std::mem::take(&mut self.overhead_ns.ahead);
        if ahead > 0 {
            return Step::Overhead(ahead);
        }
        for number in self.next..self.paid {
            let (body, mode) = (self.child)(number, cx);
            cx.spawn(body, mode);
        }
        self.next = self.paid;
        if self.paid < self.count {
            self.paid = self.count.min(self.next + self.at_once);
            return Step::Overhead((self.paid - self.next) * self.overhead_ns.each);
        }
        if !std::mem::replace(&mut self.is_awaited, true) {
            return Step::Await;
        }
        let after = std::mem::take(&mut self.overhead_ns.after);
        if after > 0 {
            return Step::Overhead(after);
        }
        Step::End(cx.sum(), self.result.map(|bytes| Array::from(vec![0_u8; bytes])))
    }
}
