//! A stencil in supersteps: a rank on each PE, in a ring. In each superstep it computes, sends its
//! value to both neighbours, and takes part in a sum of all. Each PE's part of the run is the
//! [machine](ultramarine_skeletons::bsp::machine) of real ones.

use super::graph::BEGINS_NS;
use super::groups::{SimulatedGroups, SimulatedPart, encoded};
use super::{Activity, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use ultramarine_group::{GroupId, Opening, Part, Plain, Site};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::wire;
use ultramarine_skeletons::bsp::machine::{
    Effect, JobOf, Kind, Letter, Machine, MessageOf, Next, Saving, Step as RankStep, Told, Trouble,
    Work,
};
use ultramarine_topology::{Pe, Topology};

/// What is noted when a rank takes its second step, its last one, when a PE sends something that is
/// no output, when the program begins anew on the first PE, and when it has the outputs.
pub(crate) const SECOND: &str = "second";
pub(crate) const LAST: &str = "last";
pub(crate) const SENT: &str = "sent";
pub(crate) const RESTORED: &str = "restored";
pub(crate) const OUTPUTS: &str = "outputs";

/// What the ranks do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) ranks: u32,
    pub(crate) supersteps: u64,
    pub(crate) saving: Saving,
    /// How long a rank computes in a superstep, in nanoseconds.
    pub(crate) step_ns: u64,
    /// It does not travel: all PEs of a simulation share it.
    #[serde(skip)]
    topology: Option<Arc<Topology>>,
}

impl Plan {
    /// What is left of a value after this many steps: it and both neighbours' are added up.
    fn value(steps: u64) -> u64 {
        (0..steps).fold(1u64, |value, _| value.wrapping_mul(3))
    }

    /// A rank's step.
    fn step(&self, superstep: u64, job: JobOf<Stencil>) -> RankStep<Stencil> {
        let JobOf::<Stencil> { rank, state, letters, results, .. } = job;
        let heard = letters.iter().map(|letter| letter.content);
        let value = heard.fold(state, u64::wrapping_add);
        let took = std::time::Duration::ZERO;
        if superstep + 1 == self.supersteps {
            let sum = results.into_iter().flatten().fold(0, u64::wrapping_add);
            let next = Next::Ended(value.wrapping_add(sum));
            return RankStep { next, letters: Vec::new(), offered: Vec::new(), took };
        }
        let neighbours = [rank + 1, rank + self.ranks - 1].map(|to| to % self.ranks);
        let letter = |to| Letter { from: rank, to, content: value };
        let letters = neighbours.map(letter).to_vec();
        RankStep { next: Next::Awake(value), letters, offered: vec![((), value)], took }
    }
}

/// What a run handles here.
pub(crate) struct Stencil;

/// Why a run has failed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Failure(String);

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Failure(trouble.to_string())
    }
}

/// A value, with what was sent to its rank, and the sum.
type Saved = (u64, Vec<Letter<u64>>, Vec<Option<u64>>);

impl Kind for Stencil {
    type State = u64;
    type Content = u64;
    type Saved = Saved;
    type Output = u64;
    type Value = u64;
    type Operation = ();
    type Error = Failure;

    fn bytes(_: &Self::Saved) -> usize {
        0
    }

    fn digest((): &()) -> u64 {
        0
    }

    fn is_scan((): &()) -> bool {
        false
    }

    fn combine((): &(), left: &u64, right: &u64) -> u64 {
        left.wrapping_add(*right)
    }
}

enum Task {
    Step(Work, JobOf<Stencil>),
    Restore(Work, u32, Option<Saved>),
}

/// One PE's part of the run.
pub(crate) struct StencilPart {
    machine: Machine<Stencil>,
    plan: Plan,
    tasks: VecDeque<Task>,
}

impl Part for StencilPart {
    type Invitation = Plan;
    type Message = Told<Stencil>;
    type Effects = Vec<Effect<Stencil>>;
    type Error = Failure;

    fn begin(&mut self) {
        self.machine.begin();
    }

    fn receive(&mut self, from: Pe, told: Told<Stencil>, _: bool) {
        self.machine.receive(from, told);
    }

    fn died(&mut self, dead: Pe) {
        self.machine.died(dead);
    }

    fn renew(&mut self, opening: Opening) {
        self.machine.move_home(opening.by);
    }

    fn take_effects(&mut self) -> Vec<Effect<Stencil>> {
        drop(self.machine.take_waste());
        self.machine.take_effects()
    }
}

impl Plain for StencilPart {
    fn make(me: Pe, id: GroupId, plan: &Plan) -> Result<Self, Failure> {
        let missing = || Failure("the hierarchy is not there".to_owned());
        let topology = plan.topology.clone().ok_or_else(missing)?;
        let machine = Machine::new(me, plan.ranks, topology, plan.saving, id.opening.by);
        Ok(StencilPart { machine, plan: plan.clone(), tasks: VecDeque::new() })
    }
}

impl SimulatedPart for StencilPart {
    type Shared = Arc<Topology>;

    fn unpack(plan: &mut Plan, topology: &Arc<Topology>) {
        plan.topology = Some(topology.clone());
    }

