//! A function applied to many items: one task for each item, spread as the skeletons do
//! (`skeletons/src/map/spread.rs`).

use super::{Activity, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use std::sync::Arc;
use ultramarine_runtime::array::Array;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_skeletons::shares;
use ultramarine_topology::{Distance, Pe, Topology};

/// How the tasks are spread over the PEs (`SymGridPar2` §4.4, figure 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// `par_map`: the tasks wait at the root, and any PE may steal them.
    Stolen,
    /// `par_map_placed`: they are placed on all PEs in turn.
    InTurn,
    /// `par_map_2level`: coordinators get shares at once. Only PEs near a coordinator steal from
    /// it.
    TwoLevel,
    /// `par_map_2level_relaxed`: the same, but all PEs may steal.
    TwoLevelRelaxed,
}

/// What spreading the tasks costs the task that does it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct SpreadCosts {
    /// For each item: to deal it out to a share.
    pub deal_ns: u64,
    /// For each item: to encode it and decode it as a part of a share.
    pub pack_ns: u64,
    /// For each task: to spawn it.
    pub spawn_ns: u64,
    /// For each task: to take its result.
    pub take_ns: u64,
}

impl Default for SpreadCosts {
    /// Spawning was measured (`bench spawn`: 95 ns for a task whose argument is a few bytes). The
    /// others are estimates, rounded up: dealing gives an item its share (`skeletons/src/share.rs`
    /// takes 4 ns for that), packing is a copy of 8 bytes with a checked length, and taking a
    /// result is a move.
    fn default() -> Self {
        SpreadCosts { deal_ns: 10, pack_ns: 20, spawn_ns: 95, take_ns: 10 }
    }
}

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
    items: u64,
    /// The argument of a task and its result, each, in bytes.
    item_bytes: usize,
    costs: Arc<dyn ItemCosts>,
    spread: Spread,
    spread_costs: SpreadCosts,
    is_supervised: bool,
    /// What spreading costs the main task at least, all together, in nanoseconds.
    main_spread_ns: u64,
    /// The coordinators, with the items of each.
    shares: Arc<Vec<(Pe, Vec<u32>)>>,
    /// How far from its coordinator an item's task may go.
    stolen_within: Distance,
}

/// A task spawns this many tasks at a time, once it has taken as long as all of them cost. Others
/// may go on meanwhile.
const SPAWNED_AT_ONCE: u64 = 128;

const ITEM: u8 = 0;
const COORDINATOR: u8 = 1;

impl MapWorkload {
    /// A map over this many items in a job of this hierarchy, with basis PEs by chance.
    pub fn new(
        items: u64,
        costs: Arc<dyn ItemCosts>,
        spread: Spread,
        spread_costs: SpreadCosts,
        is_supervised: bool,
        (topology, random): (&Topology, &mut impl FnMut() -> u64),
    ) -> Self {
        let coordinators = match spread {
            Spread::Stolen | Spread::InTurn => Vec::new(),
            Spread::TwoLevel | Spread::TwoLevelRelaxed => {
                topology.equidistant_basis(Pe::ROOT, Distance::ONE, random)
            }
        };
        let weights: Vec<u64> = coordinators.iter().map(|(_, power)| *power).collect();
        let shares = if weights.is_empty() { Vec::new() } else { shares(items as usize, &weights) };
        let shares = shares.into_iter().map(|share| share.into_iter().map(|item| item as u32));
        let shares = coordinators.iter().zip(shares).map(|((pe, _), share)| (*pe, share.collect()));
        let stolen_within = match spread {
            Spread::TwoLevel => Distance::ONE.half(),
            _ => Distance::ONE,
        };
        MapWorkload {
            items,
            item_bytes: 8,
            costs,
            spread,
            spread_costs,
            is_supervised,
            main_spread_ns: 0,
            shares: Arc::new(shares.collect()),
            stolen_within,
        }
    }

    /// The same map, where spreading costs the main task this time at least, all together, in
    /// nanoseconds. What is more than usual comes before the first task: the first map of a job
    /// runs code that no cache has.
    #[must_use]
    pub fn with_main_spread_ns(mut self, ns: u64) -> Self {
        self.main_spread_ns = ns;
        self
    }

