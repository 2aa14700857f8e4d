//! What the tasks of a simulated job do. A workload must never know which PE runs a task, but for
//! what its tasks can see of that.
//!
//! A task is a few bytes, as in the runtime: all that it does follows from them. Once started, it
//! is an [`Activity`], which says step by step what it does: compute, spawn tasks, wait for their
//! values, end.

pub mod costs;
pub mod gap;
pub(crate) mod graph;
pub(crate) mod groups;
pub mod map;
pub mod random_tree;
pub mod recorded;
pub mod search;
pub mod spawn_tree;
pub(crate) mod supersteps;
pub(crate) mod tables;

use std::collections::VecDeque;
use std::ops::Range;
use ultramarine_runtime::array::Array;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::{Distance, Pe, Topology};

/// The value of a poison task, as its parent sees it once the task is given up.
pub(crate) const GAVE_UP: u64 = 0xdead;

/// What a task does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// It computes for this time, in nanoseconds, on a PE of normal speed.
    Compute(u64),
    /// It spreads tasks or gathers results for this time, in nanoseconds, which does not count as
    /// work.
    Overhead(u64),
    /// It sleeps for this time, in nanoseconds, and keeps no worker.
    Sleep(u64),
    /// It notes the time and the counters of its PE, in the report of the run.
    Mark,
    /// It waits for the values of all tasks that it has spawned.
    Await,
    /// The main task waits until a message [wakes](TaskContext::wake_main) it, unless one has.
    Listen,
    /// It ends with this value.
    End(u64, Option<Array>),
    /// It kills its process.
    Die,
}

/// A task that has been started.
pub trait Activity: Send {
    /// Goes on to the next step. Called again when the last step is over.
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step;
}

/// A task that takes these steps one by one, and ends with 0.
impl Activity for VecDeque<Step> {
    fn step(&mut self, _: &mut TaskContext<'_>) -> Step {
        self.pop_front().unwrap_or(Step::End(0, None))
    }
}

/// A task that computes, spawns others, and ends with the value that `end` makes of all of theirs.
pub(crate) struct Batch<F> {
    /// How long it computes, in nanoseconds, if it does.
    pub(crate) compute_ns: Option<u64>,
    pub(crate) tasks: Option<Vec<(Bytes, SpawnMode)>>,
    pub(crate) end: F,
}

impl<F: Fn(&TaskContext<'_>) -> u64 + Send> Activity for Batch<F> {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if let Some(ns) = self.compute_ns.take() {
            return Step::Compute(ns);
        }
        let Some(tasks) = self.tasks.take() else { return Step::End((self.end)(cx), None) };
        tasks.into_iter().for_each(|(body, mode)| cx.spawn(body, mode));
        Step::Await
    }
}

/// What the tasks of a job do.
pub trait Workload: Send + Sync {
    /// The main task. It runs on the root, beside the workers.
    fn main(&self) -> Box<dyn Activity>;

    /// Starts a task. `None`: these are not the bytes of any task.
    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>>;

    /// A message arrives that some task or message has [told](TaskContext::tell) this PE, which
    /// handles it at once. Returns whether it is one of the program's.
    fn receive(&self, _cx: &mut TaskContext<'_>, _body: &Bytes) -> bool {
        false
    }

    /// Another PE has died.
    fn died(&self, _cx: &mut TaskContext<'_>, _dead: Pe) {}

    /// What the main task's value must be.
    fn expected(&self) -> u64;

    /// Whether the bytes that came with a value are those that it was sent with.
    fn is_whole(&self, _value: u64, _array: Option<&Array>) -> bool {
        true
    }

    /// Whether its tasks take turns at the engine while they compute (`Context::poll_runtime`).
    fn polls(&self) -> bool {
        false
    }

    /// Whether a task kills each process that runs it, so that it must be given up.
    fn is_poison(&self, _body: &Bytes) -> bool {
        false
    }
}

/// How a task is spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnMode {
    /// Whether it is run again if it is lost. If not, the task that spawned it spawns it again.
    pub is_supervised: bool,
    /// Which PE may run it.
    pub place: SpawnPlace,
}

/// Which PE may run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnPlace {
    /// Any PE within this radius may steal it.
    Within(Distance),
    /// It is placed on this PE.
    At(Pe),
}

/// What a running task sees, or what a message does.
pub struct TaskContext<'a> {
    /// The PE that runs the task.
    pub pe: Pe,
    /// The root, as far as this PE knows.
    pub root: Pe,
    /// The job's hierarchy.
    pub topology: &'a Topology,
    /// The values of all tasks that it has awaited, in the order in which they were spawned.
    pub values: &'a [Option<u64>],
    /// Whether no task waits on this PE that another worker or PE could take.
    pub is_work_wanted: bool,
    /// With what a message has woken the main task, if one has.
    pub heard: Option<u64>,
    pub(crate) wishes: Wishes,
}

/// What a task or a message leaves to its PE.
#[derive(Default)]
pub(crate) struct Wishes {
    pub(crate) spawned: Vec<(Bytes, SpawnMode)>,
    pub(crate) told: Vec<(Range<u32>, Bytes)>,
    pub(crate) noted: Vec<&'static str>,
    pub(crate) wakes_main: Option<u64>,
}

impl TaskContext<'_> {
    /// Spawns a task.
    pub fn spawn(&mut self, body: Bytes, mode: SpawnMode) {
        self.wishes.spawned.push((body, mode));
    }

    /// Tells these PEs something, down the tree of the hierarchy.
    pub fn tell(&mut self, pes: Range<u32>, body: Bytes) {
        self.wishes.told.push((pes, body));
    }

    /// Has the main task of this PE hear of this value.
    pub fn wake_main(&mut self, value: u64) {
        self.wishes.wakes_main = Some(value);
    }

    /// The report of the run has how often this was noted, and when for the last time.
    pub fn note(&mut self, what: &'static str) {
        self.wishes.noted.push(what);
    }

    /// The sum of the values of all tasks that it has awaited.
    pub fn sum(&self) -> u64 {
        self.values.iter().flatten().sum()
    }
}
