//! What stands for the rest of a PE: its pool, its workers, its futures. As the runtime's executor
//! does it, but for the threads.

use super::dice::Dice;
use super::program::{GAVE_UP, Kind, Place, Program, Spec, Way};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{
    Host, Message, Need, Outcome, Parcel, Pool, Radii, TaskId, Version,
};
use ultramarine_topology::{Distance, Pe};

/// What was lost more often than this may be taken for poison, when hardly anybody is left.
const LOSSES_MIN: usize = 3;

/// A future on the PE that spawned its task: which child of which running task it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    parent: u64,
    child: usize,
}

/// A task in the pool.
#[derive(Clone, Debug)]
enum Waiting {
    /// It has not left this PE yet.
    Local { slot: Slot, spec: Spec, way: Way },
    /// It is in bytes.
    Guest(Parcel),
}

/// Something for a worker to do.
#[derive(Debug)]
enum Work {
    Start(Waiting),
    Resume(u64),
}

/// Who waits for the end of a running task.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// It is the main task.
    Main,
    Local(Slot),
    Guest(TaskId),
}

/// A task that has been started.
#[derive(Debug)]
struct Running {
    origin: Origin,
    spec: Spec,
    stages: Vec<Vec<(Spec, Way)>>,
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
    Place(Pe, Parcel),
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
pub(super) struct Desk {
    me: Pe,
    program: Arc<Program>,
    pes: u32,
    radii: Radii,
    dice: Dice,
    threads: usize,
    busy: usize,
    ready: VecDeque<Work>,
    pool: Pool<VecDeque<Waiting>>,
    running: BTreeMap<u64, Running>,
    last_running: u64,
    /// Futures whose tasks are elsewhere.
    futures: BTreeMap<u64, (Slot, Spec, Way)>,
    last_future: u64,
    /// Of whom this PE has been told that they are dead.
    pub(super) dead: BTreeSet<Pe>,
    pub(super) is_ending: bool,
    pub(super) effects: Vec<Effect>,
    pub(super) started: u64,
    pub(super) orphans: u64,
    pub(super) given_up: u32,
    /// How many others were, by mistake.
    pub(super) wronged: u32,
}

impl Desk {
    pub(super) fn new(
        me: Pe,
        pes: u32,
        radii: Radii,
        threads: usize,
        program: Arc<Program>,
        dice: Dice,
    ) -> Self {
        Desk {
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
    pub(super) fn begin(&mut self, children: Vec<(Spec, Way)>) {
        let (spec, stages) = (Spec::good(0, 0), vec![children]);
        let main = Running { origin: Origin::Main, spec, stages, stage: 0, values: Vec::new() };
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
            let work = work.or_else(|| self.pool.select_local().map(Work::Start));
            let number = match work {
                None => return,
                Some(Work::Resume(number)) => number,
                Some(Work::Start(waiting)) => match self.start(waiting) {
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

    fn start(&mut self, waiting: Waiting) -> Option<u64> {
        let (origin, spec) = match waiting {
            Waiting::Local { slot, spec, .. } => (Origin::Local(slot), spec),
            Waiting::Guest(parcel) if self.dead.contains(&parcel.task.home) => {
                self.orphans += 1;
                return None;
            }
            Waiting::Guest(parcel) => (Origin::Guest(parcel.task), Spec::decode(&parcel.body)),
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
        if running.spec.kind == Kind::Poison {
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
        for ((spec, way), child) in children.into_iter().zip(first..) {
            self.spawn(Slot { parent: number, child }, spec, way);
        }
    }

    fn resume(&mut self, number: u64) {
        let running = &self.running[&number];
        if let Origin::Main = running.origin {
            let value = running.spec.combine(running.values.iter().copied().flatten());
            self.effects.push(Effect::MainEnded(value));
        } else {
            self.ready.push_back(Work::Resume(number));
        }
    }

    fn spawn(&mut self, slot: Slot, spec: Spec, way: Way) {
        let waiting = Waiting::Local { slot, spec, way };
        match way.place {
            Place::Within(radius) => {
                let shelf = self.radii.shelf(radius);
                self.pool.shelf(shelf).push_back(waiting);
            }
            Place::At(number) => {
                let to = Pe::new(number % self.pes);
                if to == self.me {
                    self.ready.push_back(Work::Start(waiting));
                } else if let Some(parcel) = self.depart(waiting) {
                    self.effects.push(Effect::Place(to, parcel));
                }
            }
        }
    }

    /// Makes bytes of a task. `None` if nobody waits for it.
    fn depart(&mut self, waiting: Waiting) -> Option<Parcel> {
        match waiting {
            Waiting::Guest(parcel) if self.dead.contains(&parcel.task.home) => {
                self.orphans += 1;
                None
            }
            Waiting::Guest(parcel) => Some(parcel),
            Waiting::Local { slot, spec, way } => {
                self.last_future += 1;
                self.futures.insert(self.last_future, (slot, spec, way));
                let radius = match way.place {
                    Place::Within(radius) => radius,
                    Place::At(_) => Distance::ZERO,
                };
                Some(Parcel {
                    task: TaskId { home: self.me, future: self.last_future },
                    radius,
                    supervised: way.is_supervised,
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
            Origin::Main => {}
            Origin::Local(slot) => self.settle(slot, value),
            // Nobody would hear it any more.
            Origin::Guest(_) if self.is_ending => {}
            Origin::Guest(task) => {
                let outcome = Ok(Bytes::from(value.to_le_bytes().to_vec()));
                self.effects.push(Effect::Send(
                    task.home,
                    Message::Result { future: task.future, outcome },
                ));
            }
        }
    }

    /// A child has ended.
    fn settle(&mut self, slot: Slot, value: u64) {
        // Its parent may have been dropped at the end of the job.
        let Some(parent) = self.running.get_mut(&slot.parent) else { return };
        parent.values[slot.child] = Some(value);
        if parent.values.iter().all(Option::is_some) {
            self.resume(slot.parent);
        }
    }

    fn settle_away(&mut self, (slot, spec, way): (Slot, Spec, Way), outcome: Outcome) {
        match outcome {
            Ok(Bytes { few: bytes, .. }) => {
                let bytes = <[u8; 8]>::try_from(&*bytes).expect("a value is one number");
                self.settle(slot, u64::from_le_bytes(bytes));
            }
            Err(TaskError::Lost { .. }) if !way.is_supervised => {
                // Its parent tries again, but not on a PE that may be dead for good.
                self.spawn(slot, spec, Way { place: Place::Within(Distance::ONE), ..way });
            }
            Err(TaskError::GaveUp { .. }) if spec.kind == Kind::Poison => {
                self.given_up += 1;
                self.settle(slot, GAVE_UP);
            }
            // Nobody was left to run it alone: it might have been poison. Its parent tries again.
            Err(TaskError::GaveUp { with, .. }) if with.len() > LOSSES_MIN => {
                self.wronged += 1;
                self.spawn(slot, spec, Way { place: Place::Within(Distance::ONE), ..way });
            }
            Err(error) => {
                let fault = format!("{way:?} {spec:?} on {} ends with: {error}", self.me);
                self.effects.push(Effect::Fault(fault));
            }
        }
    }
}

impl Host for Desk {
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
            let waiting = self.pool.select_remote(nearest)?;
            if let Some(parcel) = self.depart(waiting) {
                return Some(parcel);
            }
        }
    }
    fn accept(&mut self, parcel: Parcel) {
        let shelf = self.radii.shelf(parcel.radius);
        self.pool.shelf(shelf).push_back(Waiting::Guest(parcel));
    }
    fn place(&mut self, parcel: Parcel) {
        self.ready.push_back(Work::Start(Waiting::Guest(parcel)));
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
    fn hear(&mut self, _: Bytes) {
        self.effects.push(Effect::Fault("no program here tells anything".to_owned()));
    }
    fn failed(&mut self, pe: Pe, reason: String) {
        self.effects.push(Effect::Fault(format!("{pe} gives up: {reason}")));
    }
    fn shut_down(&mut self) {
        self.is_ending = true;
        self.futures.clear();
    }
}
