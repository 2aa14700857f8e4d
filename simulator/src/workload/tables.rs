//! A distributed table: each PE updates entries, one after the other, and the main task reads all
//! until each living PE has done so as often as it should. Each PE's part of the table is the
//! [machine](ultramarine_skeletons::table::machine) of real ones.

use super::graph::BEGINS_NS;
use super::groups::{SimulatedGroups, SimulatedPart, encoded};
use super::{Activity, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::{replace, take};
use std::sync::Arc;
use ultramarine_group::{GroupId, Opening, Part, Plain, Site};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::wire;
use ultramarine_skeletons::table::machine::{Effect, Kind, Machine, Told, Work, WorkOf};
use ultramarine_topology::{Pe, Topology};

/// What is noted when the main task has seen all updates, and when it hears that the table is lost.
const SEEN: &str = "all updates";
const LOST: &str = "a lost table";

/// The most entries that a copy is filled with at once: few, so that there are pieces.
const PIECE_ENTRIES_MAX: usize = 3;

/// What the PEs do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) copies: usize,
    /// The number of updates of each PE.
    pub(crate) updates: u64,
    /// How long it takes to do something with entries, in nanoseconds.
    pub(crate) work_ns: u64,
    /// The PEs that were dead when it was opened.
    pub(crate) dead_before: Vec<Pe>,
    /// It does not travel: all PEs of a simulation share it.
    #[serde(skip)]
    pub(crate) topology: Option<Arc<Topology>>,
}

/// How often each PE has updated a share.
type Counts = BTreeMap<Pe, u64>;

#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Batch {
    /// The entry of the PE that asks is one more.
    Add,
    Read,
}

/// What a table handles here.
pub(crate) struct Counting;

impl Kind for Counting {
    type Batch = Batch;
    type Change = (Pe, u64);
    type Answer = Counts;
    type Entries = Counts;
}

/// Why there is no table.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Failure(String);

/// What parts tell each other.
#[derive(Serialize, Deserialize)]
pub(crate) enum Letter {
    Told(Told<Counting>),
    /// The table is lost: whether it may be.
    Lost(bool),
}

/// What is to be done outside of a part.
pub(crate) struct Todo {
    sends: Vec<(Pe, Letter)>,
    works: usize,
}

/// One PE's part of the table.
pub(crate) struct TablePart {
    me: Pe,
    pes: u32,
    machine: Machine<Counting>,
    plan: Plan,
    /// By share.
    entries: BTreeMap<Pe, Counts>,
    aside: BTreeMap<Pe, Counts>,
    works: VecDeque<(Pe, WorkOf<Counting>)>,
    /// The number of updates that it has asked for.
    asked: u64,
    /// What the main task reads, and has read.
    reading: BTreeSet<(Pe, u64)>,
    read: Counts,
    lost: Option<bool>,
}

impl TablePart {
    /// Asks for the next update, if there is one.
    fn update(&mut self) {
        if self.asked < self.plan.updates {
            let share = (u64::from(self.me.number()) + 7 * self.asked) % u64::from(self.pes);
            self.asked += 1;
            self.machine.ask(Pe::new(share as u32), Batch::Add);
        }
    }

