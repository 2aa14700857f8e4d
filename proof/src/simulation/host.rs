//! Stands for the rest of a PE: its pool, its workers, its futures. It works as the runtime's
//! executor does, but without threads.

use super::dice::Dice;
use super::program::{GAVE_UP, Program, SpawnMode, SpawnPlace, TaskKind, TaskSpec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{
    Host, Message, Need, Outcome, Parcel, Pool, Radii, TaskId, Version,
};
use ultramarine_topology::{Distance, Pe};

/// A task that was lost more often than this may be taken for poison, when hardly any PE is left.
const LOSSES_MIN: usize = 3;

/// A future on the PE that spawned its task: which child of which running task it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutureSlot {
    parent: u64,
    child: usize,
}

/// A task in the pool.
#[derive(Clone, Debug)]
enum QueuedTask {
    /// It has not left this PE yet.
    Local { slot: FutureSlot, spec: TaskSpec, mode: SpawnMode },
    /// It is in bytes.
    Guest(Parcel),
}

/// Something for a worker to do.
#[derive(Debug)]
enum WorkerItem {
    Start(QueuedTask),
    Resume(u64),
}

/// Who waits for the end of a running task.
#[derive(Clone, Copy, Debug)]
enum TaskOrigin {
    /// It is the main task.
    Main,
    Local(FutureSlot),
    Guest(TaskId),
}

/// A task that has been started.
#[derive(Debug)]
struct Running {
    origin: TaskOrigin,
    spec: TaskSpec,
    stages: Vec<Vec<(TaskSpec, SpawnMode)>>,
    stage: usize,
    /// The values of all children so far.
    values: Vec<Option<u64>>,
}

/// What is to be done elsewhere.
#[derive(Debug)]
pub(super) enum Effect {
    /// A message goes out.
    Send(Pe, Message),
    /// A task of this PE is to be placed.
    SpawnPlace(Pe, Parcel),
    /// A worker will have computed for so long, in nanoseconds.
    Compute(u64, u64),
    /// The main task has ended with this value.
    MainEnded(u64),
    /// The process ends at once.
    Die,
    /// Something is not as it must be.
    Fault(String),
}

/// The rest of a PE.
#[derive(Debug)]
pub(super) struct SimulatedHost {
    me: Pe,
    program: Arc<Program>,
    pes: u32,
    radii: Radii,
    dice: Dice,
    threads: usize,
    busy: usize,
    ready: VecDeque<WorkerItem>,
    pool: Pool<VecDeque<QueuedTask>>,
    running: BTreeMap<u64, Running>,
    last_running: u64,
    /// Futures whose tasks are elsewhere.
    futures: BTreeMap<u64, (FutureSlot, TaskSpec, SpawnMode)>,
    last_future: u64,
    /// The PEs that this one knows to be dead.
    pub(super) dead: BTreeSet<Pe>,
    pub(super) is_ending: bool,
    pub(super) effects: Vec<Effect>,
    pub(super) started: u64,
    pub(super) orphans: u64,
    pub(super) given_up: u32,
    /// How many others were, by mistake.
    pub(super) wronged: u32,
}

impl SimulatedHost {
    pub(super) fn new(
        me: Pe,
        pes: u32,
        radii: Radii,
        threads: usize,
        program: Arc<Program>,
        dice: Dice,
    ) -> Self {
        SimulatedHost {
            me,
            program,
            pes,
            dice,
            threads,
            busy: 0,
            ready: VecDeque::new(),
            pool: Pool::new((0..radii.count()).map(|_| VecDeque::new())),
            radii,
            running: BTreeMap::new(),
            last_running: 0,
            futures: BTreeMap::new(),
            last_future: 0,
            dead: BTreeSet::new(),
            is_ending: false,
            effects: Vec::new(),
            started: 0,
            orphans: 0,
            given_up: 0,
            wronged: 0,
        }
    }

    /// Starts the main task.
    pub(super) fn begin(&mut self, children: Vec<(TaskSpec, SpawnMode)>) {
        let (spec, stages) = (TaskSpec::good(0, 0), vec![children]);
        let main = Running { origin: TaskOrigin::Main, spec, stages, stage: 0, values: Vec::new() };
        self.running.insert(0, main);
        self.go_on(0);
    }

