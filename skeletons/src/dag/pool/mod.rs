//! One PE's part of a computation, as a state machine: messages and events in, effects out
//! (Leliveld, ch. 3 and 4).
//!
//! Each node has an **owner**, the PE that computes it; all PEs agree on that. A pool computes a
//! node when its result is requested, by a node on the same PE or by another pool; of a whole graph
//! also unasked:
//!
//! ```text
//!             REQUEST      a token is free   all inputs are there   a token is free
//!   unknown ──────────> queued ──────────> waiting ──────────> ready ──────────> running ──> done
//!      │                   │                                     │                            ↑
//!      │                   └───────────── PUSH to another ───────┤                            │
//!      └── another PE owns it: REQUEST to that one ──> asked <───┘ ──── RESULT ───────────────┘
//! ```
//!
//! - **Tokens.** There is one for each worker thread. A node takes one for as long as it is
//!   computed, and none while it waits for its inputs: so no thread ever waits, and no pool waits
//!   for another that waits for it. Nodes whose inputs are there come first; only if there are
//!   none, further ones are looked at. So no more is begun than keeps the threads busy.
//! - **Order.** Of the nodes whose inputs are there, those come first that were built first: that
//!   is the order of a sequential program, in which neighbours share inputs.
//! - **Once.** A result is computed once, and goes once to each PE that has asked for it, or that
//!   is known to need it, see `forwards`.
//! - **Pushes.** Where more nodes wait than at a neighbour, some are pushed there, see `balance`.
//! - **Deaths.** What was requested from a PE that dies, or pushed to it, is requested from its
//!   heir, which computes it if it does not have it. Each pool does that for what it has requested
//!   itself: so no request is lost, as long as one PE lives. Who is whose heir depends on the set
//!   of the dead only, and not on the order in which a PE hears of them. A result that comes twice
//!   counts once.
//! - **Memory.** Results that are not needed can be dropped, see `memory`.
//! - **Blocks.** A graph may be built in blocks. A pool has those built of which it computes nodes.
//!   In a stream, those that are over are forgotten, see `stream`.
//!
//! A pool must never know what a result is, nor how messages travel: it runs in jobs, in random
//! schedules and in the simulator.

mod balance;
mod deaths;
mod forwards;
mod memory;
mod message;
mod readers;
mod shape;
mod state;
mod stream;
mod waiters;

use self::balance::Balance;
use self::forwards::Unasked;
use self::memory::{Memory, copy_ns};
use self::state::{BlockState, NodePhase, NodeState, Slot};
use self::stream::Stream;
use self::waiters::{Waiter, WaiterLists};
use super::handles::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use ultramarine_topology::Pe;

pub use self::forwards::{Edge, Forwards};
pub use self::memory::Shortage;
pub use self::message::{Discarded, PoolEffect, PoolMessage};
pub use self::readers::Readers;
pub use self::shape::{BlockShape, Shape, Weighed};

/// See the [module](self).
pub struct Pool<S: Shape> {
    me: Pe,
    shape: Arc<S>,
    dead: BTreeSet<Pe>,
    blocks: BTreeMap<u32, BlockState<S::Block, S::Result>>,
    /// The number of nodes that may be begun to be computed now.
    tokens: usize,
    /// Requested nodes whose inputs have not been asked for, the oldest first. Here the newest is
    /// begun next, and the oldest is pushed to others.
    queue: VecDeque<NodeId>,
    unasked: Unasked,
    /// Nodes whose inputs are there.
    ready: BTreeSet<NodeId>,
    forwards: Forwards,
    /// Whether all results of others are asked for, also those that would be forwarded.
    asks: bool,
    waiters: WaiterLists,
    balance: Balance,
    memory: Memory,
    stream: Option<Stream>,
    /// What is to be done, in this order.
    out: VecDeque<PoolEffect<S::Result>>,
    discarded: Discarded<S>,
}

