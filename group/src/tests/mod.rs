//! Groups in a world where messages come in any order, PEs die, stand still, and become the root.
//! `schedules` tries random orders, `search` all orders of small worlds.

mod schedules;
mod search;

use crate::life::{Life, Part};
use crate::name::{GroupId, Opening};
use crate::plain::{ActionOf, Plain, PlainGroups};
use crate::protocol::{Notice, Site};
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
    /// Tells the group from others of the same name.
    number: u32,
    tells_all: bool,
    /// A PE that cannot make its part.
    unable: Option<Pe>,
}

impl Roll {
    fn say(&mut self) {
        let (number, pes, opener) = (self.number_of(self.me), self.invitation.pes, self.opener);
        let hear = |pe: &Pe| self.invitation.tells_all || *pe == opener;
        self.sending.extend((0..pes).map(Pe::new).filter(hear).map(|pe| (pe, number)));
    }

    /// What this PE says in this group.
    fn number_of(&self, pe: Pe) -> u32 {
        100 * self.invitation.number + pe.number()
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
        assert_eq!(self.number_of(from), number);
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
    has_opened: bool,
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
        Program { groups: PlainGroups::new(me), open: None, has_opened: false, ended: None }
    }

    fn open(&mut self, is_owned: bool, attempt: u32, invitation: Invitation) {
        let opened = self.groups.turn(|groups| {
            let (id, cell) = groups.open(DIGEST, is_owned, attempt);
            let part = Roll::make(groups.me(), id, &invitation).expect("it can be made");
            groups.start(&cell, id, invitation, part).expect("it can be sent");
            (id, cell)
        });
        (self.open, self.has_opened, self.ended) = (Some(opened), true, None);
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
                        send(to, Message::Invite(id, invitation));
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

fn inviting(pes: u32, tells_all: bool) -> Invitation {
    Invitation { pes, number: 0, tells_all, unable: None }
}
