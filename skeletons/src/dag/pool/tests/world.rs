//! Pools of several PEs, and what is on its way between them: anything may come next that can.

use super::super::*;
use proptest::prelude::*;
use std::iter;

/// A graph: the inputs of each node of a block, which have smaller numbers, and the owners. The
/// first node of a block uses the last of the block before, too.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) inputs: Vec<Vec<u32>>,
    pub(super) owners: Vec<u32>,
    pub(super) pes: u32,
    /// Begun unasked.
    pub(super) wanted: Vec<NodeId>,
    pub(super) may_move: bool,
    pub(super) drops_used: bool,
}

/// What a node has that has failed.
pub(super) const FAILED: u64 = u64::MAX;

/// A block of it.
pub(super) struct DrawnBlock(Arc<Drawn>, u32);

impl Shape for Drawn {
    type Block = DrawnBlock;
    type Result = u64;

    fn wanted(&self) -> &[NodeId] {
        &self.wanted
    }

    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe {
        let first = self.owners[node.index as usize] + node.block;
        let order = (0..self.pes).map(|step| Pe::new((first + step) % self.pes));
        order.into_iter().find(|pe| !dead.contains(pe)).expect("some PE lives")
    }

    /// As in a graph. Of a stream they are not known.
    fn readers(&self, me: Pe, dead: &BTreeSet<Pe>, _: &DrawnBlock) -> Readers {
        if self.wanted.is_empty() {
            return Readers::default();
        }
        let owner = |index: usize| self.owner(node(index), dead);
        let mut readers = Readers::of(self.inputs.len());
        let needed = self.needed();
        for (index, inputs) in self.inputs.iter().enumerate().filter(|(index, _)| needed[*index]) {
            for input in inputs {
                if owner(index) == me {
                    readers.add_here(*input);
                } else if owner(*input as usize) == me {
                    readers.add_other(*input, owner(index));
                }
            }
        }
        self.wanted.iter().for_each(|node| readers.hold(node.index));
        readers
    }

    fn drops_used(&self) -> bool {
        self.drops_used
    }

    fn may_move(&self, node: NodeId) -> bool {
        self.may_move && !node.index.is_multiple_of(8)
    }

    fn neighbours(&self, me: Pe, dead: &BTreeSet<Pe>) -> Vec<Pe> {
        (0..self.pes).map(Pe::new).filter(|pe| *pe != me && !dead.contains(pe)).collect()
    }

    fn is_failed(&self, result: &u64) -> bool {
        *result == FAILED
    }

    fn no_such_node(&self, _: NodeId) -> u64 {
        unreachable!("blocks have the nodes that are used")
    }
}

impl DrawnBlock {
    pub(super) fn new(graph: &Arc<Drawn>, number: u32) -> Self {
        DrawnBlock(graph.clone(), number)
    }
}

impl BlockShape for DrawnBlock {
    fn nodes(&self) -> u32 {
        self.0.inputs.len() as u32
    }

    fn inputs(&self, index: u32) -> impl Iterator<Item = NodeId> {
        let DrawnBlock(graph, block) = self;
        let own = graph.inputs[index as usize].iter();
        let own = own.map(|index| NodeId { block: *block, index: *index });
        let before = (index == 0).then(|| block.checked_sub(1)).flatten();
        own.chain(before.map(|block| graph.last(block)))
    }
}

/// Half of the nodes are worth a push.
pub(super) fn weighed(result: u64) -> Weighed<u64> {
    Weighed { result, bytes: 1.0, cost_ns: (result % 2 * 1_000_000) as f32 }
}

impl Drawn {
    /// The last node of a block.
    pub(super) fn last(&self, block: u32) -> NodeId {
        NodeId { block, index: self.inputs.len() as u32 - 1 }
    }

    /// What a node's result is: it depends on those of all its inputs, and on their order.
    pub(super) fn compute(node: NodeId, inputs: impl Iterator<Item = u64>) -> u64 {
        inputs.fold(u64::from(node.index) + 1, |sum, input| {
            sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(input)
        })
    }

    /// The results of the last nodes of this number of blocks.
    pub(super) fn expected(&self, blocks: u32) -> Vec<u64> {
        let graph = Arc::new(self.clone());
        let mut results = BTreeMap::new();
        for block in (0..blocks).map(|number| DrawnBlock(graph.clone(), number)) {
            for index in 0..block.nodes() {
                let node = NodeId { block: block.1, index };
                let inputs = block.inputs(index).map(|input| results[&input]);
                let result = Self::compute(node, inputs);
                results.insert(node, result);
            }
        }
        (0..blocks).map(|block| results[&self.last(block)]).collect()
    }

    /// Which nodes of the first block its last one needs.
    pub(super) fn needed(&self) -> Vec<bool> {
        let mut is_needed = vec![false; self.inputs.len()];
        *is_needed.last_mut().expect("a block has nodes") = true;
        for (index, inputs) in self.inputs.iter().enumerate().rev() {
            if is_needed[index] {
                inputs.iter().for_each(|input| is_needed[*input as usize] = true);
            }
        }
        is_needed
    }
}