impl<S: Shape> Pool<S> {
    /// The pool of a PE that may compute `tokens` nodes at a time, and should hold results of at
    /// most `limit` bytes.
    pub fn new(me: Pe, shape: Arc<S>, tokens: usize, limit: u64) -> Self {
        let drops_used = shape.drops_used();
        let mut balance = Balance::default();
        balance.meet(shape.neighbours(me, &BTreeSet::new()));
        Pool {
            me,
            shape,
            dead: BTreeSet::new(),
            blocks: BTreeMap::new(),
            tokens,
            queue: VecDeque::new(),
            unasked: Unasked::default(),
            ready: BTreeSet::new(),
            forwards: Forwards::default(),
            asks: true,
            waiters: WaiterLists::default(),
            balance,
            memory: Memory::new(me, limit, drops_used),
            stream: None,
            out: VecDeque::new(),
            discarded: Discarded::default(),
        }
    }

    /// The graph.
    pub fn shape(&self) -> &Arc<S> {
        &self.shape
    }

    /// What is to be done now, in this order.
    pub fn take_effects(&mut self) -> VecDeque<PoolEffect<S::Result>> {
        std::mem::take(&mut self.out)
    }

    /// What is not needed any more.
    pub fn take_discarded(&mut self) -> Discarded<S> {
        std::mem::take(&mut self.discarded)
    }

    /// The result of a node, if it is there. The inputs of a node are, from the moment that it is
    /// to be computed until its own result is.
    pub fn result(&self, node: NodeId) -> Option<S::Result> {
        let block = self.blocks.get(&node.block)?;
        let none = || block.lacks(node.index).then(|| self.shape.no_such_node(node));
        block.result(node.index).cloned().or_else(none)
    }

    /// A block, if it is built.
    pub fn block(&self, number: u32) -> Option<&Arc<S::Block>> {
        self.blocks.get(&number)?.shape.as_ref()
    }

    /// A block is built.
    pub fn built(&mut self, number: u32, block: Arc<S::Block>) {
        let nodes = block.nodes();
        let state = self.state_of(number);
        if state.shape.is_some() {
            return self.discarded.blocks.push(block);
        }
        for (index, _) in state.known().into_iter().filter(|(index, _)| *index >= nodes) {
            let node = NodeId { block: number, index };
            let none = self.shape.no_such_node(node);
            self.settle(node, Weighed::light(none));
        }
        let state = self.state_of(number);
        state.build(block, nodes);
        let parked = std::mem::take(&mut state.parked).into_iter().filter(|index| *index < nodes);
        self.queue.extend(parked.map(|index| NodeId { block: number, index }));
        self.count_readers(number);
        self.go_on();
    }

    /// The run has begun, and a whole graph is [built](Self::built). A wanted node is begun by its
    /// owner unasked: so the computation goes on when the PE that wants the results has died.
    pub fn start(&mut self) {
        self.plan_forwards();
        self.begin_unasked();
        self.go_on();
    }

    /// The program on this PE wants the result of a node. It is held until the run is over.
    pub fn want(&mut self, node: NodeId) {
        self.use_result(node);
        self.request(node, Waiter::Program);
        self.go_on();
    }

    /// The program on this PE has the result of a node from elsewhere.
    pub(super) fn supply(&mut self, node: NodeId, result: Weighed<S::Result>) {
        self.use_result(node);
        self.settle(node, result);
        self.go_on();
    }

    /// A message has arrived.
    pub fn receive(&mut self, from: Pe, message: PoolMessage<Weighed<S::Result>>) {
        match message {
            PoolMessage::Result(node, weighed) if self.is_forgotten(node) || self.lacks(node) => {
                self.discarded.results.push(weighed.result);
            }
            PoolMessage::Request(node) | PoolMessage::Push(node, _) if self.is_forgotten(node) => {}
            PoolMessage::Request(node) => self.request(node, Waiter::Pool(from)),
            PoolMessage::Result(node, result) => {
                self.settle(node, Weighed { cost_ns: copy_ns(result.bytes), ..result });
            }
            PoolMessage::Push(node, pushes_left) => {
                if !self.lacks(node) {
                    self.take_over(node, pushes_left);
                }
                self.request(node, Waiter::Pool(from));
            }
            PoolMessage::Load(load) => self.balance.note(from, load),
            PoolMessage::Ask => self.ask_for_all(),
        }
        self.go_on();
    }