    pub(super) fn need(&self) -> Need {
        match self.busy {
            0 => Need::Idle,
            busy if busy < self.threads => Need::Starving,
            _ => Need::Ahead,
        }
    }

    /// Gives work to workers that have none.
    pub(super) fn dispatch(&mut self) {
        while self.busy < self.threads && !self.is_ending {
            let work = self.ready.pop_front();
            let work = work.or_else(|| self.pool.select_local().map(WorkerItem::Start));
            let number = match work {
                None => return,
                Some(WorkerItem::Resume(number)) => number,
                Some(WorkerItem::Start(queued_task)) => match self.start(queued_task) {
                    Some(number) => number,
                    None => continue,
                },
            };
            let running = &self.running[&number];
            let duration = running.spec.compute_ns(&self.program, running.stage);
            self.busy += 1;
            self.effects.push(Effect::Compute(number, duration));
        }
    }

    fn start(&mut self, queued_task: QueuedTask) -> Option<u64> {
        let (origin, spec) = match queued_task {
            QueuedTask::Local { slot, spec, .. } => (TaskOrigin::Local(slot), spec),
            QueuedTask::Guest(parcel) if self.dead.contains(&parcel.task.home) => {
                self.orphans += 1;
                return None;
            }
            QueuedTask::Guest(parcel) => {
                (TaskOrigin::Guest(parcel.task), TaskSpec::decode(&parcel.body))
            }
        };
        self.started += 1;
        self.last_running += 1;
        let stages = spec.stages(&self.program);
        let running = Running { origin, spec, stages, stage: 0, values: Vec::new() };
        self.running.insert(self.last_running, running);
        Some(self.last_running)
    }

    /// A worker has computed.
    pub(super) fn computed(&mut self, number: u64) {
        self.busy -= 1;
        let running = &self.running[&number];
        if running.spec.kind == TaskKind::Poison {
            self.effects.push(Effect::Die);
        } else if running.stage == running.stages.len() {
            self.finish(number);
        } else {
            self.go_on(number);
        }
    }

    /// Spawns the next children of a task.
    fn go_on(&mut self, number: u64) {
        let Some(running) = self.running.get_mut(&number) else { return };
        let children = running.stages[running.stage].clone();
        running.stage += 1;
        let first = running.values.len();
        running.values.resize(first + children.len(), None);
        if children.is_empty() {
            return self.resume(number);
        }
        for ((spec, mode), child) in children.into_iter().zip(first..) {
            self.spawn(FutureSlot { parent: number, child }, spec, mode);
        }
    }

    fn resume(&mut self, number: u64) {
        let running = &self.running[&number];
        if let TaskOrigin::Main = running.origin {
            let value = running.spec.combine(running.values.iter().copied().flatten());
            self.effects.push(Effect::MainEnded(value));
        } else {
            self.ready.push_back(WorkerItem::Resume(number));
        }
    }

    fn spawn(&mut self, slot: FutureSlot, spec: TaskSpec, mode: SpawnMode) {
        let queued_task = QueuedTask::Local { slot, spec, mode };
        match mode.place {
            SpawnPlace::Within(radius) => {
                let shelf = self.radii.shelf(radius);
                self.pool.shelf(shelf).push_back(queued_task);
            }
            SpawnPlace::At(number) => {
                let to = Pe::new(number % self.pes);
                if to == self.me {
                    self.ready.push_back(WorkerItem::Start(queued_task));
                } else if let Some(parcel) = self.depart(queued_task) {
                    self.effects.push(Effect::SpawnPlace(to, parcel));
                }
            }
        }
    }

    /// Makes bytes of a task. `None` if nobody waits for it.
    fn depart(&mut self, queued_task: QueuedTask) -> Option<Parcel> {
        match queued_task {
            QueuedTask::Guest(parcel) if self.dead.contains(&parcel.task.home) => {
                self.orphans += 1;
                None
            }
            QueuedTask::Guest(parcel) => Some(parcel),
            QueuedTask::Local { slot, spec, mode } => {
                self.last_future += 1;
                self.futures.insert(self.last_future, (slot, spec, mode));
                let radius = match mode.place {
                    SpawnPlace::Within(radius) => radius,
                    SpawnPlace::At(_) => Distance::ZERO,
                };
                Some(Parcel {
                    task: TaskId { home: self.me, future: self.last_future },
                    radius,
                    supervised: mode.is_supervised,
                    version: Version::default(),
                    body: spec.encode(),
                })
            }
        }
    }

