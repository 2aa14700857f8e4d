//! Tables in a world where messages come in any order, and PEs die.

use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use ultramarine_testkit::world::{Actor, Outgoing, World};
use ultramarine_topology::{LevelKind, Place};

type Key = u32;

/// What may be asked of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    /// Adds 1 at a place that no other has. (If it were done twice, the sum would show it.)
    Add(Key, u32),
    /// Has the key if no other has it.
    Claim(Key, u128),
    Get(Key),
}

impl Op {
    fn key(self) -> Key {
        match self {
            Op::Add(key, _) | Op::Claim(key, _) | Op::Get(key) => key,
        }
    }

    /// What it adds.
    fn sum(self) -> u128 {
        match self {
            Op::Add(_, place) => 1 << (2 * place),
            _ => 0,
        }
    }
}

struct Toy;

impl Kind for Toy {
    type Batch = Vec<Op>;
    type Change = Vec<(Key, u128)>;
    type Answer = Vec<u128>;
    type Entries = Vec<(Key, u128)>;
}

/// What all PEs have asked, and what they were told.
#[derive(Default)]
struct Log {
    asked: BTreeMap<Key, u128>,
    answered: BTreeMap<Key, u128>,
    claims: BTreeMap<Key, u128>,
    lost: bool,
}

impl Log {
    /// What has been added to a key for certain.
    fn sum(&self, key: Key) -> u128 {
        self.answered.get(&key).copied().unwrap_or(0)
    }
}

/// A PE, which asks one thing after the other, without waiting for answers.
struct Processor {
    pes: u32,
    machine: Machine<Toy>,
    /// By share.
    entries: BTreeMap<Pe, BTreeMap<Key, u128>>,
    aside: BTreeMap<Pe, BTreeMap<Key, u128>>,
    work: VecDeque<(Pe, WorkOf<Toy>)>,
    to_ask: VecDeque<Vec<Op>>,
    /// What is not answered, with what was certain when it was asked.
    open: BTreeMap<(Pe, u64), Vec<(Op, u128)>>,
    log: Rc<RefCell<Log>>,
}

#[derive(Clone)]
enum Message {
    Told(Told<Toy>),
    Work,
    Ask,
}

impl Processor {
    fn ask(&mut self) {
        let Some(batch) = self.to_ask.pop_front() else { return };
        let share = Pe::new(batch[0].key() % self.pes);
        let certain = |op: &Op| {
            let mut log = self.log.borrow_mut();
            *log.asked.entry(op.key()).or_default() += op.sum();
            (*op, log.sum(op.key()))
        };
        let open = batch.iter().map(certain).collect();
        let number = self.machine.ask(share, batch);
        self.open.insert((share, number), open);
    }

    fn work(&mut self) {
        let Some((share, work)) = self.work.pop_front() else { return };
        let entries = self.entries.entry(share).or_default();
        match work {
            Work::Apply(request, batch) => {
                let mut changes = Vec::new();
                let mut apply = |op: Op| {
                    let before = entries.get(&op.key()).copied();
                    let value = match op {
                        Op::Add(..) => before.unwrap_or(0) + op.sum(),
                        Op::Claim(_, by) => before.unwrap_or(by),
                        Op::Get(_) => return before.unwrap_or(0),
                    };
                    if before != Some(value) {
                        entries.insert(op.key(), value);
                        changes.push((op.key(), value));
                    }
                    value
                };
                let answer = batch.into_iter().map(&mut apply).collect();
                let change = (!changes.is_empty()).then_some(changes);
                self.machine.applied(share, request, change, answer);
            }
            Work::Follow(change) => entries.extend(change),
            Work::Fill { entries: some, is_first, is_last } => {
                let aside = self.aside.entry(share).or_default();
                if is_first {
                    aside.clear();
                }
                aside.extend(some);
                if is_last {
                    *entries = take(aside);
                }
            }
            Work::Copy(to) => {
                let all: Vec<_> = entries.iter().map(|(key, value)| (*key, *value)).collect();
                let mut pieces: Vec<_> = all.chunks(2).map(<[_]>::to_vec).collect();
                pieces.resize(pieces.len().max(1), Vec::new());
                self.machine.copied(share, to, pieces);
            }
        }
    }