    /// Does the next thing with entries.
    fn work(&mut self) {
        let Some((share, work)) = self.works.pop_front() else { return };
        let entries = self.entries.entry(share).or_default();
        match work {
            Work::Apply(request, Batch::Read) => {
                self.machine.applied(share, request, None, entries.clone());
            }
            Work::Apply(request, Batch::Add) => {
                let count = entries.entry(request.by).or_default();
                *count += 1;
                let change = (self.plan.copies > 0).then_some((request.by, *count));
                self.machine.applied(share, request, change, Counts::new());
            }
            Work::Follow((by, count)) => _ = entries.insert(by, count),
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
                let all: Vec<(Pe, u64)> = entries.iter().map(|(by, count)| (*by, *count)).collect();
                let pieces =
                    all.chunks(PIECE_ENTRIES_MAX).map(|some| some.iter().copied().collect());
                let mut pieces: Vec<Counts> = pieces.collect();
                pieces.resize(pieces.len().max(1), Counts::new());
                self.machine.copied(share, to, pieces);
            }
        }
    }

    /// Reads all shares, again and again. Returns whether all is right, once that is known: each PE
    /// has updated as often as it should, and the dead ones not more often; or the table may be
    /// lost.
    fn look(&mut self) -> Option<bool> {
        if self.lost.is_some() || !self.reading.is_empty() {
            return self.lost;
        }
        let updates = self.plan.updates;
        let count = |pe: &Pe| self.read.get(pe).copied().unwrap_or(0);
        if self.read.values().any(|count| *count > updates) {
            return Some(false);
        }
        let mut living = (0..self.pes).map(Pe::new).filter(|pe| !self.machine.has_heard_of(*pe));
        if living.all(|pe| count(&pe) == updates) {
            return Some(true);
        }
        self.read.clear();
        for share in (0..self.pes).map(Pe::new) {
            self.reading.insert((share, self.machine.ask(share, Batch::Read)));
        }
        None
    }

    fn dead(&self) -> usize {
        (0..self.pes).map(Pe::new).filter(|pe| self.machine.has_heard_of(*pe)).count()
    }
}

impl Part for TablePart {
    type Invitation = Plan;
    type Message = Letter;
    type Effects = Todo;
    type Error = Failure;

    fn begin(&mut self) {
        self.machine.begin();
        self.update();
    }

    fn receive(&mut self, from: Pe, letter: Letter, _: bool) {
        match letter {
            Letter::Told(told) => self.machine.receive(from, told),
            Letter::Lost(may_be) => self.lost = Some(may_be && self.lost.unwrap_or(true)),
        }
    }

    fn died(&mut self, dead: Pe) {
        self.machine.died(dead);
    }

    fn renew(&mut self, _: Opening) {}

    fn take_effects(&mut self) -> Todo {
        let (mut sends, mut works, mut is_lost) = (Vec::new(), 0, false);
        loop {
            drop(self.machine.take_waste());
            let effects = self.machine.take_effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    Effect::Send(to, told) => sends.push((to, Letter::Told(told))),
                    Effect::Do(share, work) => {
                        self.works.push_back((share, work));
                        works += 1;
                    }
                    Effect::Answered(share, number, counts) => {
                        if self.reading.remove(&(share, number)) {
                            for (by, count) in counts {
                                *self.read.entry(by).or_default() += count;
                            }
                        } else {
                            self.update();
                        }
                    }
                    Effect::Lost(_) => is_lost = true,
                }
            }
        }
        if is_lost && self.lost.is_none() {
            let may_be = self.dead() > self.plan.copies;
            self.lost = Some(may_be);
            let others = (0..self.pes).map(Pe::new).filter(|pe| *pe != self.me);
            sends.extend(others.map(|pe| (pe, Letter::Lost(may_be))));
        }
        Todo { sends, works }
    }
}

impl Plain for TablePart {
    fn make(me: Pe, _: GroupId, plan: &Plan) -> Result<Self, Failure> {
        let missing = || Failure("the hierarchy is not there".to_owned());
        let topology = plan.topology.clone().ok_or_else(missing)?;
        let dead = plan.dead_before.iter().copied().collect();
        Ok(TablePart {
            me,
            pes: topology.pes(),
            machine: Machine::new(me, topology, plan.copies, dead),
            plan: plan.clone(),
            entries: BTreeMap::new(),
            aside: BTreeMap::new(),
            works: VecDeque::new(),
            asked: 0,
            reading: BTreeSet::new(),
            read: Counts::new(),
            lost: None,
        })
    }
}

impl SimulatedPart for TablePart {
    type Shared = Arc<Topology>;

