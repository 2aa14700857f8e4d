//! A graph that has a node on each PE: their sum, over a binary tree. Its run is a group, and each
//! PE's part of that is the [pool](ultramarine_skeletons::dag::pool) of real graphs.

use super::groups::{SimulatedGroups, SimulatedPart, encoded};
use super::{Activity, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use ultramarine_group::{GroupId, Opening, Part, Plain, Site};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::wire;
use ultramarine_skeletons::dag::NodeId;
use ultramarine_skeletons::dag::pool::{
    BlockShape, Pool, PoolEffect, PoolMessage, Readers, Shape, Weighed,
};
use ultramarine_topology::Pe;

/// When the main task opens the run, in nanoseconds: when the detectors have met.
pub(crate) const BEGINS_NS: u64 = 100_000_000;

/// How long the main task waits then for all to hear that the run is closed, in nanoseconds.
const ENDS_NS: u64 = 300_000_000;

/// How long a node computes, in nanoseconds.
const NODE_NS: u64 = 10_000;

/// What is noted when the main task has the result.
pub(crate) const RESULT: &str = "result";

/// Node 0 of block n is that of PE n. It takes the results of those of 2n + 1 and 2n + 2.
pub(crate) struct Tree {
    pes: u32,
}

pub(crate) struct TreeBlock {
    number: u32,
    pes: u32,
}

const fn node(block: u32) -> NodeId {
    NodeId { block, index: 0 }
}

impl Shape for Tree {
    type Block = TreeBlock;
    type Result = u64;

    fn wanted(&self) -> &[NodeId] {
        const { &[node(0)] }
    }

    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe {
        let mut order = (node.block..self.pes).chain(0..node.block).map(Pe::new);
        order.find(|pe| !dead.contains(pe)).unwrap_or(Pe::ROOT)
    }

    fn readers(&self, _: Pe, _: &BTreeSet<Pe>, _: &TreeBlock) -> Readers {
        Readers::default()
    }

    fn drops_used(&self) -> bool {
        false
    }

    fn may_move(&self, _: NodeId) -> bool {
        false
    }

    fn neighbours(&self, _: Pe, _: &BTreeSet<Pe>) -> Vec<Pe> {
        Vec::new()
    }

    fn is_failed(&self, _: &u64) -> bool {
        false
    }

    fn no_such_node(&self, _: NodeId) -> u64 {
        0
    }
}

impl BlockShape for TreeBlock {
    fn nodes(&self) -> u32 {
        1
    }

    fn inputs(&self, _: u32) -> impl Iterator<Item = NodeId> {
        let below = 2 * self.number + 1;
        (below..self.pes.min(below + 2)).map(node)
    }
}

/// One PE's part of the run.
pub(crate) struct TreePart(Pool<Tree>);

impl Part for TreePart {
    /// The number of PEs.
    type Invitation = u32;
    type Message = PoolMessage<u64>;
    type Effects = VecDeque<PoolEffect<u64>>;
    type Error = ();

    fn begin(&mut self) {
        self.0.start();
    }

    fn receive(&mut self, from: Pe, message: PoolMessage<u64>, _: bool) {
        self.0.receive(from, message.map(Weighed::light));
    }

    fn died(&mut self, dead: Pe) {
        self.0.died(dead);
    }

    fn renew(&mut self, _: Opening) {
        self.0.renew();
    }

    fn take_effects(&mut self) -> VecDeque<PoolEffect<u64>> {
        drop(self.0.take_discarded());
        self.0.take_effects()
    }
}

impl Plain for TreePart {
    fn make(me: Pe, _: GroupId, pes: &u32) -> Result<Self, ()> {
        Ok(TreePart(Pool::new(me, Arc::new(Tree { pes: *pes }), 1, u64::MAX)))
    }
}

impl SimulatedPart for TreePart {
    type Shared = ();

    fn carry_out(
        groups: &SimulatedGroups<Self>,
        cx: &mut TaskContext<'_>,
        id: GroupId,
        effects: VecDeque<PoolEffect<u64>>,
    ) {
        for effect in effects {
            match effect {
                PoolEffect::Send(to, message) => SimulatedGroups::<Self>::send(cx, to, id, message),
                PoolEffect::Build(number) => groups.act(cx, id, |TreePart(pool)| {
                    let block = TreeBlock { number, pes: pool.shape().pes };
                    pool.built(number, Arc::new(block));
                }),
                PoolEffect::Compute(node) => {
                    let place = SpawnPlace::At(cx.pe);
                    cx.spawn(encoded(&(id, node)), SpawnMode { is_supervised: false, place });
                }
                PoolEffect::Deliver(_, result) => cx.wake_main(result),
                PoolEffect::Short(_) => {}
            }
        }
    }
}

/// See the [module](self). The value is the number of PEs.
pub(crate) struct TreeSum {
    pub(crate) groups: Arc<SimulatedGroups<TreePart>>,
    pes: u32,
}

impl TreeSum {
    pub(crate) fn new(pes: u32) -> Self {
        TreeSum { groups: Arc::new(SimulatedGroups::new(pes, ())), pes }
    }
}

impl Workload for TreeSum {
    fn main(&self) -> Box<dyn Activity> {
        let groups = self.groups.clone();
        Box::new(Main { groups, pes: self.pes, is_awake: false, open: None, is_closed: false })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let (id, node) = wire::decode(&body.few).ok()?;
        Some(Box::new(NodeTask { groups: self.groups.clone(), id, node, is_computed: false }))
    }

    fn receive(&self, cx: &mut TaskContext<'_>, body: &Bytes) -> bool {
        self.groups.receive(cx, body)
    }

    fn died(&self, cx: &mut TaskContext<'_>, dead: Pe) {
        self.groups.died(cx, dead);
    }

    fn expected(&self) -> u64 {
        self.pes.into()
    }
}

/// It opens the run, has its result, and closes it. On a PE that takes the place of a root it joins
/// what the others have of it.
struct Main {
    groups: Arc<SimulatedGroups<TreePart>>,
    pes: u32,
    is_awake: bool,
    open: Option<GroupId>,
    is_closed: bool,
}

impl Main {
    fn open(&self, cx: &mut TaskContext<'_>) -> Option<GroupId> {
        let attempt = 1 + u32::from(cx.pe != Pe::ROOT);
        self.groups.turn(cx, |groups| {
            let (id, cell) = groups.open(1, false, attempt);
            let part = TreePart::make(groups.me(), id, &self.pes).ok()?;
            groups.start(&cell, id, self.pes, part).ok()?;
            let want = |TreePart(pool): &mut TreePart| pool.want(node(0));
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| want(part)));
            groups.carry_out_some(&cell, wanted);
            Some(id)
        })
    }
}

