use super::state::PUSHES_MAX;
use super::*;
use proptest::prelude::*;

/// A graph of one block: the inputs of each node, which have smaller numbers, and the owners.
#[derive(Clone, Debug)]
struct Drawn {
    inputs: Vec<Vec<u32>>,
    owners: Vec<u32>,
    pes: u32,
    /// The last.
    wanted: Vec<NodeId>,
}

impl Shape for Drawn {
    type Block = Drawn;
    type Result = u64;

    fn wanted(&self) -> &[NodeId] {
        &self.wanted
    }

    fn owner(&self, node: NodeId, dead: &BTreeSet<Pe>) -> Pe {
        let first = self.owners[node.index as usize];
        let order = (0..self.pes).map(|step| Pe::new((first + step) % self.pes));
        order.into_iter().find(|pe| !dead.contains(pe)).expect("some PE lives")
    }

    fn holds_all(&self) -> bool {
        false
    }

    fn may_move(&self, node: NodeId) -> bool {
        !node.index.is_multiple_of(8)
    }

    fn neighbours(&self, me: Pe, dead: &BTreeSet<Pe>) -> Vec<Pe> {
        (0..self.pes).map(Pe::new).filter(|pe| *pe != me && !dead.contains(pe)).collect()
    }

    fn no_such_node(&self, _: NodeId) -> u64 {
        unreachable!("inputs have smaller numbers")
    }
}

impl BlockShape for Drawn {
    fn nodes(&self) -> u32 {
        self.inputs.len() as u32
    }

    fn inputs(&self, index: u32) -> impl Iterator<Item = NodeId> {
        self.inputs[index as usize].iter().map(|index| NodeId { block: 0, index: *index })
    }
}

impl Held for u64 {
    fn bytes(&self) -> u64 {
        1
    }

    fn cost_ns(&self) -> u64 {
        // Half of the nodes are worth a push.
        self % 2 * 1_000_000
    }
}

impl Drawn {
    /// What a node's result is: it depends on those of all its inputs, and on their order.
    fn compute(index: u32, inputs: &[u64]) -> u64 {
        inputs.iter().fold(u64::from(index) + 1, |sum, input| {
            sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(*input)
        })
    }

    fn expected(&self) -> Vec<u64> {
        let mut results: Vec<u64> = Vec::new();
        for (inputs, index) in self.inputs.iter().zip(0..) {
            let inputs: Vec<u64> = inputs.iter().map(|input| results[*input as usize]).collect();
            results.push(Self::compute(index, &inputs));
        }
        results
    }
}

fn drawn(nodes: usize, pes: u32) -> impl Strategy<Value = Drawn> {
    let inputs = (1..nodes).map(|index| prop::collection::vec(0..index as u32, 0..4));
    (inputs.collect::<Vec<_>>(), prop::collection::vec(0..pes, nodes)).prop_map(
        move |(others, owners)| {
            let inputs = std::iter::once(Vec::new()).chain(others).collect();
            Drawn { inputs, owners, pes, wanted: vec![node(nodes - 1)] }
        },
    )
}

/// Something that is still to happen on a PE.
#[derive(Clone, Debug)]
enum Event {
    Arrive { from: Pe, message: PoolMessage<u64> },
    Computed(NodeId),
    Died(Pe),
}

/// Pools, and what is on its way between them. Messages of one sender arrive in order.
struct World {
    graph: Arc<Drawn>,
    pools: Vec<Option<Pool<Drawn>>>,
    /// For each receiver, and each sender or reason, what is to happen in order.
    coming: BTreeMap<(Pe, u32), VecDeque<Event>>,
    delivered: BTreeMap<NodeId, u64>,
    /// How often each node was begun, and how often its result was sent to each PE.
    begun: Vec<u32>,
    sent: BTreeMap<(NodeId, Pe), u32>,
    pushed: u64,
    /// Whether nothing is computed.
    is_frozen: bool,
}

/// Not a sender: computations, and news of deaths, come in any order.
const COMPUTED: u32 = 1000;
const DEATHS: u32 = 10_000;

