//! Groups in random schedules: messages in any order, deaths, stopped PEs, roots that change.

use crate::life::{Life, Part};
use crate::name::{GroupId, Opening};
use crate::plain::{ActionOf, Plain, PlainGroups};
use crate::protocol::{Notice, Site};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use ultramarine_testkit::world::{Actor, Outgoing, World};
use ultramarine_topology::Pe;

/// Each part says its PE's number to the PE that has opened the group, or to all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Roll {
    me: Pe,
    opener: Pe,
    invitation: Invitation,
    dead: BTreeSet<Pe>,
    said: BTreeMap<Pe, u32>,
    sending: Vec<(Pe, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Invitation {
    pes: u32,
    tells_all: bool,
    /// A PE that cannot make its part.
    unable: Option<Pe>,
}

impl Roll {
    fn say(&mut self) {
        let (number, pes, opener) = (self.me.number(), self.invitation.pes, self.opener);
        let hear = |pe: &Pe| self.invitation.tells_all || *pe == opener;
        self.sending.extend((0..pes).map(Pe::new).filter(hear).map(|pe| (pe, number)));
    }

    fn is_complete(&self) -> bool {
        let is_there = |pe| self.said.contains_key(&pe) || self.dead.contains(&pe);
        (0..self.invitation.pes).map(Pe::new).all(is_there)
    }
}

impl Part for Roll {
    type Invitation = Invitation;
    type Message = u32;
    type Effects = Vec<(Pe, u32)>;
    type Error = Pe;

    fn begin(&mut self) {
        self.say();
    }

    fn receive(&mut self, from: Pe, number: u32, _: bool) {
        assert_eq!(from.number(), number);
        self.said.insert(from, number);
    }

    fn died(&mut self, dead: Pe) {
        self.dead.insert(dead);
    }

    fn renew(&mut self, opening: Opening) {
        self.opener = opening.by;
        self.say();
    }

    fn take_effects(&mut self) -> Vec<(Pe, u32)> {
        std::mem::take(&mut self.sending)
    }
}

impl Plain for Roll {
    fn make(me: Pe, id: GroupId, invitation: &Invitation) -> Result<Self, Pe> {
        let (dead, said, sending) = Default::default();
        let (opener, invitation) = (id.opening.by, *invitation);
        let part = Roll { me, opener, invitation, dead, said, sending };
        if invitation.unable == Some(me) { Err(me) } else { Ok(part) }
    }
}

/// A PE whose program opens one group, and closes it when its part is complete or has failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Program {
    groups: PlainGroups<Roll>,
    open: Option<(GroupId, usize)>,
    ended: Option<Result<(), Pe>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Message {
    Invite(GroupId, Invitation),
    Notice(GroupId, Notice<Pe>),
    Number(GroupId, u32),
}

const DIGEST: u128 = 7;

impl Program {
    fn new(me: Pe) -> Self {
        Program { groups: PlainGroups::new(me), open: None, ended: None }
    }

    fn open(&mut self, is_owned: bool, attempt: u32, invitation: Invitation) {
        let opened = self.groups.turn(|groups| {
            let (id, cell) = groups.open(DIGEST, is_owned, attempt);
            let part = Roll::make(groups.me(), id, &invitation).expect("it can be made");
            groups.start(&cell, id, invitation, part).expect("it can be sent");
            (id, cell)
        });
        self.open = Some(opened);
    }

    fn leave(&mut self) {
        let (id, _) = self.open.take().expect("it is open");
        self.groups.turn(|groups| groups.leave(id.name));
    }

    fn post(&mut self, out: &mut Outgoing<Message>) {
        let mut send = |to: Option<Pe>, message| match to {
            Some(to) => out.send(to, message),
            None => out.send_all(message),
        };
        loop {
            for action in self.groups.take_actions() {
                match action {
                    ActionOf::Own(id, numbers) => numbers
                        .into_iter()
                        .for_each(|(to, number)| send(Some(to), Message::Number(id, number))),
                    ActionOf::Invite(to, id, invitation) => {
                        send(to, Message::Invite(id, invitation))
                    }
                    ActionOf::Tell(to, id, notice) => send(to, Message::Notice(id, notice)),
                }
            }
            let Some((id, cell)) = self.open.filter(|_| self.ended.is_none()) else { return };
            let ended = |life: &mut Life<Roll>| {
                let failure = life.failure_of(id).copied();
                let is_complete = life.with(|_, part| part.is_complete()).unwrap_or_default();
                failure.map(Err).or(is_complete.then_some(Ok(())))
            };
            self.ended = self.groups.turn(|groups| groups.with_life(&cell, ended));
            if self.ended.is_none() {
                return;
            }
            self.leave();
        }
    }
}

impl Actor for Program {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        self.groups.turn(|groups| match message {
            Message::Invite(id, invitation) => groups.accept(id, invitation),
            Message::Notice(id, notice) => groups.hear(id, from, notice),
            Message::Number(id, number) => groups.receive(id, from, [number]),
        });
        self.post(out);
    }

    fn died(&mut self, dead: Pe, root: Pe, out: &mut Outgoing<Message>) {
        self.groups.note_death(dead, root);
        self.post(out);
    }
}

fn world(pes: u32) -> World<Program> {
    World::new((0..pes).map(Pe::new).map(Program::new))
}

fn open(world: &mut World<Program>, by: Pe, is_owned: bool, attempt: u32, invitation: Invitation) {
    world.act(by, |program, out| {
        program.open(is_owned, attempt, invitation);
        program.post(out);
    });
}

fn ended(world: &World<Program>, pe: Pe) -> Option<Result<(), Pe>> {
    world.actor(pe)?.ended
}