impl Activity for Main {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !std::mem::replace(&mut self.is_awake, true) && cx.pe == Pe::ROOT {
            return Step::Sleep(BEGINS_NS);
        }
        match (self.open, cx.heard) {
            (None, _) => {
                self.open = self.open(cx);
                Step::Listen
            }
            (_, None) => Step::Listen,
            (Some(id), Some(result)) => {
                if std::mem::replace(&mut self.is_closed, true) {
                    return Step::End(result, None);
                }
                cx.note(RESULT);
                self.groups.turn(cx, |groups| groups.leave(id.name));
                Step::Sleep(ENDS_NS)
            }
        }
    }
}

/// It computes a node whose inputs are there.
struct NodeTask {
    groups: Arc<SimulatedGroups<TreePart>>,
    id: GroupId,
    node: NodeId,
    is_computed: bool,
}

impl Activity for NodeTask {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !std::mem::replace(&mut self.is_computed, true) {
            return Step::Compute(NODE_NS);
        }
        let node = self.node;
        self.groups.act(cx, self.id, |TreePart(pool)| {
            let inputs = pool.block(node.block).map(|block| block.inputs(node.index));
            let inputs = inputs.into_iter().flatten().map(|input| pool.result(input));
            match inputs.sum::<Option<u64>>() {
                Some(below) => pool.computed(node, Weighed::light(below + 1)),
                None => pool.skipped(node),
            }
        });
        Step::End(0, None)
    }
}
