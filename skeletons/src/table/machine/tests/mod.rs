//! Tables with the store of real ones, in a world where messages come in any order, and PEs die.
//!
//! All that is asked and changed has a number: so each holder of a share knows in which order it
//! has changed, and that is held against [one map](sequential).

mod sequential;

use self::sequential::{Asked, Key, Map, Value, Verb, check, reply};
use super::super::kind::{Answer, Batch, Change, Rows};
use super::super::open::Head;
use super::super::store::Store;
use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use ultramarine_runtime::wire::{decode, encode};
use ultramarine_testkit::world::{Actor, Outgoing, World};
use ultramarine_topology::{LevelKind, Place};

/// What real tables handle, with the number of the request; entries have those of all that has
/// changed them.
struct Numbered;

impl Kind for Numbered {
    type Batch = (usize, Batch<Key, Value>);
    type Change = (usize, Change<Key, Value>);
    type Answer = Answer<Value>;
    type Entries = (Vec<usize>, Rows<Key, Value>);
}

/// What all PEs have asked, and what they were told.
#[derive(Default)]
struct Log {
    all: Vec<Asked>,
    clock: usize,
    is_lost: bool,
}

impl Log {
    fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }
}

/// A PE, which asks one thing after the other, without waiting for answers.
struct Processor {
    pes: u32,
    copies: usize,
    machine: Machine<Numbered>,
    store: Store<Key, Value>,
    /// By share: what has changed it, in this order.
    orders: BTreeMap<Pe, Vec<usize>>,
    work: VecDeque<(Pe, WorkOf<Numbered>)>,
    to_ask: VecDeque<Ask>,
    /// What is not answered, by its number in the log.
    open: BTreeMap<(Pe, u64), usize>,
    log: Rc<RefCell<Log>>,
}

#[derive(Clone)]
enum Message {
    Told(Vec<u8>),
    Work,
    Ask,
}

impl Processor {
    fn ask(&mut self) {
        let Some((verb, keys)) = self.to_ask.pop_front() else { return };
        let mut log = self.log.borrow_mut();
        let (number, when) = (log.all.len(), log.tick());
        // All keys of a batch are of one share.
        let share = Pe::new(keys[0] % self.pes);
        let row = |(place, key): (usize, &Key)| {
            (share.number() + self.pes * key, (8 * number + place) as Value)
        };
        let rows = keys.iter().enumerate().map(row).collect();
        log.all.push(Asked { by: self.machine.me, share, verb, rows, when, answered: None });
        let asked = self.machine.ask(share, (number, log.all[number].batch()));
        self.open.insert((share, asked), number);
    }

    fn work(&mut self) {
        let Some((share, work)) = self.work.pop_front() else { return };
        let order = self.orders.entry(share).or_default();
        match work {
            Work::Apply(request, (number, batch)) => {
                let (change, answer) = self.store.apply(share, batch).expect("no update fails");
                // Without copies no change is told.
                if change.is_some() || self.copies == 0 {
                    order.push(number);
                }
                let change = change.map(|change| (number, change));
                self.machine.applied(share, request, change, answer);
            }
            Work::Follow((number, change)) => {
                order.push(number);
                self.store.follow(share, change);
            }
            Work::Fill { entries: (all, rows), is_first, is_last } => {
                if is_last {
                    *order = all;
                }
                self.store.fill(share, rows, is_first, is_last);
            }
            Work::Copy(to) => {
                let pieces = self.store.copy(share).into_iter();
                let pieces = pieces.map(|rows| (order.clone(), rows)).collect();
                self.machine.copied(share, to, pieces);
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
                    Effect::Send(to, told) => {
                        out.send(to, Message::Told(encode(&told).expect("it can be encoded")));
                    }
                    Effect::Do(share, work) => {
                        self.work.push_back((share, work));
                        out.later(Message::Work);
                    }
                    Effect::Answered(share, number, answer) => {
                        let number = self.open.remove(&(share, number));
                        let number = number.expect("it was asked, and not answered");
                        let mut log = self.log.borrow_mut();
                        let when = log.tick();
                        log.all[number].answered = Some((when, reply(answer)));
                    }
                    Effect::Lost(_) => self.log.borrow_mut().is_lost = true,
                }
            }
        }
    }

    fn entries(&self, share: Pe) -> Map {
        let entries = self.store.share(share).into_iter().flatten();
        entries.map(|(key, value)| (*key, *value)).collect()
    }

    fn order(&self, share: Pe) -> &[usize] {
        self.orders.get(&share).map_or(&[], |order| order)
    }
}

