//! Stands for the workers of a PE: they take tasks from its queues and run them, without threads.

mod messages;

use super::effects::{WorkerCounts, WorkerEffect};
use super::futures::{FutureSlot, LocalTask, SimulatedFuture};
use super::shelf::{QueuedTask, SharedShelf};
use crate::workload::{Activity, GAVE_UP, SpawnMode, SpawnPlace, Step, Workload};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use ultramarine_runtime::array::Array;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::engine::{Outgoing, OwnTask};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Fish, Message, Need, Outcome, Parcel, Pool, Radii, TaskId};
use ultramarine_topology::{Distance, Pe, Topology};

/// A task that was lost more often than this may be taken for poison, when hardly any PE is left.
const LOSSES_MIN: usize = 3;

/// What workers leave for the next turn.
pub(crate) type Outbox = crossbeam_queue::SegQueue<Outgoing>;

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
struct Running {
    origin: TaskOrigin,
    activity: Box<dyn Activity>,
    /// The values of all children so far.
    values: Vec<Option<u64>>,
    /// How many of them have not ended.
    pending: usize,
    /// Whether it waits for them.
    is_waiting: bool,
}

/// How fast a PE is, and what its tasks cost beside what they compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeSpeed {
    /// The number of worker threads.
    pub(crate) threads: usize,
    /// How much longer than usual its tasks compute.
    pub(crate) slowness: f64,
    /// What starting and ending a task costs, in nanoseconds.
    pub(crate) task_ns: u64,
}

/// The workers of a PE, and the tasks that they have started.
pub(crate) struct Workers {
    me: Pe,
    /// The root, as far as this PE knows.
    pub(crate) root: Pe,
    topology: Arc<Topology>,
    workload: Arc<dyn Workload>,
    pub(crate) radii: Radii,
    outbox: Arc<Outbox>,
    /// What futures hold to find their way back.
    own: Weak<Mutex<Workers>>,
    speed: PeSpeed,
    busy: usize,
    /// How many workers have ended a task, or let one wait, and not yet looked for another.
    between_tasks: usize,
    /// Whether the main task keeps a worker at the moment.
    is_main_on_worker: bool,
    ready: VecDeque<WorkerItem>,
    pool: Pool<SharedShelf>,
    running: BTreeMap<u64, Running>,
    last_running: u64,
    /// What starting tasks has cost since one last computed, in nanoseconds.
    debt_ns: u64,
    pub(crate) is_ending: bool,
    /// Deaths of which the program has not heard.
    pub(crate) deaths: Vec<Pe>,
    /// With what a message has woken the main task.
    heard: Option<u64>,
    /// Whether others are asked before a value of the main task counts.
    pub(crate) asks_end: bool,
    /// The value of the main task, while they are asked.
    value: Option<u64>,
    pub(crate) effects: Vec<WorkerEffect>,
    pub(crate) counts: WorkerCounts,
}

/// The main task's number.
const MAIN: u64 = 0;

impl Workers {
    pub(crate) fn new(
        me: Pe,
        topology: &Arc<Topology>,
        speed: PeSpeed,
        workload: Arc<dyn Workload>,
        (shelves, outbox): (&[SharedShelf], Arc<Outbox>),
    ) -> Arc<Mutex<Workers>> {
        Arc::new_cyclic(|own| {
            Mutex::new(Workers {
                me,
                root: Pe::ROOT,
                topology: topology.clone(),
                workload,
                radii: Radii::of(topology),
                outbox,
                own: own.clone(),
                speed,
                busy: 0,
                between_tasks: 0,
                is_main_on_worker: false,
                ready: VecDeque::new(),
                pool: Pool::new(shelves.iter().cloned()),
                running: BTreeMap::new(),
                last_running: MAIN,
                debt_ns: 0,
                is_ending: false,
                deaths: Vec::new(),
                heard: None,
                asks_end: false,
                value: None,
                effects: Vec::new(),
                counts: WorkerCounts::default(),
            })
        })
    }

    /// Starts the main task.
    pub(crate) fn begin(&mut self) {
        let activity = self.workload.main();
        self.running.insert(MAIN, Running::new(TaskOrigin::Main, activity));
        self.resume(MAIN);
    }

    /// Starts the main task anew, on a PE that takes the place of a root.
    pub(crate) fn begin_anew(&mut self) {
        if self.counts.restarts > 0 || self.running.contains_key(&MAIN) {
            return self.fault(format!("{} becomes the root for the second time", self.me));
        }
        self.counts.restarts += 1;
        self.begin();
    }

    /// The value of the main task counts.
    pub(crate) fn end_main(&mut self) {
        self.effects.extend(self.value.take().map(WorkerEffect::MainEnded));
    }

    /// Whether the main task was started anew here.
    pub(crate) fn is_root(&self) -> bool {
        self.counts.restarts > 0
    }

    /// The PE of these workers.
    pub(crate) fn me(&self) -> Pe {
        self.me
    }