    fn finish(&mut self, number: u64) {
        let Some(running) = self.running.remove(&number) else { return };
        let value = running.spec.combine(running.values.iter().copied().flatten());
        match running.origin {
            TaskOrigin::Main => {}
            TaskOrigin::Local(slot) => self.settle(slot, value),
            // No PE would read it any more.
            TaskOrigin::Guest(_) if self.is_ending => {}
            TaskOrigin::Guest(task) => {
                let outcome = Ok(Bytes::from(value.to_le_bytes().to_vec()));
                self.effects.push(Effect::Send(
                    task.home,
                    Message::Result { future: task.future, outcome },
                ));
            }
        }
    }

    /// A child has ended.
    fn settle(&mut self, slot: FutureSlot, value: u64) {
        // Its parent may have been dropped at the end of the job.
        let Some(parent) = self.running.get_mut(&slot.parent) else { return };
        parent.values[slot.child] = Some(value);
        if parent.values.iter().all(Option::is_some) {
            self.resume(slot.parent);
        }
    }

    fn settle_away(
        &mut self,
        (slot, spec, mode): (FutureSlot, TaskSpec, SpawnMode),
        outcome: Outcome,
    ) {
        match outcome {
            Ok(Bytes { few: bytes, .. }) => {
                let bytes = <[u8; 8]>::try_from(&*bytes).expect("a value is one number");
                self.settle(slot, u64::from_le_bytes(bytes));
            }
            Err(TaskError::Lost { .. }) if !mode.is_supervised => {
                // Its parent tries again, but not on a PE that may be dead for good.
                self.spawn(
                    slot,
                    spec,
                    SpawnMode { place: SpawnPlace::Within(Distance::ONE), ..mode },
                );
            }
            Err(TaskError::GaveUp { .. }) if spec.kind == TaskKind::Poison => {
                self.given_up += 1;
                self.settle(slot, GAVE_UP);
            }
            // No PE was left to run it alone: it might have been poison. Its parent tries again.
            Err(TaskError::GaveUp { with, .. }) if with.len() > LOSSES_MIN => {
                self.wronged += 1;
                self.spawn(
                    slot,
                    spec,
                    SpawnMode { place: SpawnPlace::Within(Distance::ONE), ..mode },
                );
            }
            Err(error) => {
                let fault = format!("{mode:?} {spec:?} on {} ends with: {error}", self.me);
                self.effects.push(Effect::Fault(fault));
            }
        }
    }
}

impl Host for SimulatedHost {
    fn random(&mut self) -> u64 {
        self.dice.next()
    }
    fn send(&mut self, to: Pe, message: Message) {
        self.effects.push(Effect::Send(to, message));
    }
    fn queued(&self) -> usize {
        self.pool.len()
    }
    fn take(&mut self, at_least: Distance) -> Option<Parcel> {
        let nearest = self.radii.shelf(at_least);
        loop {
            let queued_task = self.pool.select_remote(nearest)?;
            if let Some(parcel) = self.depart(queued_task) {
                return Some(parcel);
            }
        }
    }
    fn accept(&mut self, parcel: Parcel) {
        let shelf = self.radii.shelf(parcel.radius);
        self.pool.shelf(shelf).push_back(QueuedTask::Guest(parcel));
    }
    fn place(&mut self, parcel: Parcel) {
        self.ready.push_back(WorkerItem::Start(QueuedTask::Guest(parcel)));
    }
    fn fill(&mut self, future: u64, outcome: Outcome) {
        // A second result finds no future any more.
        if let Some(slot) = self.futures.remove(&future) {
            self.settle_away(slot, outcome);
        }
    }
    fn name(&self, future: u64) -> String {
        format!("task {future}")
    }
    fn deliver(&mut self, _: Bytes) {
        self.effects.push(Effect::Fault("no program here is_verbose anything".to_owned()));
    }
    fn failed(&mut self, pe: Pe, reason: String) {
        self.effects.push(Effect::Fault(format!("{pe} gives up: {reason}")));
    }
    fn shut_down(&mut self) {
        self.is_ending = true;
        self.futures.clear();
    }
}
