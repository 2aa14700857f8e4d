//! One PE's part of a computation, as a state machine: messages and events in, effects out
//! (Leliveld, ch. 3 and 4).
//!
//! Each node has an **owner**, the PE that computes it; all PEs agree on that. A pool computes a
//! node when its result is requested, by a node on the same PE or by another pool:
//!
//! ```text
//!             REQUEST      a token is free   all inputs are there   a token is free
//!   unknown ──────────> queued ──────────> waiting ──────────> ready ──────────> running ──> done
//!      │                                                                                      ↑
//!      └── another PE owns it: REQUEST to that one ──> asked ─────────── RESULT ──────────────┘
//! ```
//!
//! - **Tokens.** There is one for each worker thread. A node takes one for as long as it is
//!   computed, and none while it waits for its inputs: so no thread ever waits, and no pool waits
//!   for another that waits for it. Nodes whose inputs are there come first; only if there are
//!   none, further ones are looked at. So no more is begun than keeps the threads busy.
//! - **Once.** A result is computed once, and goes once to each PE that has asked for it.
//! - **Deaths.** What was requested from a PE that dies is requested from its heir, which computes
//!   it if it does not have it. Each pool does that for what it has requested itself: so no
//!   request is lost, as long as one PE lives. Who is whose heir depends on the set of the dead
//!   only, and not on the order in which a PE hears of them. A result that comes twice counts once.
//!
//! - **Memory.** Above a limit, results are dropped that no node on this PE waits for: first those
//!   that another PE has computed, then own ones, and of each the oldest first. A dropped result is
//!   as if it had never been there: if it is needed again, it is asked for or computed again.
//!
//! A pool must never know what a result is, nor how messages travel.

mod waiters;

use self::waiters::{Waiter, WaiterLists};
use super::handles::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ultramarine_topology::Pe;

/// The shape of a graph, and who owns its nodes. The same on every PE.
pub(super) trait Shape {
    /// The number of nodes of a block.
    fn nodes_of(&self, block: u32) -> u32;

    /// The nodes whose results the program wants.
    fn wanted(&self) -> &[NodeId];

    /// The inputs of a node, in order. A node may be there more than once.
    fn inputs(&self, node: NodeId) -> impl Iterator<Item = NodeId>;

    /// The owner of a node, once these PEs are dead. Some PE lives.
    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe;
}

/// A result, as far as a pool knows it.
pub(super) trait Held: Clone {
    /// How many bytes of memory it takes.
    fn bytes(&self) -> u64;
}

/// What one pool sends to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PoolMessage<V> {
    /// The sender wants the result of a node.
    Request(NodeId),
    /// The result of a node that the receiver has asked for.
    Result(NodeId, V),
}

/// What a pool wants its owner to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PoolEffect<V> {
    /// Send this to the pool of another PE.
    Send(Pe, PoolMessage<V>),
    /// Compute a node, whose inputs [are there](Pool::result), and say what
    /// [came out](Pool::computed).
    Compute(NodeId),
    /// The result of a node that was [wanted](Pool::want).
    Deliver(NodeId, V),
}

/// The effects that are to be carried out, in their order.
pub(super) type PoolEffects<V> = VecDeque<PoolEffect<V>>;

/// See the [module](self).
pub(super) struct Pool<V> {
    me: Pe,
    dead: BTreeSet<Pe>,
    blocks: BTreeMap<u32, BlockState<V>>,
    /// The number of nodes that may be begun to be computed now.
    tokens: usize,
    /// Requested nodes whose inputs have not been asked for, the oldest first.
    queue: VecDeque<NodeId>,
    /// Nodes whose inputs are there, the oldest first.
    ready: VecDeque<NodeId>,
    waiters: WaiterLists,
    memory: Memory,
    /// Results that are not needed, for the owner to drop.
    discarded: Vec<V>,
}

/// What the results of a pool take, in bytes.
struct Memory {
    limit: u64,
    held: u64,
    /// Results that no node here waited for when they were noted: copies of what other PEs have
    /// computed, and own ones; the oldest first.
    unused: [VecDeque<NodeId>; 2],
}