    /// A node has been computed.
    pub fn computed(&mut self, node: NodeId, result: Weighed<S::Result>) {
        self.tokens += 1;
        self.balance.computed(result.cost_ns as u64);
        if self.blocks.contains_key(&node.block) {
            let was_there = self.settle(node, result);
            self.note_computed(was_there);
        } else {
            self.discarded.results.push(result.result);
        }
        self.go_on();
    }

    /// A node was not computed, since its inputs are gone: its result has arrived in another way,
    /// or its block is over and the keeper has it, or they had failed and are tried again. Or it
    /// has failed itself, and is tried again.
    pub fn skipped(&mut self, node: NodeId) {
        self.tokens += 1;
        if self.is_in(NodePhase::Running, node) {
            self.release_inputs(node, true, false);
            if self.is_over(node) {
                self.ask_for(node);
            } else {
                // Not of its owner, which may have pushed it here, and waits for this pool.
                self.enqueue(node);
            }
        }
        self.go_on();
    }

    /// Does what has become possible.
    fn go_on(&mut self) {
        self.begin();
        self.balance();
    }

    /// Notes that `waiter` wants the result of a node; it gets it at once if it is there.
    fn request(&mut self, node: NodeId, waiter: Waiter) {
        if let Some(result) = self.result(node) {
            self.hand_over(node, waiter, &result);
            return self.note_unused(node);
        }
        let head = self.slot(node).state.waiters;
        // A pool asks again if it has heard of a death that this one has not.
        if matches!(waiter, Waiter::Pool(_)) && self.waiters.iter(head).any(|one| one == waiter) {
            return;
        }
        let head = self.waiters.push(head, waiter);
        let state = &mut self.slot(node).state;
        state.waiters = head;
        if state.phase == NodePhase::Unknown {
            self.note_needed(node);
            self.ask_for(node);
        }
    }

    /// Has a node computed: here, or by its owner, unless that does so unasked.
    fn ask_for(&mut self, node: NodeId) {
        if self.awaits(node) {
            self.slot(node).state.phase = NodePhase::Awaited;
            return;
        }
        let keeper = self.keeper(node);
        let owner = keeper.unwrap_or_else(|| self.shape.owner(node, &self.dead));
        if owner != self.me {
            let state = &mut self.slot(node).state;
            (state.phase, state.count) = (NodePhase::Asked, owner.number());
            self.out.push_back(PoolEffect::Send(owner, PoolMessage::Request(node)));
        } else if keeper.is_none() {
            self.enqueue(node);
        }
        // Else this is the keeper, and has all that was returned: a PE that asks for another node
        // of a block that is over does not need it.
    }

    /// A node is to be computed here.
    fn enqueue(&mut self, node: NodeId) {
        self.slot(node).state.phase = NodePhase::Queued;
        self.queue.push_back(node);
    }

    /// A result is there: those that wait for it get it. Returns whether it was there before.
    fn settle(&mut self, node: NodeId, weighed: Weighed<S::Result>) -> bool {
        let slot = self.slot(node);
        if slot.state.phase == NodePhase::Done {
            self.discarded.results.push(weighed.result);
            return true;
        }
        let (result, cost_ns) = (weighed.result.clone(), weighed.cost_ns);
        let known = slot.fill(weighed);
        let (former, mut next) = (known.phase, known.waiters);
        let bytes = slot.state.bytes();
        let was_there = self.hold(node, bytes, cost_ns);
        self.forward(node, known, &result);
        while let Some(waiter) = self.waiters.pop(&mut next) {
            self.hand_over(node, waiter, &result);
        }
        if former == NodePhase::Waiting {
            self.await_no_inputs(node);
        }
        let was_using =
            matches!(former, NodePhase::Waiting | NodePhase::Ready | NodePhase::Running);
        self.release_inputs(node, was_using, !was_there || former != NodePhase::Unknown);
        self.note_unused(node);
        self.drop_unused();
        was_there
    }

