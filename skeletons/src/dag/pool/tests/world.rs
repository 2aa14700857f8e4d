//! Graphs, their pools by hand, and runs on all PEs in which anything may come next that can.

use super::super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::iter;
use std::rc::Rc;
use ultramarine_testkit::world::{Actor, Outgoing, World as Job};

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
    /// Whether a PE knows what others read.
    pub(super) forwards: bool,
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

    fn forwards(&self, me: Pe, _: &DrawnBlock) -> Option<Forwards> {
        let owner = |index: u32| self.owner(node(index as usize), &BTreeSet::new());
        let needed = self.needed();
        let read = (0_u32..).zip(&self.inputs).filter(|(index, _)| needed[*index as usize]);
        let edges = read.flat_map(|(index, inputs)| {
            let edge = move |input: &u32| (*input, owner(*input), owner(index));
            inputs.iter().map(edge).collect::<Vec<_>>()
        });
        let edges = edges.map(|(input, owner, reader)| Edge { input, owner, reader });
        (self.forwards && !self.wanted.is_empty()).then(|| Forwards::of(me, edges))
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

/// The inputs of a node that is to be computed, unless they are gone.
pub(super) fn inputs_of(pool: &Pool<Drawn>, node: NodeId) -> Option<Vec<u64>> {
    let block = DrawnBlock::new(pool.shape(), node.block);
    block.inputs(node.index).map(|input| pool.result(input)).collect()
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
    idle(Drawn { inputs, owners, pes, wanted, may_move, drops_used, forwards: false }, limit)
}

/// Graphs of one block, whose last node is wanted.
pub(super) fn drawn(nodes: usize, pes: u32) -> impl Strategy<Value = Drawn> {
    let inputs = (1..nodes).map(|index| prop::collection::vec(0..index as u32, 0..4));
    (inputs.collect::<Vec<_>>(), prop::collection::vec(0..pes, nodes), any::<bool>()).prop_map(
        move |(others, owners, forwards)| {
            let inputs = iter::once(Vec::new()).chain(others).collect();
            let wanted = vec![node(nodes - 1)];
            let (may_move, drops_used) = (true, false);
            Drawn { inputs, owners, pes, wanted, may_move, drops_used, forwards }
        },
    )
}

/// A node of the first block.
pub(super) fn node(index: usize) -> NodeId {
    NodeId { block: 0, index: index as u32 }
}

/// What comes to a PE.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// From another pool, in this opening of the run.
    Pool(PoolMessage<u64>, u32),
    /// It has computed a node, which it began in this opening.
    Computed(NodeId, u32),
    /// The root's program has what the blocks before this one returned.
    Advance(u32),
}

/// What the tests want to know of all PEs, or say to them.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) delivered: BTreeMap<NodeId, u64>,
    /// How often each node was begun, and how often its result was sent to each PE.
    pub(super) begun: BTreeMap<NodeId, u32>,
    pub(super) sent: BTreeMap<(NodeId, Pe), u32>,
    pub(super) pushed: u64,
    pub(super) asked: u64,
    /// The nodes that fail.
    pub(super) failing: BTreeSet<NodeId>,
    /// Whether nothing is computed.
    pub(super) is_frozen: bool,
}

/// A PE that takes part in a run.
pub(super) struct Site {
    me: Pe,
    pub(super) pool: Pool<Drawn>,
    /// The last opening of the run that it knows.
    opening: u32,
    /// What it computes later.
    frozen: Vec<Message>,
    notes: Rc<RefCell<Notes>>,
}

/// A run on all PEs.
pub(super) type World = Job<Site>;

/// All PEs begin a run, with as many tokens each, and room for this number of results.
pub(super) fn run_of(graph: Drawn, tokens: usize, limit: u64) -> (World, Rc<RefCell<Notes>>) {
    let (graph, notes) = (Arc::new(graph), Rc::<RefCell<Notes>>::default());
    let site = |me| {
        let pool = Pool::new(me, graph.clone(), tokens, limit);
        Site { me, pool, opening: 1, frozen: Vec::new(), notes: notes.clone() }
    };
    let mut world = World::new((0..graph.pes).map(Pe::new).map(site));
    for pe in (0..graph.pes).map(Pe::new) {
        act(&mut world, pe, |pool| {
            pool.built(0, Arc::new(DrawnBlock::new(&graph, 0)));
            pool.start();
        });
    }
    (world, notes)
}