    fn carry_out(
        groups: &SimulatedGroups<Self>,
        cx: &mut TaskContext<'_>,
        id: GroupId,
        effects: Vec<Effect<Stencil>>,
    ) {
        let mut tasks = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send(to, told) => {
                    if !matches!(told.1, MessageOf::Outputs(_)) {
                        cx.note(SENT);
                    }
                    SimulatedGroups::<Self>::send(cx, to, id, told);
                }
                Effect::Run(work, jobs) => {
                    tasks.extend(jobs.into_iter().map(|job| Task::Step(work, job)));
                }
                Effect::Restore(work, ranks) => {
                    let task = |(rank, saved)| Task::Restore(work, rank, saved);
                    tasks.extend(ranks.into_iter().map(task));
                    cx.note(RESTORED);
                }
                Effect::End(outputs) => {
                    cx.wake_main(outputs.into_values().fold(0, u64::wrapping_add));
                }
                // The sum that the program waits for does not come: the run is an error.
                Effect::Fail(_) | Effect::Lost(_) | Effect::Weighed(_) => {}
                Effect::Look(..)
                | Effect::Load(..)
                | Effect::Store(..)
                | Effect::Prune(..)
                | Effect::Discard(_) => {
                    unreachable!("there is no directory")
                }
            }
        }
        let (count, place) = (tasks.len(), SpawnPlace::At(cx.pe));
        if count > 0 {
            groups.act(cx, id, |part| part.tasks.extend(tasks));
        }
        (0..count).for_each(|_| cx.spawn(encoded(&id), SpawnMode { is_supervised: false, place }));
    }
}

/// See the [module](self). The value is the sum of all outputs.
pub(crate) struct StencilRun {
    groups: Arc<SimulatedGroups<StencilPart>>,
    plan: Plan,
}

impl StencilRun {
    pub(crate) fn new(mut plan: Plan, topology: &Arc<Topology>) -> Self {
        let groups = Arc::new(SimulatedGroups::new(topology.pes(), topology.clone()));
        plan.topology = Some(topology.clone());
        StencilRun { groups, plan }
    }

    /// A run of this many ranks.
    pub(crate) fn plan(ranks: u32, supersteps: u64, saving: Saving, step_ns: u64) -> Plan {
        Plan { ranks, supersteps, saving, step_ns, topology: None }
    }
}

impl Workload for StencilRun {
    fn main(&self) -> Box<dyn Activity> {
        let (groups, plan) = (self.groups.clone(), self.plan.clone());
        Box::new(Main { groups, plan, is_awake: false, is_open: false })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let id = wire::decode(&body.few).ok()?;
        let (groups, compute_ns) = (self.groups.clone(), Some(self.plan.step_ns));
        Some(Box::new(RankTask { groups, id, compute_ns }))
    }

    fn receive(&self, cx: &mut TaskContext<'_>, body: &Bytes) -> bool {
        self.groups.receive(cx, body)
    }

    fn died(&self, cx: &mut TaskContext<'_>, dead: Pe) {
        self.groups.died(cx, dead);
    }

    fn expected(&self) -> u64 {
        let (ranks, last) = (u64::from(self.plan.ranks), self.plan.supersteps - 1);
        let sum = last.checked_sub(1).map_or(0, |before| ranks.wrapping_mul(Plan::value(before)));
        ranks.wrapping_mul(Plan::value(last).wrapping_add(sum))
    }
}

/// It opens the run, and has its outputs.
struct Main {
    groups: Arc<SimulatedGroups<StencilPart>>,
    plan: Plan,
    is_awake: bool,
    is_open: bool,
}

impl Main {
    fn open(&self, cx: &mut TaskContext<'_>) {
        // The next root has a greater number.
        let attempt = 1 + cx.pe.number();
        self.groups.turn(cx, |groups| {
            let (id, cell) = groups.open(1, false, attempt);
            let part = StencilPart::make(groups.me(), id, &self.plan).ok()?;
            groups.start(&cell, id, self.plan.clone(), part).ok()
        });
    }
}

impl Activity for Main {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !std::mem::replace(&mut self.is_awake, true) && cx.pe == Pe::ROOT {
            return Step::Sleep(BEGINS_NS);
        }
        if !std::mem::replace(&mut self.is_open, true) {
            self.open(cx);
        }
        let Some(sum) = cx.heard else { return Step::Listen };
        cx.note(OUTPUTS);
        Step::End(sum, None)
    }
}

/// It does the next thing that is to be done for a rank of its PE.
struct RankTask {
    groups: Arc<SimulatedGroups<StencilPart>>,
    id: GroupId,
    compute_ns: Option<u64>,
}

impl Activity for RankTask {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if let Some(ns) = self.compute_ns.take() {
            return Step::Compute(ns);
        }
        let mut noted = None;
        self.groups.act(cx, self.id, |StencilPart { machine, plan, tasks }| {
            match tasks.pop_front() {
                Some(Task::Step(work, job)) => {
                    noted = match work.superstep {
                        1 => Some(SECOND),
                        superstep if superstep + 1 == plan.supersteps => Some(LAST),
                        _ => None,
                    };
                    let rank = job.rank;
                    if work.is_saved {
                        let saved = (job.state, job.letters.clone(), job.results.clone());
                        let back = (!job.is_stepping).then_some(job.state);
                        machine.saved(work, rank, saved, back);
                    }
                    if job.is_stepping {
                        machine.stepped(work, rank, plan.step(work.superstep, job));
                    }
                }
                Some(Task::Restore(work, rank, saved)) => {
                    let (state, letters, results) =
                        saved.unwrap_or_else(|| (1, Vec::new(), Vec::new()));
                    machine.restored(work, rank, state, letters, results);
                }
                None => {}
            }
        });
        noted.into_iter().for_each(|what| cx.note(what));
        Step::End(0, None)
    }
}
