//! Stands for the workers of a PE: they take tasks from its queues and run them, without threads.

use super::program::{self, GAVE_UP, Program, SpawnMode, SpawnPlace, TaskKind, TaskSpec};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::engine::{Fill, Outgoing, OwnTask};
use ultramarine_runtime::protocol::{
    Fish, Message, Need, Outcome, Parcel, Pool, Radii, Shelf, TaskId,
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

/// What workers leave for the next turn.
pub(super) type Outbox = crossbeam_queue::SegQueue<Outgoing>;

/// A future whose task is on another PE.
struct SimulatedFuture {
    task: LocalTask,
    workers: Weak<Mutex<Workers>>,
}

impl Fill for SimulatedFuture {
    fn note_departure(&self, _: u64, _: u64) -> bool {
        true
    }

    fn fill(&self, outcome: Outcome) {
        let workers = self.workers.upgrade();
        let workers = workers.as_ref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        workers.into_iter().for_each(|mut workers| workers.settle_away(self, outcome.clone()));
    }

    fn is_decoded(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}

/// A task that has not left its PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTask {
    slot: FutureSlot,
    pub(super) spec: TaskSpec,
    mode: SpawnMode,
}

/// A task in the pool.
#[derive(Debug)]
pub(super) enum QueuedTask {
    Local(LocalTask),
    /// It is in bytes.
    Guest(Parcel),
}

/// The tasks of one radius. The engine gives them to thieves, workers take them to run.
#[derive(Clone, Default)]
pub(super) struct SharedShelf(Arc<Mutex<VecDeque<QueuedTask>>>);

impl SharedShelf {
    fn tasks(&self) -> MutexGuard<'_, VecDeque<QueuedTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf for SharedShelf {
    type Task = QueuedTask;
    fn take_youngest(&mut self) -> Option<QueuedTask> {
        self.tasks().pop_back()
    }
    fn take_oldest(&mut self) -> Option<QueuedTask> {
        self.tasks().pop_front()
    }
    fn len(&self) -> usize {
        self.tasks().len()
    }
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
    /// Another thread packs a task for the thief that sent this FISH.
    Pack(Fish, LocalTask),
    /// A worker will have computed for this time, in nanoseconds.
    Compute(u64, u64),
    /// The main task has ended with this value.
    MainEnded(u64),
    /// The process ends at once.
    Die,
    /// Something is not as it must be.
    Fault(String),
}

/// The workers of a PE, and the tasks that they have started.
pub(super) struct Workers {
    me: Pe,
    program: Arc<Program>,
    pes: u32,
    pub(super) radii: Radii,
    outbox: Arc<Outbox>,
    /// What futures hold to find their way back.
    own: Weak<Mutex<Workers>>,
    threads: usize,
    busy: usize,
    ready: VecDeque<WorkerItem>,
    pool: Pool<SharedShelf>,
    running: BTreeMap<u64, Running>,
    last_running: u64,
    pub(super) is_ending: bool,
    pub(super) effects: Vec<Effect>,
    pub(super) started: u64,
    pub(super) orphans: u64,
    pub(super) given_up: u32,
    /// How many others were, by mistake.
    pub(super) wronged: u32,
}

impl Workers {
    pub(super) fn new(
        me: Pe,
        radii: Radii,
        threads: usize,
        program: Arc<Program>,
        pes: u32,
        (shelves, outbox): (&[SharedShelf], Arc<Outbox>),
    ) -> Arc<Mutex<Workers>> {
        Arc::new_cyclic(|own| {
            Mutex::new(Workers {
                me,
                program,
                pes,
                radii,
                outbox,
                own: own.clone(),
                threads,
                busy: 0,
                ready: VecDeque::new(),
                pool: Pool::new(shelves.iter().cloned()),
                running: BTreeMap::new(),
                last_running: 0,
                is_ending: false,
                effects: Vec::new(),
                started: 0,
                orphans: 0,
                given_up: 0,
                wronged: 0,
            })
        })
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
    pub(super) fn dispatch(&mut self, is_dead: impl Fn(Pe) -> bool) {
        while self.busy < self.threads && !self.is_ending {
            let work = self.ready.pop_front();
            let work = work.or_else(|| self.pool.select_local().map(WorkerItem::Start));
            let number = match work {
                None => return,
                Some(WorkerItem::Resume(number)) => number,
                Some(WorkerItem::Start(task)) => match self.start(task, &is_dead) {
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

    fn start(&mut self, task: QueuedTask, is_dead: impl Fn(Pe) -> bool) -> Option<u64> {
        let (origin, spec) = match task {
            QueuedTask::Local(task) => (TaskOrigin::Local(task.slot), task.spec),
            QueuedTask::Guest(parcel) if is_dead(parcel.task.home) => {
                self.orphans += 1;
                return None;
            }
            QueuedTask::Guest(parcel) => {
                let Some(spec) = TaskSpec::decode(&parcel.body) else {
                    self.fault(format!("the task {:?} arrives damaged", parcel.task));
                    return None;
                };
                (TaskOrigin::Guest(parcel.task), spec)
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
        let task = LocalTask { slot, spec, mode };
        match mode.place {
            SpawnPlace::Within(radius) => {
                let shelf = self.radii.shelf(radius);
                self.pool.shelf(shelf).tasks().push_back(QueuedTask::Local(task));
            }
            SpawnPlace::At(number) => {
                let to = Pe::new(number % self.pes);
                if to == self.me {
                    self.ready.push_back(WorkerItem::Start(QueuedTask::Local(task)));
                } else {
                    self.outbox.push(Outgoing::Task(to, self.depart(task)));
                }
            }
        }
    }

    /// Packs a task of this PE that leaves it.
    pub(super) fn depart(&self, task: LocalTask) -> OwnTask {
        let LocalTask { spec, mode, .. } = task;
        let radius = match mode.place {
            SpawnPlace::Within(radius) => radius,
            SpawnPlace::At(_) => Distance::ZERO,
        };
        let future = SimulatedFuture { task, workers: self.own.clone() };
        let (future, body) = (Arc::new(future), spec.encode());
        OwnTask { future, radius, is_supervised: mode.is_supervised, body }
    }

    /// A task has been packed for the thief that sent this FISH.
    pub(super) fn packed(&mut self, fish: Fish, task: LocalTask) {
        self.outbox.push(Outgoing::Stolen(fish, self.depart(task)));
    }

    /// A stolen task arrives.
    pub(super) fn accept(&mut self, parcel: Parcel) {
        let shelf = self.radii.shelf(parcel.radius);
        self.pool.shelf(shelf).tasks().push_back(QueuedTask::Guest(parcel));
    }

    /// A task arrives that was placed here.
    pub(super) fn place(&mut self, task: QueuedTask) {
        self.ready.push_back(WorkerItem::Start(task));
    }

    pub(super) fn fault(&mut self, what: String) {
        self.effects.push(Effect::Fault(what));
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
                let outcome = Ok(program::encode_value(value));
                let result = Message::Result { future: task.future, outcome };
                self.outbox.push(Outgoing::Message(task.home, result));
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

    /// A child on another PE has ended.
    fn settle_away(&mut self, future: &SimulatedFuture, outcome: Outcome) {
        let LocalTask { slot, spec, mode } = future.task;
        match outcome {
            Ok(value) => match program::decode_value(&value) {
                Some(value) => self.settle(slot, value),
                None => self.fault(format!("the value of {spec:?} arrives damaged")),
            },
            Err(TaskError::ShuttingDown) if self.is_ending => {}
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
                self.fault(format!("{mode:?} {spec:?} on {} ends with: {error}", self.me));
            }
        }
    }
}