    /// A worker between two tasks counts as busy: it takes its turn before it takes the next task.
    pub(crate) fn need(&self) -> Need {
        match self.busy + self.between_tasks {
            0 => Need::Idle,
            busy if busy < self.speed.threads => Need::Starving,
            _ => Need::Ahead,
        }
    }

    /// Whether a worker has ended a task, or let one wait, and not yet looked for another.
    pub(crate) fn is_between_tasks(&self) -> bool {
        self.between_tasks > 0
    }

    /// Whether a worker has nothing to do.
    pub(crate) fn has_free(&self) -> bool {
        self.busy < self.speed.threads
    }

    /// Gives work to workers that have none. Returns whether one has taken something.
    pub(crate) fn dispatch(&mut self, is_dead: impl Fn(Pe) -> bool) -> bool {
        let mut has_taken = false;
        for dead in std::mem::take(&mut self.deaths) {
            self.act(|workload, cx| workload.died(cx, dead));
        }
        while self.has_free() && !self.is_ending {
            let work = self.ready.pop_front();
            let work = work.or_else(|| self.pool.select_local().map(WorkerItem::Start));
            let number = match work {
                None => break,
                Some(WorkerItem::Resume(number)) => number,
                Some(WorkerItem::Start(task)) => match self.start(task, &is_dead) {
                    Some(number) => number,
                    None => continue,
                },
            };
            has_taken = true;
            self.is_main_on_worker |= number == MAIN;
            self.busy += 1;
            self.between_tasks = self.between_tasks.saturating_sub(1);
            self.go_on(number);
        }
        has_taken
    }

    /// After [`dispatch`](Self::dispatch) has found nothing: whether a worker begins to poll.
    pub(crate) fn take_ran_dry(&mut self) -> bool {
        std::mem::take(&mut self.between_tasks) > 0
    }

    fn start(&mut self, task: QueuedTask, is_dead: impl Fn(Pe) -> bool) -> Option<u64> {
        let (origin, body) = match task {
            QueuedTask::Local(task) => (TaskOrigin::Local(task.slot), task.body),
            QueuedTask::Guest(parcel) if is_dead(parcel.task.home) => {
                self.counts.orphans += 1;
                return None;
            }
            QueuedTask::Guest(parcel) => (TaskOrigin::Guest(parcel.task), parcel.body),
        };
        let Some(activity) = self.workload.start(&body) else {
            self.fault(format!("the task of {origin:?} is damaged"));
            return None;
        };
        self.counts.started += 1;
        self.debt_ns += self.speed.task_ns;
        self.last_running += 1;
        self.running.insert(self.last_running, Running::new(origin, activity));
        Some(self.last_running)
    }

    /// Lets a task go on until it computes, waits or ends.
    pub(crate) fn go_on(&mut self, number: u64) {
        let topology = self.topology.clone();
        loop {
            let mut cx = self.context(&topology);
            let Some(running) = self.running.get_mut(&number) else { return };
            cx.values = &running.values;
            let step = running.activity.step(&mut cx);
            let wishes = cx.wishes;
            let first = running.values.len();
            running.pending += wishes.spawned.len();
            running.values.resize(first + wishes.spawned.len(), None);
            self.grant(wishes, FutureSlot { parent: number, child: first as u32 });
            match step {
                Step::Compute(ns) => {
                    self.counts.computed_ns += ns;
                    return self.compute(number, ns);
                }
                Step::Overhead(ns) => return self.compute(number, ns),
                Step::Sleep(ns) => {
                    self.release(number);
                    return self.effects.push(WorkerEffect::Sleep(number, ns));
                }
                Step::Mark => self.effects.push(WorkerEffect::Mark),
                Step::Await if self.wait(number) => return self.release(number),
                Step::Listen if self.listen() => return self.release(number),
                Step::Await | Step::Listen => {}
                Step::End(value, array) => {
                    self.release(number);
                    return self.finish(number, value, array);
                }
                Step::Die => return self.effects.push(WorkerEffect::Die),
            }
        }
    }

    fn compute(&mut self, number: u64, ns: u64) {
        let ns = (ns as f64 * self.speed.slowness) as u64;
        let debt = std::mem::take(&mut self.debt_ns);
        self.effects.push(WorkerEffect::Compute(number, ns + debt));
    }

    /// Lets a task wait for its children. Returns whether there are any that have not ended.
    fn wait(&mut self, number: u64) -> bool {
        let Some(running) = self.running.get_mut(&number) else { return false };
        running.is_waiting = running.pending > 0;
        running.is_waiting
    }

    /// The worker that ran a task is free. (The main task may have none.)
    fn release(&mut self, number: u64) {
        if number != MAIN || std::mem::take(&mut self.is_main_on_worker) {
            self.busy -= 1;
            self.between_tasks += 1;
        }
    }

    /// The main task goes on before all others: on a worker if one is free, else at once, on a
    /// thread of its own (`executor/pe/standby.rs`). Others wait for a worker.
    pub(crate) fn resume(&mut self, number: u64) {
        match (number, self.has_free()) {
            (MAIN, true) => self.ready.push_front(WorkerItem::Resume(MAIN)),
            (MAIN, false) => self.go_on(MAIN),
            _ => self.ready.push_back(WorkerItem::Resume(number)),
        }
    }