    /// A node's result has come from elsewhere. If it is dropped, the node may wait again: what it
    /// waits for now must not count then.
    fn await_no_inputs(&mut self, node: NodeId) {
        let Some(shape) = self.block(node.block).cloned() else { return };
        for input in shape.inputs(node.index) {
            let is_open = |state: &NodeState| state.phase != NodePhase::Done;
            if let Some(state) = self.known(input).filter(is_open) {
                let rest = self.waiters.without(state.waiters, Waiter::Node(node));
                self.slot(input).state.waiters = rest;
            }
        }
    }

    fn hand_over(&mut self, node: NodeId, waiter: Waiter, result: &S::Result) {
        match waiter {
            Waiter::Program => self.out.push_back(PoolEffect::Deliver(node, result.clone())),
            Waiter::Pool(pe) => {
                let message = PoolMessage::Result(node, result.clone());
                self.out.push_back(PoolEffect::Send(pe, message));
                self.note_sent(node, pe);
            }
            Waiter::Node(waiting) => {
                // Another PE may have sent its result meanwhile.
                if self.is_in(NodePhase::Waiting, waiting) {
                    let state = &mut self.slot(waiting).state;
                    state.count -= 1;
                    if state.count == 0 {
                        self.make_ready(waiting);
                    }
                }
            }
        }
    }

    /// Begins what tokens allow.
    fn begin(&mut self) {
        while self.tokens > 0 {
            if let Some(node) = self.ready.pop_first() {
                if self.is_in(NodePhase::Ready, node) {
                    self.slot(node).state.phase = NodePhase::Running;
                    self.tokens -= 1;
                    self.out.push_back(PoolEffect::Compute(node));
                }
            } else if let Some(node) = self.queue.pop_back().or_else(|| self.unasked.next()) {
                // The newest: depth first, so that few nodes wait.
                self.ask_for_inputs(node);
            } else {
                return;
            }
        }
    }

    /// Requests the inputs of a node that is in the queue.
    fn ask_for_inputs(&mut self, node: NodeId) {
        if !self.is_in(NodePhase::Queued, node) {
            return;
        }
        let block = self.state_of(node.block);
        let Some(shape) = block.shape.clone() else {
            block.parked.push(node.index);
            if block.parked.len() == 1 {
                self.out.push_back(PoolEffect::Build(node.block));
            }
            return;
        };
        let state = &mut self.slot(node).state;
        // One more, so that it is not ready before all have been asked for.
        (state.phase, state.count) = (NodePhase::Waiting, 1);
        for input in shape.inputs(node.index) {
            self.slot(node).state.count += 1;
            self.use_result(input);
            self.request(input, Waiter::Node(node));
        }
        let state = &mut self.slot(node).state;
        state.count -= 1;
        if state.count == 0 {
            self.make_ready(node);
        }
    }

    /// All inputs of a node are there.
    fn make_ready(&mut self, node: NodeId) {
        self.slot(node).state.phase = NodePhase::Ready;
        self.ready.insert(node);
    }

    fn is_in(&self, phase: NodePhase, node: NodeId) -> bool {
        self.known(node).is_some_and(|state| state.phase == phase)
    }

    fn known(&self, node: NodeId) -> Option<NodeState> {
        self.blocks.get(&node.block)?.state(node.index)
    }

    /// Whether the node's block is known to have no such node.
    fn lacks(&self, node: NodeId) -> bool {
        self.blocks.get(&node.block).is_some_and(|block| block.lacks(node.index))
    }

    fn state_of(&mut self, block: u32) -> &mut BlockState<S::Block, S::Result> {
        self.blocks.entry(block).or_insert_with(BlockState::unbuilt)
    }

    fn slot(&mut self, node: NodeId) -> &mut Slot<S::Result> {
        self.state_of(node.block).slot(node.index)
    }
}

#[cfg(test)]
mod tests;