/// What a pool knows of the nodes of a block.
struct BlockState<V> {
    nodes: Vec<NodeState>,
    results: Vec<Option<V>>,
}

/// What a pool knows of a node.
#[derive(Clone, Copy)]
struct NodeState {
    phase: NodePhase,
    /// Whether the result is a copy of another PE's.
    is_copy: bool,
    /// The number of times that nodes which are being computed here need the result.
    uses: u32,
    /// The number of inputs that are missing, while the node waits; the PE that was asked, if one
    /// was.
    count: u32,
    /// Who waits for the result: a list in `waiters`.
    waiters: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodePhase {
    /// It has not been requested here.
    Unknown,
    /// It is in the queue.
    Queued,
    /// Inputs are missing.
    Waiting,
    /// All inputs are there.
    Ready,
    Running,
    /// Another PE was asked for the result.
    Asked,
    Done,
}

impl<V: Held> Pool<V> {
    /// The pool of a PE that may compute `tokens` nodes at a time, and should hold results of at
    /// most `limit` bytes.
    pub(super) fn new(me: Pe, tokens: usize, limit: u64) -> Self {
        Pool {
            me,
            dead: BTreeSet::new(),
            blocks: BTreeMap::new(),
            tokens,
            queue: VecDeque::new(),
            ready: VecDeque::new(),
            waiters: WaiterLists::default(),
            memory: Memory { limit, held: 0, unused: Default::default() },
            discarded: Vec::new(),
        }
    }

    /// Results that are not needed: dropping them may take long, or fail.
    pub(super) fn take_discarded(&mut self) -> Vec<V> {
        std::mem::take(&mut self.discarded)
    }

    /// The result of a node, if it is there. The inputs of a node are, from the moment that it is
    /// to be computed until its own result is.
    pub(super) fn result(&self, node: NodeId) -> Option<&V> {
        self.blocks.get(&node.block)?.results[node.index as usize].as_ref()
    }

    /// The run has begun. A wanted node is begun by its owner unasked: so the
    /// computation goes on when the PE that wants the results has died.
    pub(super) fn start(&mut self, shape: &impl Shape, out: &mut PoolEffects<V>) {
        self.begin_wanted(shape);
        self.begin(shape, out);
    }

    /// What this pool has asked of others may be lost: it asks again.
    pub(super) fn renew(&mut self, shape: &impl Shape, out: &mut PoolEffects<V>) {
        self.ask_again(shape, |_| true, out);
    }

    /// The program on this PE wants the result of a node.
    pub(super) fn want(&mut self, shape: &impl Shape, node: NodeId, out: &mut PoolEffects<V>) {
        self.request(shape, node, Waiter::Program, out);
        self.begin(shape, out);
    }

    /// A message has arrived.
    pub(super) fn receive(
        &mut self,
        shape: &impl Shape,
        from: Pe,
        message: PoolMessage<V>,
        out: &mut PoolEffects<V>,
    ) {
        match message {
            PoolMessage::Request(node) => self.request(shape, node, Waiter::Pool(from), out),
            PoolMessage::Result(node, result) => {
                self.state(shape, node).is_copy = true;
                self.settle(shape, node, result, out);
            }
        }
        self.begin(shape, out);
    }

    /// A node has been computed.
    pub(super) fn computed(
        &mut self,
        shape: &impl Shape,
        node: NodeId,
        result: V,
        out: &mut PoolEffects<V>,
    ) {
        self.tokens += 1;
        self.state(shape, node).is_copy = false;
        self.settle(shape, node, result, out);
        self.begin(shape, out);
    }

    /// A node was not computed, since its result has arrived in another way: its token is free.
    pub(super) fn skipped(&mut self, shape: &impl Shape, out: &mut PoolEffects<V>) {
        self.tokens += 1;
        self.begin(shape, out);
    }