impl World {
    fn new(graph: Drawn, tokens: usize) -> Self {
        Self::with_memory(graph, tokens, u64::MAX)
    }

    fn with_memory(graph: Drawn, tokens: usize, limit: u64) -> Self {
        let graph = Arc::new(graph);
        let pool = |pe| Some(Pool::new(Pe::new(pe), graph.clone(), tokens, limit));
        let mut world = World {
            pools: (0..graph.pes).map(pool).collect(),
            begun: vec![0; graph.inputs.len()],
            graph: graph.clone(),
            coming: BTreeMap::new(),
            delivered: BTreeMap::new(),
            sent: BTreeMap::new(),
            pushed: 0,
            is_frozen: false,
        };
        for pe in (0..world.graph.pes).map(Pe::new) {
            let graph = graph.clone();
            world.act(pe, |pool| {
                pool.start();
                pool.built(0, graph, Vec::new());
            });
        }
        world
    }

    fn act(&mut self, pe: Pe, act: impl FnOnce(&mut Pool<Drawn>)) {
        let pool = self.pools[pe.index()].as_mut().expect("it lives");
        act(pool);
        let effects = pool.take_effects();
        self.perform(pe, effects);
    }

    fn want(&mut self, pe: Pe, node: NodeId) {
        self.act(pe, |pool| pool.want(node));
    }

    /// Lets things happen in an order that follows from the choices, until nothing is left, and
    /// kills each of these PEs after a number of steps.
    fn run(&mut self, choices: &[usize], deaths: &[(u32, usize)]) {
        let mut choices = choices.iter().cycle();
        let last = deaths.iter().map(|(_, when)| *when).max().unwrap_or(0);
        for at in 0.. {
            for (pe, _) in deaths.iter().filter(|(_, when)| *when == at) {
                if self.pools[*pe as usize].is_some() {
                    self.die(Pe::new(*pe));
                }
            }
            if !self.step(*choices.next().expect("there are choices")) && at >= last {
                return;
            }
        }
    }

    fn perform(&mut self, pe: Pe, effects: VecDeque<PoolEffect<u64>>) {
        for effect in effects {
            match effect {
                PoolEffect::Send(to, message) => {
                    self.pushed += u64::from(matches!(message, PoolMessage::Push(..)));
                    if let PoolMessage::Result(node, _) = &message {
                        *self.sent.entry((*node, to)).or_default() += 1;
                    }
                    self.come(to, pe.number(), Event::Arrive { from: pe, message });
                }
                PoolEffect::Build(_) => {
                    let graph = self.graph.clone();
                    self.act(pe, |pool| pool.built(0, graph, Vec::new()));
                }
                PoolEffect::Compute(node) => {
                    self.begun[node.index as usize] += 1;
                    self.come(pe, COMPUTED + node.index, Event::Computed(node));
                }
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
    fn step(&mut self, choice: usize) -> bool {
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
        let graph = self.graph.clone();
        self.act(key.0, |pool| match event {
            Event::Arrive { from, message } => pool.receive(from, message),
            Event::Died(pe) => pool.died(pe),
            Event::Computed(node) => {
                let inputs = graph.inputs(node.index).map(|input| pool.result(input));
                match inputs.collect::<Option<Vec<u64>>>() {
                    Some(inputs) => pool.computed(node, Drawn::compute(node.index, &inputs)),
                    None => pool.skipped(),
                }
            }
        });
        true
    }
}

fn node(index: usize) -> NodeId {
    NodeId { block: 0, index: index as u32 }
}

proptest! {
    #[test]
    fn each_needed_node_is_computed_once_and_sent_once_to_each_pe(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let (expected, last) = (graph.expected(), graph.inputs.len() - 1);
        let mut is_needed = vec![false; last + 1];
        is_needed[last] = true;
        for index in (0..=last).rev() {
            if is_needed[index] {
                graph.inputs[index].iter().for_each(|input| is_needed[*input as usize] = true);
            }
        }
        let mut world = World::new(graph, tokens);
        world.want(Pe::ROOT, node(last));
        world.run(&choices, &[]);
        prop_assert_eq!(world.delivered.get(&node(last)), Some(&expected[last]));
        let once: Vec<u32> = is_needed.into_iter().map(u32::from).collect();
        prop_assert_eq!(world.begun, once);
        prop_assert!(world.sent.values().all(|sent| *sent == 1));
    }

    #[test]
    fn as_long_as_one_pe_lives_the_result_comes(
        graph in (1..40_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..60_usize), 0..5),
    ) {
        let (expected, last) = (graph.expected(), graph.inputs.len() - 1);
        let deaths: Vec<_> = deaths.into_iter().filter(|(pe, _)| *pe < graph.pes).collect();
        let mut world = World::new(graph, tokens);
        world.want(Pe::ROOT, node(last));
        world.run(&choices, &deaths);
        prop_assert_eq!(world.delivered.get(&node(last)), Some(&expected[last]));
    }

    #[test]
    fn with_little_memory_the_result_comes_and_no_pool_holds_more_than_it_must(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        limit in 0..8_u64,
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..60_usize), 0..3),
    ) {
        let (expected, last) = (graph.expected(), graph.inputs.len() - 1);
        let deaths: Vec<_> = deaths.into_iter().filter(|(pe, _)| *pe < graph.pes).collect();
        let mut world = World::with_memory(graph, tokens, limit);
        world.want(Pe::ROOT, node(last));
        world.run(&choices, &deaths);
        prop_assert_eq!(world.delivered.get(&node(last)), Some(&expected[last]));
        for pool in world.pools.iter().flatten() {
            let all = (0..=last).filter(|index| pool.result(node(*index)).is_some());
            let results = all.count() as u64;
            prop_assert_eq!(pool.memory.held(), results);
            // In the end no node waits, so that only wanted results are held beside.
            prop_assert!(results <= limit + 1, "{} of {}", results, limit);
        }
    }

