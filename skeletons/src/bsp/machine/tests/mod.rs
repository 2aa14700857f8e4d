//! Runs as groups, in a world where messages come in any order, PEs die, and become the root.

mod disk;
mod program;
mod schedules;

use self::disk::Disk;
use self::program::{Toy, first, hash, step};
use super::*;
use std::ops::Range;
use ultramarine_group::{ActionOf, GroupId, Notice, Opening, Part, Plain, PlainGroups, Site};
use ultramarine_testkit::world::{Actor, Outgoing, World};

/// What makes a PE take part.
#[derive(Clone)]
struct Plan {
    topology: Arc<Topology>,
    ranks: u32,
    saving: Saving,
    /// Whether ranks may move.
    is_balanced: bool,
    /// How many other things are done at least before something is in the directory.
    slowness: u32,
    /// Of this number of stores one fails; 0: none.
    failing: u64,
    /// Copies do not fit into messages.
    are_too_long: bool,
    disk: Disk,
}

/// A machine, and what it has said.
struct Member {
    machine: Machine<Toy>,
    /// What the program got in the end.
    ended: Option<BTreeMap<u32, u64>>,
    failed: Option<Trouble>,
    /// The supersteps whose results were lost.
    lost: Vec<u64>,
    /// The supersteps from which ranks were restored.
    restored: Vec<u64>,
    /// How often ranks moved.
    moves: usize,
}

impl Part for Member {
    type Invitation = Plan;
    type Message = Told<Toy>;
    type Effects = Vec<Effect<Toy>>;
    type Error = Trouble;

    fn begin(&mut self) {
        self.machine.begin();
    }

    fn receive(&mut self, from: Pe, told: Told<Toy>, _: bool) {
        self.machine.receive(from, told);
    }

    fn died(&mut self, dead: Pe) {
        self.machine.died(dead);
    }

    fn renew(&mut self, opening: Opening) {
        self.machine.move_home(opening.by);
    }

    fn take_effects(&mut self) -> Vec<Effect<Toy>> {
        drop(self.machine.take_waste());
        let mut effects = self.machine.take_effects();
        for effect in &effects {
            match effect {
                Effect::Fail(trouble) => self.failed = Some(trouble.clone()),
                Effect::Lost(superstep) => self.lost.push(*superstep),
                Effect::End(outputs) => self.ended = Some(outputs.clone()),
                Effect::Weighed(Some([was, _])) => self.moves += usize::from(*was > 0),
                Effect::Restore(work, _) => self.restored.push(work.superstep),
                _ => {}
            }
        }
        let is_told =
            |effect: &_| matches!(effect, Effect::Fail(_) | Effect::Lost(_) | Effect::End(_));
        effects.retain(|effect| !is_told(effect));
        effects
    }
}

impl Plain for Member {
    fn make(me: Pe, id: GroupId, plan: &Plan) -> Result<Self, Trouble> {
        let Plan { topology, ranks, saving, .. } = plan.clone();
        let machine = Machine::new(me, ranks, topology, saving, id.opening.by);
        let (lost, restored) = (Vec::new(), Vec::new());
        Ok(Member { machine, ended: None, failed: None, lost, restored, moves: 0 })
    }
}

/// A PE. If it is the root, its program waits for the outputs.
struct Processor {
    me: Pe,
    groups: PlainGroups<Member>,
    plan: Plan,
    open: Option<(GroupId, usize)>,
    /// The number of messages to other machines.
    sent: u64,
}

#[derive(Clone)]
enum Message {
    Invite(GroupId, Plan),
    Notice(GroupId, Notice<Trouble>),
    Told(GroupId, Told<Toy>),
    Job(GroupId, Work, JobOf<Toy>),
    Restore(GroupId, Work, u32, Option<JobOf<Toy>>),
    Look(GroupId, Work, Range<u32>),
    Load(GroupId, Work, Key, Range<u32>),
    Store(GroupId, Work, Key, BTreeMap<u32, Copy<JobOf<Toy>, u64>>, u32),
}

impl Processor {
    fn open(&mut self, attempt: u32, out: &mut Outgoing<Message>) {
        let plan = self.plan.clone();
        self.open = Some(self.groups.turn(|groups| {
            let (id, cell) = groups.open(7, false, attempt);
            let part = Member::make(groups.me(), id, &plan).expect("it can be made");
            groups.start(&cell, id, plan, part).expect("it can be sent");
            (id, cell)
        }));
        self.post(out);
    }