impl Actor for Processor {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        match message {
            Message::Told(bytes) => {
                self.machine.receive(from, decode(&bytes).expect("what was encoded"));
            }
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

/// A batch: what is asked, and of which keys. The first tells the share, too.
type Ask = (Verb, Vec<Key>);

/// What each PE asks.
type Plans = Vec<Vec<Ask>>;

fn plans() -> impl Strategy<Value = Plans> {
    let ask = (prop::sample::select(&Verb::ALL[..]), prop::collection::vec(0..4_u32, 1..4));
    prop::collection::vec(prop::collection::vec(ask, 0..6), 1..6)
}

fn world(pes: u32, copies: usize, plans: &Plans) -> (World<Processor>, Rc<RefCell<Log>>) {
    let (topology, log) = (topology(pes), Rc::<RefCell<Log>>::default());
    let (name, dead_before) = (String::new(), Vec::new());
    let head = Head { name, copies, memory_max: None, notes_new: false, dead_before };
    let mut world = World::new((0..pes).map(Pe::new).map(|me| Processor {
        pes,
        copies,
        machine: Machine::new(me, topology.clone(), copies, BTreeSet::new()),
        store: Store::new(&head),
        orders: BTreeMap::new(),
        work: VecDeque::new(),
        to_ask: plans.get(me.index()).cloned().unwrap_or_default().into(),
        open: BTreeMap::new(),
        log: log.clone(),
    }));
    for pe in (0..pes).map(Pe::new) {
        world.act(pe, |actor, out| {
            actor.machine.begin();
            actor.to_ask.iter().for_each(|_| out.later(Message::Ask));
        });
    }
    (world, log)
}

/// At the end nothing is open, the shares are as one map would have become, and copies as their
/// owners.
fn check_all(world: &World<Processor>, log: &Log, pes: u32, copies: usize) {
    let living: Vec<Pe> = world.living().collect();
    let actor = |pe: Pe| world.actor(pe).expect("it lives");
    let dead: BTreeSet<Pe> = (0..pes).map(Pe::new).filter(|pe| !living.contains(pe)).collect();
    for pe in &living {
        assert!(actor(*pe).open.is_empty(), "{pe} waits for {:?}", actor(*pe).open);
    }
    for share in (0..pes).map(Pe::new) {
        let holders = holders(&topology(pes), share, copies, &dead);
        let owner = actor(holders[0]);
        let map = check(share, &log.all, owner.order(share));
        assert_eq!(owner.entries(share), map, "of {share} on {}", holders[0]);
        // What a dead PE alone had asked for may be on a copy of which the next owner knows nothing
        // yet: it begins with the first request, and fills all copies then.
        if !owner.machine.shares.contains_key(&share) {
            continue;
        }
        for holder in &holders[1..] {
            // One of which nothing has changed may not have heard of it.
            let role = actor(*holder).machine.shares.get(&share).map(|share| &share.role);
            let follows =
                |role: &_| matches!(role, Role::Copy { of, is_whole: true } if *of == holders[0]);
            assert!(role.is_none_or(follows), "{holder}: {role:?}");
            assert_eq!(actor(*holder).order(share), owner.order(share), "of {share} on {holder}");
            assert_eq!(actor(*holder).entries(share), map, "of {share} on {holder}");
        }
    }
}

/// A loss is found when something is asked.
fn ask_all_shares(world: &mut World<Processor>, pes: u32) {
    let first = world.living().next().expect("one lives");
    world.act(first, |actor, out| {
        for share in 0..pes {
            actor.to_ask.push_back((Verb::Len, vec![share]));
            out.later(Message::Ask);
        }
    });
}

/// Where a PE begins late, it may come after the news of the death.
#[test]
fn what_a_dead_pe_has_asked_is_not_done_again() {
    let [owner, asker, copy] = [0, 1, 2].map(Pe::new);
    let mut machine = Machine::<Numbered>::new(copy, topology(3), 1, BTreeSet::new());
    machine.died(asker);
    machine.begin();
    let request = Request { by: asker, number: 0, answered_before: 0 };
    let rows: Rows<_, _> = [(0, 1)].into_iter().collect();
    let (entries, last) =
        ((Vec::new(), Rows::new(Vec::new(), Vec::new())), Some((0, AppliedRequests::default())));
    let (change, answer) = ((0, Change::Inserted(rows.clone())), Answer::Inserted(vec![1]));
    for (from, message) in [
        (asker, MessageOf::Ask(request, (0, Batch::Insert(rows)))),
        (owner, MessageOf::Fill { entries, is_first: true, last }),
        (owner, MessageOf::Change { index: 1, request, change, answer }),
    ] {
        machine.receive(from, (owner, message));
    }
    machine.died(owner);
    let effects = machine.take_effects();
    let applies = |effect: &_| matches!(effect, Effect::Do(_, Work::Apply(..)));
    assert!(!effects.iter().any(applies));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Do(_, Work::Follow(_)))));
}

proptest! {
    // As many cases as the environment variable `PROPTEST_CASES` says, 256 by default.

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
        prop_assert!(!log.borrow().is_lost);
        check_all(&world, &log.borrow(), pes, copies);
    }

    /// If copies are made anew between deaths, as many may die as are not needed.
    #[test]
    fn deaths_one_after_another_lose_nothing(
        pes in 3..7_u32,
        copies in 1..3_usize,
        plans in plans(),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        dying in Just((0..7).collect::<Vec<u32>>()).prop_shuffle(),
    ) {
        let (mut world, log) = world(pes, copies, &plans);
        for pe in dying.into_iter().filter(|pe| *pe < pes).take(pes as usize - 2) {
            world.kill(Pe::new(pe), |_| 0);
            world.run(&choices, &[]);
            prop_assert!(!log.borrow().is_lost);
        }
        ask_all_shares(&mut world, pes);
        world.run(&choices, &[]);
        prop_assert!(!log.borrow().is_lost);
        check_all(&world, &log.borrow(), pes, copies);
    }

    /// Whatever dies: what is lost is said, and otherwise nothing is.
    #[test]
    fn what_is_lost_is_said(
        pes in 2..7_u32,
        copies in 0..3_usize,
        plans in plans(),
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..8_u32, 0..150_usize, 0..5_usize), 0..6),
    ) {
        let (mut world, log) = world(pes, copies, &plans);
        world.run(&choices, &deaths);
        ask_all_shares(&mut world, pes);
        world.run(&choices, &[]);
        if log.borrow().is_lost {
            prop_assert!(pes as usize - world.living().count() > copies);
        } else {
            check_all(&world, &log.borrow(), pes, copies);
        }
    }
}