    fn hear_answer(&mut self, share: Pe, number: u64, answer: &[u128]) {
        let open = self.open.remove(&(share, number)).expect("it was asked, and not answered");
        let mut log = self.log.borrow_mut();
        for ((op, certain), value) in open.into_iter().zip(answer) {
            match op {
                Op::Add(key, _) => {
                    assert_eq!(value & op.sum(), op.sum());
                    *log.answered.entry(key).or_default() |= op.sum();
                }
                Op::Claim(key, _) => {
                    assert_eq!(log.claims.entry(key).or_insert(*value), value);
                }
                Op::Get(key) => {
                    assert_eq!(value & certain, certain, "what was certain of {key} is gone");
                }
            }
        }
    }

    fn post(&mut self, out: &mut Outgoing<Message>) {
        loop {
            let effects = self.machine.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Send(to, told) => out.send(to, Message::Told(told)),
                    Effect::Do(share, work) => {
                        self.work.push_back((share, work));
                        out.later(Message::Work);
                    }
                    Effect::Answered(share, number, answer) => {
                        self.hear_answer(share, number, &answer);
                    }
                    Effect::Lost(_) => self.log.borrow_mut().lost = true,
                }
            }
        }
    }
}

impl Actor for Processor {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        match message {
            Message::Told(told) => self.machine.receive(from, told),
            Message::Work => self.work(),
            Message::Ask => self.ask(),
        }
        self.post(out);
    }

    fn died(&mut self, dead: Pe, _: Pe, out: &mut Outgoing<Message>) {
        self.machine.died(dead);
        self.post(out);
    }
}

/// Hosts of two PEs each.
fn topology(pes: u32) -> Arc<Topology> {
    let place = |pe: u32| Place::from_pairs([(LevelKind::Host, &format!("h{}", pe / 2)[..])]);
    let places: Vec<_> = (0..pes).map(place).collect();
    Arc::new(Topology::new(&places, &vec![1; pes as usize]).expect("a hierarchy"))
}

/// What some PEs ask, in batches: an operation's kind and key.
type Plans = Vec<Vec<Vec<(u8, Key)>>>;

fn plans() -> impl Strategy<Value = Plans> {
    let batch = prop::collection::vec((0..3_u8, 0..4_u32), 1..4);
    prop::collection::vec(prop::collection::vec(batch, 0..6), 1..6)
}

fn world(pes: u32, copies: usize, plans: &Plans) -> (World<Processor>, Rc<RefCell<Log>>) {
    let (topology, log) = (topology(pes), Rc::<RefCell<Log>>::default());
    let mut place = 0;
    let mut batch = |batch: &Vec<(u8, Key)>| {
        // All keys of a batch are of one share: claimed keys are others than those of sums.
        let first = batch[0].1 % pes;
        let op = |(kind, key): &(u8, Key)| {
            let key = first + pes * (2 * key);
            place += 1;
            match kind {
                0 => Op::Add(key, place % 63),
                1 => Op::Claim(key + pes, u128::from(place)),
                _ => Op::Get(key),
            }
        };
        batch.iter().map(op).collect::<Vec<Op>>()
    };
    let mut world = World::new((0..pes).map(Pe::new).map(|me| {
        let plan = plans.get(me.index()).map_or(&[][..], |plan| &plan[..]);
        Processor {
            pes,
            machine: Machine::new(me, topology.clone(), copies, BTreeSet::new()),
            entries: BTreeMap::new(),
            aside: BTreeMap::new(),
            work: VecDeque::new(),
            to_ask: plan.iter().map(&mut batch).collect(),
            open: BTreeMap::new(),
            log: log.clone(),
        }
    }));
    for pe in (0..pes).map(Pe::new) {
        world.act(pe, |actor, out| {
            actor.machine.begin();
            actor.to_ask.iter().for_each(|_| out.later(Message::Ask));
        });
    }
    (world, log)
}