    /// Theorems 1 and 3: in the end all tokens are there; and if no node is begun or computed any
    /// more, loads are balanced after a bounded number of pushes.
    #[test]
    fn tokens_come_back_and_pushes_come_to_rest(
        graph in (1..60_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        steps in 0..40_usize,
    ) {
        let last = graph.inputs.len() - 1;
        let mut world = World::new(graph, tokens);
        world.want(Pe::ROOT, node(last));
        let mut choices = choices.iter().cycle();
        for _ in 0..steps {
            world.step(*choices.next().expect("there are choices"));
        }
        let pushed = world.pushed;
        world.is_frozen = true;
        while world.step(*choices.next().expect("there are choices")) {}
        let bound = u64::from(PUSHES_MAX) * world.begun.len() as u64;
        prop_assert!(world.pushed - pushed <= bound, "{} pushes", world.pushed - pushed);
        world.is_frozen = false;
        while world.step(*choices.next().expect("there are choices")) {}
        prop_assert!(world.delivered.contains_key(&node(last)));
        for pool in world.pools.iter().flatten() {
            prop_assert_eq!(pool.tokens, tokens);
        }
    }

    /// Nothing is computed twice that its computer has not taken with it.
    #[test]
    fn the_others_go_on_without_the_pe_that_wants_the_results_and_another_joins(
        graph in (1..40_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        choices in prop::collection::vec(any::<usize>(), 1..50),
        when in 0..60_usize,
        is_renewed in any::<bool>(),
    ) {
        let (expected, last) = (graph.expected(), graph.inputs.len() - 1);
        let mut world = World::new(graph, 1);
        world.want(Pe::ROOT, node(last));
        world.run(&choices, &[(0, when)]);
        let before = world.begun.clone();
        world.delivered.clear();
        for pe in (1..world.graph.pes).map(Pe::new).filter(|_| is_renewed) {
            world.act(pe, Pool::renew);
        }
        world.want(Pe::new(1), node(last));
        world.run(&choices, &[]);
        prop_assert_eq!(world.delivered.get(&node(last)), Some(&expected[last]));
        prop_assert_eq!(world.begun, before, "the others had computed all of it");
    }
}