    /// A PE is dead: what was asked of it is asked of its heir.
    pub(super) fn died(&mut self, shape: &impl Shape, pe: Pe, out: &mut PoolEffects<V>) {
        if !self.dead.insert(pe) {
            return;
        }
        self.ask_again(shape, |asked| asked == pe, out);
        self.begin_wanted(shape);
        self.begin(shape, out);
    }

    /// Asks again for what was asked of these PEs.
    fn ask_again(&mut self, shape: &impl Shape, of: impl Fn(Pe) -> bool, out: &mut PoolEffects<V>) {
        let is_asked =
            |state: &NodeState| state.phase == NodePhase::Asked && of(Pe::new(state.count));
        let mut asked = Vec::new();
        for (block, state) in &self.blocks {
            let nodes = state.nodes.iter().zip(0..).filter(|(state, _)| is_asked(state));
            asked.extend(nodes.map(|(_, index)| NodeId { block: *block, index }));
        }
        asked.into_iter().for_each(|node| self.ask_for(shape, node, out));
    }

    /// Puts those of the wanted nodes into the queue that this PE owns.
    fn begin_wanted(&mut self, shape: &impl Shape) {
        for node in shape.wanted() {
            if shape.owner(*node, &self.dead) == self.me
                && self.state(shape, *node).phase == NodePhase::Unknown
            {
                let state = self.state(shape, *node);
                state.phase = NodePhase::Queued;
                // Until the run is over.
                state.uses += 1;
                self.queue.push_back(*node);
            }
        }
    }

    /// Notes that `waiter` wants the result of a node; it gets it at once if it is there.
    fn request(
        &mut self,
        shape: &impl Shape,
        node: NodeId,
        waiter: Waiter,
        out: &mut PoolEffects<V>,
    ) {
        if let Some(result) = self.result(node) {
            let result = result.clone();
            return self.hand_over(shape, node, waiter, &result, out);
        }
        let head = self.state(shape, node).waiters;
        // A pool asks again if it has heard of a death that this one has not.
        if matches!(waiter, Waiter::Pool(_)) && self.waiters.iter(head).any(|one| one == waiter) {
            return;
        }
        let head = self.waiters.push(head, waiter);
        let state = self.state(shape, node);
        state.waiters = head;
        if state.phase == NodePhase::Unknown {
            self.ask_for(shape, node, out);
        }
    }

    /// Has a node computed: here, or by its owner.
    fn ask_for(&mut self, shape: &impl Shape, node: NodeId, out: &mut PoolEffects<V>) {
        let owner = shape.owner(node, &self.dead);
        let me = self.me;
        let state = self.state(shape, node);
        if owner == me {
            state.phase = NodePhase::Queued;
            self.queue.push_back(node);
        } else {
            (state.phase, state.count) = (NodePhase::Asked, owner.number());
            out.push_back(PoolEffect::Send(owner, PoolMessage::Request(node)));
        }
    }

    /// A result is there: those that wait for it get it.
    fn settle(&mut self, shape: &impl Shape, node: NodeId, result: V, out: &mut PoolEffects<V>) {
        let state = self.state(shape, node);
        if state.phase == NodePhase::Done {
            return self.discarded.push(result);
        }
        let former = std::mem::replace(&mut state.phase, NodePhase::Done);
        let mut next = std::mem::replace(&mut state.waiters, WaiterLists::END);
        self.block(shape, node.block).results[node.index as usize] = Some(result.clone());
        self.memory.held += result.bytes();
        while let Some(waiter) = self.waiters.pop(&mut next) {
            self.hand_over(shape, node, waiter, &result, out);
        }
        if matches!(former, NodePhase::Waiting | NodePhase::Ready | NodePhase::Running) {
            for input in shape.inputs(node) {
                self.state(shape, input).uses -= 1;
                self.note_unused(shape, input);
            }
        }
        self.note_unused(shape, node);
        self.drop_unused(shape);
    }