/// At the end nothing is open, each request was done at most once, and if it was answered, once;
/// and copies are as their owners.
fn check(world: &World<Processor>, log: &Log, pes: u32, copies: usize) {
    let living: Vec<Pe> = world.living().collect();
    let actor = |pe: Pe| world.actor(pe).expect("it lives");
    let dead: BTreeSet<Pe> = (0..pes).map(Pe::new).filter(|pe| !living.contains(pe)).collect();
    for pe in &living {
        assert!(actor(*pe).open.is_empty(), "{pe} waits for {:?}", actor(*pe).open);
    }
    for share in (0..pes).map(Pe::new) {
        let holders = holders(&topology(pes), share, copies, &dead);
        let of = |pe: Pe| actor(pe).entries.get(&share).cloned().unwrap_or_default();
        let entries = of(holders[0]);
        // What a dead PE alone had asked for may be on a copy of which the next owner knows nothing
        // yet: it begins with the first request, and fills all copies then.
        if actor(holders[0]).machine.shares.contains_key(&share) {
            for holder in &holders[1..] {
                // One of which nothing has changed may not have heard of it.
                let role = actor(*holder).machine.shares.get(&share).map(|share| &share.role);
                let copy = Role::Copy { of: holders[0], is_whole: true };
                assert!(role.is_none_or(|role| *role == copy), "{holder}: {role:?}");
                assert_eq!(of(*holder), entries, "of {share} on {holder} and {}", holders[0]);
            }
        }
        for (key, value) in &entries {
            if let Some(winner) = log.claims.get(key) {
                assert_eq!(value, winner);
            } else if let Some(asked) = log.asked.get(key)
                && (key / pes).is_multiple_of(2)
            {
                assert_eq!(value & !asked, 0, "{key}: something was done twice");
                assert_eq!(value & log.sum(*key), log.sum(*key), "{key}: something is lost");
            }
        }
        let certain = log.answered.keys().chain(log.claims.keys());
        let mut of_share = certain.filter(|key| **key % pes == share.number());
        assert!(of_share.all(|key| entries.contains_key(key)));
    }
}

/// A loss is found when something is asked.
fn ask_all_shares(world: &mut World<Processor>, pes: u32) {
    let first = world.living().next().expect("one lives");
    world.act(first, |actor, out| {
        for share in 0..pes {
            actor.to_ask.push_back(vec![Op::Get(share)]);
            out.later(Message::Ask);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// As long as fewer die than there are holders.
    #[test]
    fn nothing_is_lost_or_done_twice(
        pes in 1..7_u32,
        copies in 0..3_usize,
        plans in plans(),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..8_u32, 0..150_usize, 0..5_usize), 0..3),
    ) {
        let (mut world, log) = world(pes, copies, &plans);
        world.run(&choices, &deaths[..deaths.len().min(copies)]);
        prop_assert!(!log.borrow().lost);
        check(&world, &log.borrow(), pes, copies);
    }

    /// If copies are made anew between deaths, as many may die as are not needed.
    #[test]
    fn who_dies_one_after_another_takes_nothing_along(
        pes in 3..7_u32,
        plans in plans(),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        dying in Just((0..7).collect::<Vec<u32>>()).prop_shuffle(),
    ) {
        let (mut world, log) = world(pes, 1, &plans);
        for pe in dying.into_iter().filter(|pe| *pe < pes).take(pes as usize - 2) {
            world.kill(Pe::new(pe), |_| 0);
            world.run(&choices, &[]);
            prop_assert!(!log.borrow().lost);
        }
        ask_all_shares(&mut world, pes);
        world.run(&choices, &[]);
        prop_assert!(!log.borrow().lost);
        check(&world, &log.borrow(), pes, 1);
    }

    /// Whatever dies: what is lost is said, and otherwise nothing is.
    #[test]
    fn what_is_lost_is_said(
        pes in 2..7_u32,
        plans in plans(),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..8_u32, 0..150_usize, 0..5_usize), 0..5),
    ) {
        let (mut world, log) = world(pes, 1, &plans);
        world.run(&choices, &deaths);
        ask_all_shares(&mut world, pes);
        world.run(&choices, &[]);
        if !log.borrow().lost {
            check(&world, &log.borrow(), pes, 1);
        }
    }
}