    fn unpack(plan: &mut Plan, topology: &Arc<Topology>) {
        plan.topology = Some(topology.clone());
    }

    fn carry_out(_: &SimulatedGroups<Self>, cx: &mut TaskContext<'_>, id: GroupId, todo: Todo) {
        for (to, letter) in todo.sends {
            SimulatedGroups::<Self>::send(cx, to, id, letter);
        }
        let mode = SpawnMode { is_supervised: false, place: SpawnPlace::At(cx.pe) };
        (0..todo.works).for_each(|_| cx.spawn(encoded(&id), mode));
    }
}

/// See the [module](self). The value is 1 if all is right.
pub(crate) struct TableRun {
    groups: Arc<SimulatedGroups<TablePart>>,
    plan: Plan,
}

impl TableRun {
    pub(crate) fn new(plan: Plan, topology: &Arc<Topology>) -> Self {
        let groups = Arc::new(SimulatedGroups::new(topology.pes(), topology.clone()));
        TableRun { groups, plan: Plan { topology: Some(topology.clone()), ..plan } }
    }
}

impl Workload for TableRun {
    fn main(&self) -> Box<dyn Activity> {
        let (groups, plan) = (self.groups.clone(), self.plan.clone());
        Box::new(Main { groups, plan, is_awake: false, open: None })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let id = wire::decode(&body.few).ok()?;
        let (groups, compute_ns) = (self.groups.clone(), Some(self.plan.work_ns));
        Some(Box::new(WorkTask { groups, id, compute_ns }))
    }

    fn receive(&self, cx: &mut TaskContext<'_>, body: &Bytes) -> bool {
        self.groups.receive(cx, body)
    }

    fn died(&self, cx: &mut TaskContext<'_>, dead: Pe) {
        self.groups.died(cx, dead);
    }

    fn expected(&self) -> u64 {
        1
    }
}

/// It opens the table, and reads it until all is there.
struct Main {
    groups: Arc<SimulatedGroups<TablePart>>,
    plan: Plan,
    is_awake: bool,
    open: Option<GroupId>,
}

impl Main {
    fn open(&self, cx: &mut TaskContext<'_>) -> Option<GroupId> {
        // The next root has a greater number.
        let attempt = 1 + cx.pe.number();
        self.groups.turn(cx, |groups| {
            let (id, cell) = groups.open(1, false, attempt);
            let mut plan = Plan { dead_before: groups.dead(), ..self.plan.clone() };
            // An earlier root may have opened it.
            let mut known = |part: &mut TablePart| plan = part.plan.clone();
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| known(part)));
            groups.carry_out_some(&cell, wanted);
            let part = TablePart::make(groups.me(), id, &plan).ok()?;
            groups.start(&cell, id, plan, part).ok()?;
            Some(id)
        })
    }
}

impl Activity for Main {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !replace(&mut self.is_awake, true) && cx.pe == Pe::ROOT {
            return Step::Sleep(BEGINS_NS);
        }
        if self.open.is_none() {
            self.open = self.open(cx);
        }
        let (mut is_right, mut is_lost) = (None, false);
        if let Some(id) = self.open {
            self.groups
                .act(cx, id, |part| (is_right, is_lost) = (part.look(), part.lost.is_some()));
        }
        let Some(is_right) = is_right else { return Step::Sleep(self.plan.work_ns) };
        cx.note(if is_lost { LOST } else { SEEN });
        Step::End(is_right.into(), None)
    }
}

/// It does the next thing with the entries of its PE.
struct WorkTask {
    groups: Arc<SimulatedGroups<TablePart>>,
    id: GroupId,
    compute_ns: Option<u64>,
}

impl Activity for WorkTask {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if let Some(ns) = self.compute_ns.take() {
            return Step::Compute(ns);
        }
        self.groups.act(cx, self.id, TablePart::work);
        Step::End(0, None)
    }
}