/// The pool of PE 0, which has one token and has not started.
pub(super) fn idle(graph: Drawn, limit: u64) -> Pool<Drawn> {
    let graph = Arc::new(graph);
    let mut pool = Pool::new(Pe::ROOT, graph.clone(), 1, limit);
    pool.built(0, Arc::new(DrawnBlock(graph, 0)));
    pool
}

/// A graph of one block of which nothing is begun unasked, and the pool of PE 0.
pub(super) fn pool_of(inputs: Vec<Vec<u32>>, owners: Vec<u32>, limit: u64) -> Pool<Drawn> {
    let pes = owners.iter().max().map_or(1, |last| last + 1);
    let (wanted, may_move, drops_used) = (Vec::new(), true, false);
    idle(Drawn { inputs, owners, pes, wanted, may_move, drops_used }, limit)
}

/// Graphs of one block, whose last node is wanted.
pub(super) fn drawn(nodes: usize, pes: u32) -> impl Strategy<Value = Drawn> {
    let inputs = (1..nodes).map(|index| prop::collection::vec(0..index as u32, 0..4));
    (inputs.collect::<Vec<_>>(), prop::collection::vec(0..pes, nodes)).prop_map(
        move |(others, owners)| {
            let inputs = iter::once(Vec::new()).chain(others).collect();
            let wanted = vec![node(nodes - 1)];
            Drawn { inputs, owners, pes, wanted, may_move: true, drops_used: false }
        },
    )
}

/// A node of the first block.
pub(super) fn node(index: usize) -> NodeId {
    NodeId { block: 0, index: index as u32 }
}

/// Something that is still to happen on a PE.
#[derive(Clone, Debug)]
enum Event {
    Arrive { from: Pe, message: PoolMessage<u64>, opening: u32 },
    Computed(NodeId, u32),
    Died(Pe),
    Advance(u32),
}

/// Messages of one sender arrive in order.
pub(super) struct World {
    pub(super) graph: Arc<Drawn>,
    pub(super) pools: Vec<Option<Pool<Drawn>>>,
    /// For each receiver, and each sender or reason, what is to happen in order.
    coming: BTreeMap<(Pe, u32), VecDeque<Event>>,
    pub(super) delivered: BTreeMap<NodeId, u64>,
    /// How often each node was begun, and how often its result was sent to each PE.
    pub(super) begun: BTreeMap<NodeId, u32>,
    pub(super) sent: BTreeMap<(NodeId, Pe), u32>,
    pub(super) pushed: u64,
    /// What was said of the memory.
    pub(super) told: Vec<Shortage>,
    /// The nodes that fail.
    pub(super) failing: BTreeSet<NodeId>,
    /// The last opening of the run that each PE knows.
    openings: Vec<u32>,
    /// Whether nothing is computed.
    pub(super) is_frozen: bool,
}

/// Not a sender: computations, news of deaths and of a stream come in any order.
const COMPUTED: u32 = 1000;
const DEATHS: u32 = 10_000;
const ADVANCES: u32 = 20_000;

/// Many more than any of the graphs takes.
const STEPS_MAX: usize = 20_000;

impl World {
    pub(super) fn new(graph: Drawn, tokens: usize) -> Self {
        Self::with_memory(graph, tokens, u64::MAX)
    }

    pub(super) fn with_memory(graph: Drawn, tokens: usize, limit: u64) -> Self {
        let graph = Arc::new(graph);
        let pool = |pe| Some(Pool::new(Pe::new(pe), graph.clone(), tokens, limit));
        let mut world = World {
            pools: (0..graph.pes).map(pool).collect(),
            begun: BTreeMap::new(),
            graph: graph.clone(),
            coming: BTreeMap::new(),
            delivered: BTreeMap::new(),
            sent: BTreeMap::new(),
            pushed: 0,
            told: Vec::new(),
            failing: BTreeSet::new(),
            openings: vec![1; graph.pes as usize],
            is_frozen: false,
        };
        for pe in (0..graph.pes).map(Pe::new) {
            let block = DrawnBlock(graph.clone(), 0);
            world.act(pe, |pool| {
                pool.start();
                pool.built(0, Arc::new(block));
            });
        }
        world
    }

    pub(super) fn act(&mut self, pe: Pe, act: impl FnOnce(&mut Pool<Drawn>)) {
        let pool = self.pools[pe.index()].as_mut().expect("it lives");
        act(pool);
        let effects = pool.take_effects();
        self.perform(pe, effects);
    }

    /// A PE hears that the run was opened again.
    pub(super) fn renew(&mut self, pe: Pe, opening: u32) {
        if std::mem::replace(&mut self.openings[pe.index()], opening) < opening {
            self.act(pe, Pool::renew);
        }
    }

