//! Runs as groups: pools that are invited, renewed and closed, in a world where any PE dies.

use super::world::{DrawnBlock, drawn, inputs_of};
use super::*;
use ultramarine_group::{ActionOf, GroupId, Notice, Opening, Part, Plain, PlainGroups, Site};
use ultramarine_testkit::world::{Actor, Outgoing, World as Job};

/// The pure part of a run.
struct PoolPart {
    pool: Pool<Drawn>,
    delivered: BTreeMap<NodeId, u64>,
}

impl Part for PoolPart {
    type Invitation = Arc<Drawn>;
    type Message = PoolMessage<u64>;
    type Effects = VecDeque<PoolEffect<u64>>;
    type Error = ();

    fn begin(&mut self) {
        self.pool.start();
    }

    fn receive(&mut self, from: Pe, message: PoolMessage<u64>, _: bool) {
        self.pool.receive(from, message.map(weighed));
    }

    fn died(&mut self, dead: Pe) {
        self.pool.died(dead);
    }

    fn renew(&mut self, _: Opening) {
        self.pool.renew();
    }

    fn take_effects(&mut self) -> VecDeque<PoolEffect<u64>> {
        let mut effects = self.pool.take_effects();
        effects.retain(|effect| match effect {
            PoolEffect::Deliver(node, result) => self.delivered.insert(*node, *result).is_some(),
            _ => true,
        });
        effects
    }
}

impl Plain for PoolPart {
    fn make(me: Pe, _: GroupId, graph: &Arc<Drawn>) -> Result<Self, ()> {
        let mut pool = Pool::new(me, graph.clone(), 2, u64::MAX);
        pool.built(0, Arc::new(DrawnBlock::new(graph, 0)));
        Ok(PoolPart { pool, delivered: BTreeMap::new() })
    }
}

/// A PE whose program wants a graph's last node.
struct Program {
    groups: PlainGroups<PoolPart>,
    open: Option<(GroupId, usize)>,
    result: Option<u64>,
}

#[derive(Clone, Debug)]
enum Message {
    Invite(GroupId, Arc<Drawn>),
    Notice(GroupId, Notice<()>),
    Pool(GroupId, PoolMessage<u64>),
    Computed(GroupId, NodeId),
}

impl Program {
    fn open(&mut self, attempt: u32, graph: &Arc<Drawn>, out: &mut Outgoing<Message>) {
        let opened = self.groups.turn(|groups| {
            let (id, cell) = groups.open(7, false, attempt);
            let part = PoolPart::make(groups.me(), id, graph).expect("it can be made");
            groups.start(&cell, id, graph.clone(), part).expect("it can be sent");
            let last = graph.last(0);
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| part.pool.want(last)));
            groups.carry_out_some(&cell, wanted);
            (id, cell)
        });
        (self.open, self.result) = (Some(opened), None);
        self.post(out);
    }

    fn act(&mut self, id: GroupId, act: impl FnOnce(&mut PoolPart)) {
        self.groups.turn(|groups| {
            let Some(cell) = groups.with_table(|table| table.get(id.name)) else { return };
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| act(part)));
            groups.carry_out_some(&cell, wanted);
        });
    }

    fn computed(&mut self, id: GroupId, node: NodeId) {
        self.act(id, |PoolPart { pool, .. }| match inputs_of(pool, node) {
            Some(inputs) => {
                pool.computed(node, weighed(Drawn::compute(node, inputs.into_iter())));
            }
            None => pool.skipped(node),
        });
    }

    fn post(&mut self, out: &mut Outgoing<Message>) {
        loop {
            let mut done = Vec::new();
            let mut send = |to: Option<Pe>, message| match to {
                Some(to) => out.send(to, message),
                None => out.send_all(message),
            };
            for action in self.groups.take_actions() {
                match action {
                    ActionOf::Invite(to, id, graph) => send(to, Message::Invite(id, graph)),
                    ActionOf::Tell(to, id, notice) => send(to, Message::Notice(id, notice)),
                    ActionOf::Own(id, effects) => done.extend(effects.into_iter().map(|e| (id, e))),
                }
            }
            for (id, effect) in done {
                match effect {
                    PoolEffect::Send(to, message) => out.send(to, Message::Pool(id, message)),
                    PoolEffect::Compute(node) => out.later(Message::Computed(id, node)),
                    _ => unreachable!("the only block is there, and memory has no limit"),
                }
            }
            let Some((id, cell)) = self.open else { return };
            let last =
                |part: &mut PoolPart| part.delivered.get(&part.pool.shape().last(0)).copied();
            self.result = self.groups.turn(|groups| {
                groups.with_life(&cell, |life| life.with(|_, part| last(part))).flatten()
            });
            if self.result.is_none() {
                return;
            }
            self.open = None;
            self.groups.turn(|groups| groups.leave(id.name));
        }
    }
}

impl Actor for Program {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        match message {
            Message::Invite(id, graph) => self.groups.turn(|groups| groups.accept(id, graph)),
            Message::Notice(id, notice) => self.groups.turn(|groups| groups.hear(id, from, notice)),
            Message::Pool(id, message) => {
                self.groups.turn(|groups| groups.receive(id, from, [message]));
            }
            Message::Computed(id, node) => self.computed(id, node),
        }
        self.post(out);
    }

    fn died(&mut self, dead: Pe, root: Pe, out: &mut Outgoing<Message>) {
        self.groups.note_death(dead, root);
        self.post(out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any PE may die, the root too: the next one opens the run again, and joins what goes on. A
    /// program may open it again, too, while others have not heard of its end.
    #[test]
    fn a_run_ends_right_and_is_forgotten_whatever_dies(
        graph in drawn(20, 5),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..5_u32, 0..150_usize, 0..4_usize), 0..5),
        mut again in 0..3_u32,
    ) {
        let expected = graph.expected(1)[0];
        let graph = Arc::new(graph);
        let program =
            |me| Program { groups: PlainGroups::new(me), open: None, result: None };
        let mut job = Job::new((0..graph.pes).map(Pe::new).map(program));
        let (mut root, mut attempt) = (Pe::ROOT, 1);
        job.act(root, |program, out| program.open(attempt, &graph, out));
        job.run_with(&choices, &deaths, |job| {
            if std::mem::replace(&mut root, job.root()) != root {
                attempt += 1;
                job.act(root, |program, out| program.open(attempt, &graph, out));
            }
            let is_over = job.actor(root).is_some_and(|program| program.result == Some(expected));
            if is_over && again > 0 {
                again -= 1;
                job.act(root, |program, out| program.open(attempt, &graph, out));
            }
        });
        prop_assert_eq!(job.actor(root).and_then(|program| program.result), Some(expected));
        let known = |pe| job.actor(pe).map_or(0, |program| program.groups.known().count());
        prop_assert!(job.living().all(|pe| known(pe) == 0));
    }
}