    /// Notes a result that no node here waits for, in case that memory is short.
    fn note_unused(&mut self, shape: &impl Shape, node: NodeId) {
        if self.memory.limit == u64::MAX {
            return;
        }
        let NodeState { phase, is_copy, uses, .. } = *self.state(shape, node);
        if phase == NodePhase::Done && uses == 0 {
            self.memory.unused[usize::from(!is_copy)].push_back(node);
        }
    }

    /// Drops unused results until the others fit into the memory.
    fn drop_unused(&mut self, shape: &impl Shape) {
        while self.memory.held > self.memory.limit {
            let [copies, own] = &mut self.memory.unused;
            let Some(node) = copies.pop_front().or_else(|| own.pop_front()) else { return };
            let state = self.state(shape, node);
            // It may have been needed again, or dropped, since it was noted.
            if state.phase == NodePhase::Done && state.uses == 0 {
                state.phase = NodePhase::Unknown;
                let result = self.block(shape, node.block).results[node.index as usize].take();
                self.memory.held -= result.as_ref().map_or(0, V::bytes);
                self.discarded.extend(result);
            }
        }
    }

    fn hand_over(
        &mut self,
        shape: &impl Shape,
        node: NodeId,
        waiter: Waiter,
        result: &V,
        out: &mut PoolEffects<V>,
    ) {
        match waiter {
            Waiter::Program => out.push_back(PoolEffect::Deliver(node, result.clone())),
            Waiter::Pool(pe) => {
                out.push_back(PoolEffect::Send(pe, PoolMessage::Result(node, result.clone())));
            }
            Waiter::Node(waiting) => {
                let state = self.state(shape, waiting);
                // Another PE may have sent its result meanwhile.
                if state.phase == NodePhase::Waiting {
                    state.count -= 1;
                    if state.count == 0 {
                        state.phase = NodePhase::Ready;
                        self.ready.push_back(waiting);
                    }
                }
            }
        }
    }

    /// Begins what tokens allow.
    fn begin(&mut self, shape: &impl Shape, out: &mut PoolEffects<V>) {
        while self.tokens > 0 {
            if let Some(node) = self.ready.pop_front() {
                let state = self.state(shape, node);
                if state.phase == NodePhase::Ready {
                    state.phase = NodePhase::Running;
                    self.tokens -= 1;
                    out.push_back(PoolEffect::Compute(node));
                }
            } else if let Some(node) = self.queue.pop_back() {
                self.ask_for_inputs(shape, node, out);
            } else {
                return;
            }
        }
    }

    /// Requests the inputs of a node that is in the queue.
    fn ask_for_inputs(&mut self, shape: &impl Shape, node: NodeId, out: &mut PoolEffects<V>) {
        let state = self.state(shape, node);
        if state.phase != NodePhase::Queued {
            return;
        }
        // One more, so that it is not ready before all have been asked for.
        (state.phase, state.count) = (NodePhase::Waiting, 1);
        for input in shape.inputs(node) {
            self.state(shape, node).count += 1;
            self.state(shape, input).uses += 1;
            self.request(shape, input, Waiter::Node(node), out);
        }
        let state = self.state(shape, node);
        state.count -= 1;
        if state.count == 0 {
            state.phase = NodePhase::Ready;
            self.ready.push_back(node);
        }
    }

    fn block(&mut self, shape: &impl Shape, block: u32) -> &mut BlockState<V> {
        self.blocks.entry(block).or_insert_with(|| {
            let nodes = shape.nodes_of(block) as usize;
            BlockState { nodes: vec![NodeState::UNKNOWN; nodes], results: vec![None; nodes] }
        })
    }

    fn state(&mut self, shape: &impl Shape, node: NodeId) -> &mut NodeState {
        &mut self.block(shape, node.block).nodes[node.index as usize]
    }
}

impl NodeState {
    const UNKNOWN: NodeState = NodeState {
        phase: NodePhase::Unknown,
        is_copy: false,
        uses: 0,
        count: 0,
        waiters: WaiterLists::END,
    };
}

#[cfg(test)]
mod tests;