    pub(super) fn want(&mut self, pe: Pe, node: NodeId) {
        self.act(pe, |pool| pool.want(node));
    }

    /// The program, which is on the root, has what the blocks before this one returned.
    pub(super) fn advance(&mut self, first: u32) {
        for pe in (0..self.graph.pes).map(Pe::new) {
            self.come(pe, ADVANCES, Event::Advance(first));
        }
    }

    /// Lets things happen in an order that follows from the choices, until nothing is left, and
    /// kills each of these PEs after a number of steps, if there is such a PE.
    pub(super) fn run(&mut self, choices: &[usize], deaths: &[(u32, usize)]) {
        self.run_with(choices, deaths, |_| ());
    }

    /// The same; this is called after each step.
    pub(super) fn run_with(
        &mut self,
        choices: &[usize],
        deaths: &[(u32, usize)],
        mut then: impl FnMut(&mut Self),
    ) {
        let mut choices = choices.iter().cycle();
        let last = deaths.iter().map(|(_, when)| *when).max().unwrap_or(0);
        for at in 0.. {
            assert!(at < STEPS_MAX, "it does not end");
            for (pe, _) in deaths.iter().filter(|(_, when)| *when == at) {
                if self.pools.get(*pe as usize).is_some_and(Option::is_some) {
                    self.die(Pe::new(*pe));
                }
            }
            if !self.step(*choices.next().expect("there are choices")) && at >= last {
                return;
            }
            then(self);
        }
    }

    fn perform(&mut self, pe: Pe, effects: VecDeque<PoolEffect<u64>>) {
        let opening = self.openings[pe.index()];
        for effect in effects {
            match effect {
                PoolEffect::Send(to, message) => {
                    self.pushed += u64::from(matches!(message, PoolMessage::Push(..)));
                    if let PoolMessage::Result(node, _) = &message {
                        *self.sent.entry((*node, to)).or_default() += 1;
                    }
                    self.come(to, pe.number(), Event::Arrive { from: pe, message, opening });
                }
                PoolEffect::Build(number) => {
                    let block = DrawnBlock(self.graph.clone(), number);
                    self.act(pe, |pool| pool.built(number, Arc::new(block)));
                }
                PoolEffect::Compute(node) => {
                    *self.begun.entry(node).or_default() += 1;
                    self.come(pe, COMPUTED + node.index, Event::Computed(node, opening));
                }
                PoolEffect::Short(shortage) => self.told.push(shortage),
                PoolEffect::Deliver(node, result) => {
                    assert_eq!(self.delivered.insert(node, result), None, "{node} came twice");
                }
            }
        }
    }

    fn come(&mut self, to: Pe, by: u32, event: Event) {
        self.coming.entry((to, by)).or_default().push_back(event);
    }

    fn die(&mut self, pe: Pe) {
        self.pools[pe.index()] = None;
        for other in (0..self.graph.pes).map(Pe::new).filter(|other| *other != pe) {
            self.come(other, DEATHS + pe.number(), Event::Died(pe));
        }
    }

    /// Lets one of the things happen that may. Returns whether there was one.
    pub(super) fn step(&mut self, choice: usize) -> bool {
        self.coming
            .retain(|(to, _), events| !events.is_empty() && self.pools[to.index()].is_some());
        let may = |(_, by): &&(Pe, u32)| !self.is_frozen || !(COMPUTED..DEATHS).contains(by);
        let keys: Vec<(Pe, u32)> = self.coming.keys().filter(may).copied().collect();
        let Some(key) = keys.get(choice % keys.len().max(1)).copied() else {
            return false;
        };
        let Some(event) = self.coming.get_mut(&key).and_then(VecDeque::pop_front) else {
            return false;
        };
        let (graph, failing) = (self.graph.clone(), self.failing.clone());
        let known = self.openings[key.0.index()];
        if let Event::Arrive { opening, .. } = &event {
            self.renew(key.0, known.max(*opening));
        }
        self.act(key.0, |pool| match event {
            // As in a part: what has failed before is tried again.
            Event::Arrive { message: PoolMessage::Result(_, FAILED), opening, .. }
                if opening < known => {}
            Event::Arrive { from, message, .. } => pool.receive(from, message.map(weighed)),
            Event::Died(pe) => pool.died(pe),
            Event::Advance(first) => pool.advance(Pe::ROOT, first),
            Event::Computed(node, opening) => {
                let block = DrawnBlock(graph, node.block);
                let inputs = block.inputs(node.index).map(|input| pool.result(input));
                match inputs.collect::<Option<Vec<u64>>>() {
                    Some(inputs) => {
                        let fails = failing.contains(&node) || inputs.contains(&FAILED);
                        let result = Drawn::compute(node, inputs.into_iter());
                        match fails {
                            true if opening < known => pool.skipped(node),
                            true => pool.computed(node, weighed(FAILED)),
                            false => pool.computed(node, weighed(result)),
                        }
                    }
                    None => pool.skipped(node),
                }
            }
        });
        true
    }
}