/// The same; the root wants the last node.
pub(super) fn run_for_last(graph: Drawn, tokens: usize, limit: u64) -> (World, Rc<RefCell<Notes>>) {
    let last = graph.last(0);
    let (mut world, notes) = run_of(graph, tokens, limit);
    want(&mut world, Pe::ROOT, last);
    (world, notes)
}

/// Has a PE's pool do something, if the PE lives.
pub(super) fn act(world: &mut World, pe: Pe, act: impl FnOnce(&mut Pool<Drawn>)) {
    world.act(pe, |site, out| {
        act(&mut site.pool);
        site.carry_out(out);
    });
}

pub(super) fn want(world: &mut World, pe: Pe, node: NodeId) {
    act(world, pe, |pool| pool.want(node));
}

/// The pools of the PEs that live.
pub(super) fn pools(world: &World) -> impl Iterator<Item = &Pool<Drawn>> {
    world.living().filter_map(|pe| Some(&world.actor(pe)?.pool))
}

impl Site {
    /// It hears that the run was opened again.
    pub(super) fn renew(&mut self, opening: u32, out: &mut Outgoing<Message>) {
        if std::mem::replace(&mut self.opening, opening) < opening {
            self.pool.renew();
            self.carry_out(out);
        }
    }

    /// The program, which is on this PE, has what the blocks before this one returned.
    pub(super) fn advance(&mut self, first: u32, out: &mut Outgoing<Message>) {
        self.pool.advance(self.me, first);
        out.send_all(Message::Advance(first));
        self.carry_out(out);
    }

    /// It computes again.
    pub(super) fn thaw(&mut self, out: &mut Outgoing<Message>) {
        self.frozen.drain(..).for_each(|computed| out.later(computed));
    }

    fn carry_out(&mut self, out: &mut Outgoing<Message>) {
        let (mut effects, mut notes) = (self.pool.take_effects(), self.notes.borrow_mut());
        while let Some(effect) = effects.pop_front() {
            match effect {
                PoolEffect::Send(to, message) => {
                    notes.pushed += u64::from(matches!(message, PoolMessage::Push(..)));
                    notes.asked += u64::from(matches!(message, PoolMessage::Request(_)));
                    if let PoolMessage::Result(node, _) = &message {
                        *notes.sent.entry((*node, to)).or_default() += 1;
                    }
                    out.send(to, Message::Pool(message, self.opening));
                }
                PoolEffect::Build(number) => {
                    let block = DrawnBlock::new(self.pool.shape(), number);
                    self.pool.built(number, Arc::new(block));
                    effects.append(&mut self.pool.take_effects());
                }
                PoolEffect::Compute(node) => {
                    *notes.begun.entry(node).or_default() += 1;
                    out.later(Message::Computed(node, self.opening));
                }
                PoolEffect::Short(_) => {}
                PoolEffect::Deliver(node, result) => {
                    assert_eq!(notes.delivered.insert(node, result), None, "{node} came twice");
                }
            }
        }
    }

    /// A node is computed, or has failed. What has failed in an opening that is over is not said:
    /// it is tried again.
    fn computed(&mut self, node: NodeId, opening: u32) {
        let inputs = inputs_of(&self.pool, node);
        let has_failed = |inputs: &Vec<u64>| {
            inputs.contains(&FAILED) || self.notes.borrow().failing.contains(&node)
        };
        match inputs {
            Some(inputs) if !has_failed(&inputs) => {
                self.pool.computed(node, weighed(Drawn::compute(node, inputs.into_iter())));
            }
            Some(_) if opening == self.opening => self.pool.computed(node, weighed(FAILED)),
            _ => self.pool.skipped(node),
        }
    }
}

impl Actor for Site {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        match message {
            Message::Pool(message, opening) => {
                self.renew(opening.max(self.opening), out);
                // As in a part: what has failed before is tried again.
                let is_over = opening < self.opening;
                if !is_over || !matches!(message, PoolMessage::Result(_, FAILED)) {
                    self.pool.receive(from, message.map(weighed));
                }
            }
            Message::Computed(..) if self.notes.borrow().is_frozen => self.frozen.push(message),
            Message::Computed(node, opening) => self.computed(node, opening),
            Message::Advance(first) => self.pool.advance(from, first),
        }
        self.carry_out(out);
    }

    /// As in a part: the PE that has died may not have passed on how far the stream is.
    fn died(&mut self, dead: Pe, _: Pe, out: &mut Outgoing<Message>) {
        self.pool.died(dead);
        self.pool.first_kept().into_iter().for_each(|first| out.send_all(Message::Advance(first)));
        self.carry_out(out);
    }
}