    fn item(&self, item: u64, place: SpawnPlace) -> (Bytes, SpawnMode) {
        let mut body = vec![ITEM];
        body.extend(item.to_le_bytes());
        (body.into(), SpawnMode { is_supervised: self.is_supervised, place })
    }

    fn coordinator(&self, number: usize) -> (Bytes, SpawnMode) {
        let (pe, share) = &self.shares[number];
        let mut few = vec![COORDINATOR];
        few.extend((number as u64).to_le_bytes());
        let many = Some(Array::from(vec![0_u8; share.len() * self.item_bytes]));
        let mode = SpawnMode { is_supervised: self.is_supervised, place: SpawnPlace::At(*pe) };
        (Bytes { few: few.into(), many }, mode)
    }
}

impl Workload for Arc<MapWorkload> {
    fn main(&self) -> Box<dyn Activity> {
        let SpreadCosts { deal_ns, pack_ns, spawn_ns, take_ns } = self.spread_costs;
        let all = Arc::clone(self);
        let is_dealt = !self.shares.is_empty();
        let (spawns, each_ns, ahead_ns, after_ns) = if is_dealt {
            let spawns = self.shares.len() as u64;
            // The share of each coordinator is packed, and leaves, before the next one's.
            let each_ns = spawn_ns + self.items * pack_ns / spawns;
            (spawns, each_ns, self.items * deal_ns, self.items * (take_ns + pack_ns))
        } else {
            (self.items, spawn_ns, 0, self.items * take_ns)
        };
        let ahead_ns = ahead_ns.max(self.main_spread_ns.saturating_sub(spawns * each_ns));
        let at_once = if is_dealt { 1 } else { SPAWNED_AT_ONCE };
        // The caller's own part comes last, so that it does not start before the others are sent.
        let last = self.shares.len().wrapping_sub(1);
        let child = move |number: u64, cx: &TaskContext<'_>| match all.spread {
            Spread::TwoLevel | Spread::TwoLevelRelaxed => all.coordinator(last - number as usize),
            Spread::InTurn => {
                let to = Pe::new((number % u64::from(cx.topology.pes())) as u32);
                all.item(number, SpawnPlace::At(to))
            }
            Spread::Stolen => all.item(number, SpawnPlace::Within(Distance::ONE)),
        };
        let overhead_ns = OverheadNs { ahead: ahead_ns, each: each_ns, after: after_ns };
        Box::new(Spawner { overhead_ns, count: spawns, at_once, ..Spawner::of(child) })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let (kind, number) = body.few.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match *kind {
            ITEM if number < self.items => {
                Some(Box::new(ItemTask { ns: Some(self.costs.item_ns(number)) }))
            }
            COORDINATOR => {
                let all = Arc::clone(self);
                let count = all.shares.get(number as usize)?.1.len() as u64;
                let SpreadCosts { pack_ns, spawn_ns, take_ns, .. } = self.spread_costs;
                let result = Some(count as usize * self.item_bytes);
                let within = SpawnPlace::Within(self.stolen_within);
                let (ahead_ns, after_ns) = (count * pack_ns, count * (take_ns + pack_ns));
                let item = move |at: u64, _: &TaskContext<'_>| {
                    all.item(u64::from(all.shares[number as usize].1[at as usize]), within)
                };
                let overhead_ns = OverheadNs { ahead: ahead_ns, each: spawn_ns, after: after_ns };
                Some(Box::new(Spawner { overhead_ns, count, result, ..Spawner::of(item) }))
            }
            _ => None,
        }
    }

    fn expected(&self) -> u64 {
        self.items
    }
}

/// It computes, and ends.
struct ItemTask {
    ns: Option<u64>,
}

impl Activity for ItemTask {
    fn step(&mut self, _: &mut TaskContext<'_>) -> Step {
        self.ns.take().map_or(Step::End(1, None), Step::Compute)
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
        let value = cx.values.iter().flatten().sum();
        Step::End(value, self.result.map(|bytes| Array::from(vec![0_u8; bytes])))
    }
}