    fn spawn(&mut self, task: LocalTask) {
        match task.mode.place {
            SpawnPlace::Within(radius) => {
                let shelf = self.radii.shelf(radius);
                self.pool.shelf(shelf).push(QueuedTask::Local(task));
            }
            SpawnPlace::At(to) if to == self.me => {
                self.ready.push_back(WorkerItem::Start(QueuedTask::Local(task)));
            }
            SpawnPlace::At(to) => self.outbox.push(Outgoing::Task(to, self.depart(task))),
        }
    }

    /// Packs a task of this PE that leaves it.
    pub(crate) fn depart(&self, task: LocalTask) -> OwnTask {
        let radius = match task.mode.place {
            SpawnPlace::Within(radius) => radius,
            SpawnPlace::At(_) => Distance::ZERO,
        };
        let (is_supervised, body) = (task.mode.is_supervised, task.body.clone());
        let future = Arc::new(SimulatedFuture { task, workers: self.own.clone() });
        OwnTask { future, radius, is_supervised, body }
    }

    /// A task has been packed for the thief that sent this FISH.
    pub(crate) fn packed(&mut self, fish: Fish, task: LocalTask) {
        self.outbox.push(Outgoing::Stolen(fish, self.depart(task)));
    }

    /// A stolen task arrives.
    pub(crate) fn accept(&mut self, parcel: Parcel) {
        let shelf = self.radii.shelf(parcel.radius);
        self.pool.shelf(shelf).push(QueuedTask::Guest(parcel));
    }

    /// A task arrives that was placed here.
    pub(crate) fn place(&mut self, task: QueuedTask) {
        self.ready.push_back(WorkerItem::Start(task));
    }

    pub(crate) fn fault(&mut self, what: String) {
        self.effects.push(WorkerEffect::Fault(what));
    }

    fn finish(&mut self, number: u64, value: u64, array: Option<Array>) {
        let Some(running) = self.running.remove(&number) else { return };
        match running.origin {
            TaskOrigin::Main if self.asks_end => {
                self.value = Some(value);
                self.effects.push(WorkerEffect::AskEnd);
            }
            TaskOrigin::Main => self.effects.push(WorkerEffect::MainEnded(value)),
            TaskOrigin::Local(slot) => self.settle(slot, value),
            // No PE would read it any more.
            TaskOrigin::Guest(_) if self.is_ending => {}
            TaskOrigin::Guest(task) => {
                let value = Bytes { few: value.to_le_bytes().to_vec().into(), many: array };
                let result = Message::Result { future: task.future, outcome: Ok(value) };
                self.outbox.push(Outgoing::Message(task.home, result));
            }
        }
    }

    /// A child has ended.
    fn settle(&mut self, slot: FutureSlot, value: u64) {
        // Its parent may have been dropped at the end of the job.
        let Some(parent) = self.running.get_mut(&slot.parent) else { return };
        let former = parent.values[slot.child as usize].replace(value);
        parent.pending -= usize::from(former.is_none());
        if parent.pending == 0 && std::mem::take(&mut parent.is_waiting) {
            self.resume(slot.parent);
        }
    }

    /// A child on another PE has ended.
    pub(crate) fn settle_away(&mut self, task: &LocalTask, outcome: Outcome) {
        let again = SpawnMode { place: SpawnPlace::Within(Distance::ONE), ..task.mode };
        match outcome {
            Ok(value) => match self.decode(&value) {
                Some(value) => self.settle(task.slot, value),
                None => self.fault(format!("the value of {task:?} arrives damaged")),
            },
            Err(TaskError::ShuttingDown) if self.is_ending => {}
            // Its parent tries again, but not on a PE that may be dead for good.
            Err(TaskError::Lost { .. }) if !task.mode.is_supervised => {
                self.spawn(LocalTask { mode: again, ..task.clone() });
            }
            Err(TaskError::GaveUp { .. }) if self.workload.is_poison(&task.body) => {
                self.counts.given_up += 1;
                self.settle(task.slot, GAVE_UP);
            }
            // No PE was left to run it alone: it might have been poison. Its parent tries again.
            Err(TaskError::GaveUp { with, .. }) if with.len() > LOSSES_MIN => {
                self.counts.wronged += 1;
                self.spawn(LocalTask { mode: again, ..task.clone() });
            }
            Err(error) => self.fault(format!("{task:?} on {} ends with: {error}", self.me)),
        }
    }

    fn decode(&self, bytes: &Bytes) -> Option<u64> {
        let value = u64::from_le_bytes((*bytes.few).try_into().ok()?);
        self.workload.is_whole(value, bytes.many.as_ref()).then_some(value)
    }
}

impl Running {
    fn new(origin: TaskOrigin, activity: Box<dyn Activity>) -> Self {
        Running { origin, activity, values: Vec::new(), pending: 0, is_waiting: false }
    }
}