    fn act(&mut self, id: GroupId, act: impl FnOnce(&mut Member)) {
        self.groups.turn(|groups| {
            let Some(cell) = groups.with_table(|table| table.get(id.name)) else { return };
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| act(part)));
            groups.carry_out_some(&cell, wanted);
        });
    }

    /// Looks at this PE's part of the run that its program has opened.
    fn look<T>(&mut self, look: impl FnOnce(&Member) -> T) -> Option<T> {
        let (_, cell) = self.open?;
        self.groups.turn(|groups| groups.with_life(&cell, |life| life.with(|_, part| look(part))))
    }

    /// The superstep of the last checkpoint that this PE knows to be whole.
    fn whole(&mut self) -> Option<u64> {
        self.groups.turn(|groups| {
            let (.., cell) = groups.with_table(|table| table.all()).pop()?;
            let look = |_, part: &mut Member| part.machine.progress.all_kept;
            let key = groups.with_life(&cell, |life| life.with(look)).flatten()?;
            Some(key.superstep)
        })
    }

    fn post(&mut self, out: &mut Outgoing<Message>) {
        for action in self.groups.take_actions() {
            let (to, message) = match action {
                ActionOf::Invite(to, id, plan) => (to, Message::Invite(id, plan)),
                ActionOf::Tell(to, id, notice) => (to, Message::Notice(id, notice)),
                ActionOf::Own(id, effects) => {
                    self.carry_out(id, effects, out);
                    continue;
                }
            };
            match to {
                Some(to) => out.send(to, message),
                None => out.send_all(message),
            }
        }
    }

    fn carry_out(&mut self, id: GroupId, effects: Vec<Effect<Toy>>, out: &mut Outgoing<Message>) {
        for effect in effects {
            match effect {
                Effect::Send(_, (_, MessageOf::Kept { .. })) if self.plan.are_too_long => {
                    self.act(id, |Member { machine, .. }| _ = machine.cannot_keep());
                }
                Effect::Send(to, told) => {
                    self.sent += 1;
                    out.send(to, Message::Told(id, told));
                }
                Effect::Run(work, jobs) => {
                    jobs.into_iter().for_each(|job| out.later(Message::Job(id, work, job)));
                }
                Effect::Restore(work, ranks) => ranks.into_iter().for_each(|(rank, saved)| {
                    out.later(Message::Restore(id, work, rank, saved));
                }),
                Effect::Look(work, ranks) => out.later(Message::Look(id, work, ranks)),
                Effect::Load(work, key, ranks) => out.later(Message::Load(id, work, key, ranks)),
                Effect::Store(work, key, copies) => {
                    out.later(Message::Store(id, work, key, copies, self.plan.slowness));
                }
                Effect::Prune(key, generation) => {
                    self.plan.disk.prune(key, generation, self.plan.ranks);
                }
                Effect::Discard(key) => self.plan.disk.discard(key, self.plan.ranks),
                _ => {}
            }
        }
    }
}

impl Actor for Processor {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outgoing<Message>) {
        let is_balanced = self.plan.is_balanced;
        match message {
            Message::Invite(id, plan) => self.groups.turn(|groups| groups.accept(id, plan)),
            Message::Notice(id, notice) => {
                self.groups.turn(|groups| groups.hear(id, from, notice));
            }
            Message::Told(id, told) => self.groups.turn(|groups| groups.receive(id, from, [told])),
            Message::Job(id, work, job) => self.act(id, |Member { machine, .. }| {
                let rank = job.rank;
                machine.set_weighing_due(is_balanced);
                if work.is_saved {
                    let back = (!job.is_stepping).then_some(job.state);
                    machine.saved(work, rank, job.clone(), back);
                }
                if job.is_stepping {
                    machine.stepped(work, rank, step(machine.ranks, work, job));
                }
            }),
            Message::Look(id, work, ranks) => {
                let (keys, own) = (self.plan.disk.keys(), self.plan.disk.whole(ranks));
                let generation = keys.last().map_or(0, |key| key.generation);
                self.act(id, |Member { machine, .. }| machine.found(work, generation, own));
            }
            Message::Load(id, work, key, ranks) => {
                let copies = self.plan.disk.load(key, ranks);
                self.act(id, |Member { machine, .. }| machine.loaded(work, key, copies));
            }
            Message::Store(id, work, key, copies, left @ 1..) => {
                out.later(Message::Store(id, work, key, copies, left - 1));
            }
            Message::Store(id, work, key, copies, 0) => {
                let fails = hash((self.me.number(), key)).checked_rem(self.plan.failing) == Some(0);
                if !fails {
                    self.plan.disk.store(key, copies);
                }
                self.act(id, |Member { machine, .. }| machine.stored(work, key, !fails));
            }
            Message::Restore(id, work, rank, saved) => {
                self.act(id, |Member { machine, .. }| {
                    let (state, letters, results) = saved.map_or_else(
                        || (first(rank), Vec::new(), Vec::new()),
                        |Job { state, letters, results, .. }| (state, letters, results),
                    );
                    machine.restored(work, rank, state, letters, results);
                });
            }
        }
        self.post(out);
    }

    fn died(&mut self, dead: Pe, root: Pe, out: &mut Outgoing<Message>) {
        self.groups.note_death(dead, root);
        self.post(out);
        if root == self.me && self.open.is_none() {
            self.open(2 + root.number(), out);
        }
    }
}

/// A job whose root has begun the run.
fn world(plan: &Plan) -> World<Processor> {
    let mut world = World::new((0..plan.topology.pes()).map(Pe::new).map(|me| Processor {
        me,
        groups: PlainGroups::new(me),
        plan: plan.clone(),
        open: None,
        sent: 0,
    }));
    world.act(Pe::ROOT, |root, out| root.open(1, out));
    world
}

fn plan(pes: u32, ranks: u32, saving: Saving) -> Plan {
    let topology = Arc::new(Topology::flat(pes));
    let (is_balanced, are_too_long, disk) = (false, false, Disk::default());
    Plan { topology, ranks, saving, is_balanced, slowness: 0, failing: 0, are_too_long, disk }
}