/// What the PEs that live still keep of groups.
fn kept(world: &World<Program>) -> Vec<(Pe, usize)> {
    let known = |pe| (pe, world.actor(pe).map_or(0, |program| program.groups.known().count()));
    world.living().map(known).filter(|(_, known)| *known > 0).collect()
}

const STEPS_MAX: usize = 20_000;

/// A PE that dies, after this number of steps, and how much of what it has sent arrives.
type Death = (u32, usize, usize);

/// Lets things come until nothing is left, with these deaths.
fn run(world: &mut World<Program>, choices: &[usize], deaths: &[Death]) {
    let mut choices = choices.iter().cycle();
    let last = deaths.iter().map(|(_, at, _)| *at).max().unwrap_or(0);
    for at in 0..STEPS_MAX {
        for (pe, _, keeps) in deaths.iter().filter(|(_, when, _)| *when == at) {
            world.kill(Pe::new(*pe), |sent| keeps % (sent + 1));
        }
        if !world.step(*choices.next().expect("there are choices")) && at > last {
            return;
        }
    }
    panic!("it does not end");
}

fn inviting(pes: u32, tells_all: bool) -> Invitation {
    Invitation { pes, tells_all, unable: None }
}

fn choices() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..1000_usize, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// In any order, whatever others die: the group is complete as long as the PE lives that has
    /// opened it, and in the end no PE keeps anything of it.
    #[test]
    fn a_group_is_complete_and_then_closed_whatever_dies(
        pes in 1..9_u32,
        is_owned: bool,
        tells_all: bool,
        choices in choices(),
        deaths in prop::collection::vec((1..9_u32, 0..60_usize, 0..5_usize), 0..5),
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, is_owned, 1, inviting(pes, tells_all));
        run(&mut world, &choices, &deaths);
        prop_assert_eq!(ended(&world, Pe::ROOT), Some(Ok(())));
        prop_assert_eq!(kept(&world), []);
    }

    /// The next root opens it again, and the end of the former group does not disturb it.
    #[test]
    fn the_next_root_joins_it(
        pes in 2..7_u32,
        tells_all: bool,
        choices in choices(),
        death in (0..40_usize, 0..5_usize),
        other in (1..7_u32, 0..60_usize, 0..5_usize),
        when in 0..60_usize,
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(pes, tells_all));
        run(&mut world, &choices, &[(0, death.0, death.1)]);
        let root = world.root();
        prop_assert!(root != Pe::ROOT);
        open(&mut world, root, false, 2, inviting(pes, tells_all));
        let other = (other.0, when + other.1, other.2);
        run(&mut world, &choices, &[other].map(|(pe, at, keeps)| {
            (if pe == root.number() { pes } else { pe }, at, keeps)
        }));
        prop_assert_eq!(ended(&world, root), Some(Ok(())));
        prop_assert_eq!(kept(&world), []);
    }

    /// Where the root has died, and no other has opened the group again: if any PE has been
    /// invited, its part tells all others something, and they ask it.
    #[test]
    fn what_goes_on_without_a_root_reaches_all(
        pes in 2..7_u32,
        choices in choices(),
        death in (0..20_usize, 0..5_usize),
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(pes, true));
        run(&mut world, &choices, &[(0, death.0, death.1)]);
        let known = world.living().filter_map(|pe| Some(world.actor(pe)?.groups.known()));
        let begun: Vec<bool> = known.flatten().map(Life::<Roll>::has_begun).collect();
        let has_any_begun = begun.contains(&true);
        prop_assert!(begun.iter().all(|has_begun| *has_begun == has_any_begun), "{:?}", begun);
    }

    /// What is owned ends with its owner.
    #[test]
    fn an_owned_group_is_closed_when_its_owner_dies(
        pes in 2..7_u32,
        tells_all: bool,
        choices in choices(),
        at in 0..40_usize,
        keeps in 0..5_usize,
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::new(1), true, 1, inviting(pes, tells_all));
        run(&mut world, &choices, &[(1, at, keeps)]);
        prop_assert_eq!(kept(&world), []);
    }

    /// A PE that cannot make its part: the group fails, unless that PE dies.
    #[test]
    fn a_part_that_cannot_be_made_fails_the_group(
        pes in 2..7_u32,
        unable in 1..7_u32,
        tells_all: bool,
        choices in choices(),
        deaths in prop::collection::vec((1..7_u32, 0..60_usize, 0..5_usize), 0..2),
    ) {
        let mut world = world(pes);
        let invitation = Invitation { unable: Some(Pe::new(unable)), ..inviting(pes, tells_all) };
        open(&mut world, Pe::ROOT, false, 1, invitation);
        run(&mut world, &choices, &deaths);
        let is_dead = unable >= pes || world.actor(Pe::new(unable)).is_none();
        match ended(&world, Pe::ROOT) {
            Some(Err(failed)) => prop_assert_eq!(failed, Pe::new(unable)),
            ended => prop_assert!(is_dead && ended == Some(Ok(())), "{:?}", ended),
        }
        prop_assert_eq!(kept(&world), []);
    }
}

/// A stopped PE hears of the group when all is over.
#[test]
fn what_comes_after_the_end_is_dropped() {
    let mut world = world(3);
    open(&mut world, Pe::ROOT, false, 1, inviting(3, false));
    world.stop(Pe::new(1));
    world.settle(&[0], STEPS_MAX);
    assert_eq!(ended(&world, Pe::ROOT), None, "it waits for PE 1");
    world.act(Pe::ROOT, |program, out| {
        program.leave();
        program.post(out);
    });
    world.settle(&[0], STEPS_MAX);
    world.resume(Pe::new(1));
    world.settle(&[0], STEPS_MAX);
    assert_eq!(kept(&world), []);
}
