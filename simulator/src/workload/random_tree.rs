//! A tree of tasks that follows from a seed, and so does its value. Tasks have one or two rows of
//! children, some of them supervised and some placed; some tasks and values have arrays.

use super::{Activity, Batch, GAVE_UP, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use crate::dice::Dice;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::vec;
use ultramarine_runtime::array::Array;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::{Distance, Pe, Topology};

/// A task: all that it does follows from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TaskSpec {
    /// It kills the PE that runs it. (Others compute, have children, wait for them, and compute
    /// again.)
    pub(crate) is_poison: bool,
    /// How many generations it has below it, at most.
    pub(crate) depth: u8,
    pub(crate) seed: u64,
}

/// What is alike for all tasks of a job.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// How long a task computes at a time, in nanoseconds.
    pub(crate) compute_ns: RangeInclusive<u64>,
    /// How many children a task has at a time.
    pub(crate) children: RangeInclusive<u64>,
    /// One child in this many is not supervised, if any; then its parent spawns it again.
    pub(crate) unsupervised_one_in: Option<u64>,
    /// One child in this many is placed.
    pub(crate) placed_one_in: u64,
    pub(crate) radii: Vec<Distance>,
    /// How many PEs the job has.
    pub(crate) pes: u32,
}

impl Program {
    /// All tasks compute this many times as long, if more than once.
    pub(crate) fn slow_down(&mut self, times: u64) {
        let (shortest, longest) = (*self.compute_ns.start(), *self.compute_ns.end());
        self.compute_ns = shortest * times.max(1)..=longest * times.max(1);
    }
}

/// Arrays are shorter than this, in bytes.
const ARRAY_BYTES_MAX: u64 = 10_000;

impl TaskSpec {
    pub(crate) fn good(seed: u64, depth: u8) -> TaskSpec {
        TaskSpec { is_poison: false, depth, seed }
    }

    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = vec![u8::from(self.is_poison), self.depth];
        bytes.extend(self.seed.to_le_bytes());
        // Of different lengths.
        bytes.resize(bytes.len() + (self.seed % 50) as usize, 0);
        Bytes { few: bytes.into(), many: array(self.seed) }
    }

    /// `None`: these are not the bytes of any task.
    pub(crate) fn decode(body: &Bytes) -> Option<TaskSpec> {
        let is_poison = *body.few.first()? == 1;
        let seed = u64::from_le_bytes(body.few.get(2..10)?.try_into().ok()?);
        let spec = TaskSpec { is_poison, depth: body.few[1], seed };
        (spec.encode() == *body).then_some(spec)
    }

    /// How long it computes before its children and after them, in nanoseconds.
    pub(crate) fn compute_ns(self, program: &Program, stage: usize) -> u64 {
        Dice::new(self.seed ^ 0x5eed ^ stage as u64).skewed(program.compute_ns.clone())
    }

    /// Its children, those that it waits for together in one row.
    pub(crate) fn stages(self, program: &Program) -> Vec<Vec<(TaskSpec, SpawnMode)>> {
        if self.depth == 0 || self.is_poison {
            return Vec::new();
        }
        let mut dice = Dice::new(self.seed);
        let stages = if dice.one_in(3) { 2 } else { 1 };
        (0..stages)
            .map(|_| {
                let count = dice.within(program.children.clone());
                (0..count).map(|_| self.child(program, &mut dice)).collect()
            })
            .collect()
    }

    fn child(self, program: &Program, dice: &mut Dice) -> (TaskSpec, SpawnMode) {
        let depth = if dice.one_in(4) { 0 } else { self.depth - 1 };
        let is_supervised = program.unsupervised_one_in.is_none_or(|times| !dice.one_in(times));
        let place = if dice.one_in(program.placed_one_in) {
            SpawnPlace::At(Pe::new(dice.next() as u32 % program.pes))
        } else {
            let radius = dice.next() as usize % program.radii.len();
            // Mostly anywhere.
            let radius = if dice.one_in(3) { program.radii[radius] } else { Distance::ONE };
            SpawnPlace::Within(radius)
        };
        (TaskSpec::good(dice.next(), depth), SpawnMode { is_supervised, place })
    }

    /// Its value, without deaths.
    pub(crate) fn value(self, program: &Program) -> u64 {
        let stages = self.stages(program);
        let values = stages.iter().flatten().map(|(child, _)| child.value(program));
        self.combine(values)
    }

    /// What it comes to with these values of its children.
    pub(crate) fn combine(self, values: impl Iterator<Item = u64>) -> u64 {
        if self.is_poison {
            return GAVE_UP;
        }
        values.fold(self.seed, |sum, value| sum.rotate_left(7).wrapping_mul(31).wrapping_add(value))
    }

    /// How many tasks there are below it, itself included, and how long they compute, in
    /// nanoseconds.
    pub(crate) fn extent(self, program: &Program) -> (u64, u64) {
        let stages = self.stages(program);
        let own: u64 = (0..=stages.len()).map(|stage| self.compute_ns(program, stage)).sum();
        let below = stages.iter().flatten().map(|(child, _)| child.extent(program));
        below.fold((1, own), |(tasks, ns), (more, longer)| (tasks + more, ns + longer))
    }
}

/// One in eight values and arguments has an array, which other messages may overtake.
fn array(number: u64) -> Option<Array> {
    let length = (number / 8 % ARRAY_BYTES_MAX) as usize;
    number.is_multiple_of(8).then(|| Array::from(vec![number as u8; length]))
}

/// A job whose main task has these children.
#[derive(Debug)]
pub(crate) struct RandomTree {
    pub(crate) program: Arc<Program>,
    pub(crate) main: Vec<(TaskSpec, SpawnMode)>,
}

impl Workload for RandomTree {
    fn main(&self) -> Box<dyn Activity> {
        let tasks = self.main.iter().map(|(spec, mode)| (spec.encode(), *mode)).collect();
        let end = |cx: &TaskContext<'_>| {
            TaskSpec::good(0, 0).combine(cx.values.iter().copied().flatten())
        };
        Box::new(Batch { compute_ns: None, tasks: Some(tasks), end })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let (spec, program) = (TaskSpec::decode(body)?, self.program.clone());
        let rows = spec.stages(&program).into_iter();
        Some(Box::new(TreeTask { spec, program, rows, steps: 0, is_computed: false }))
    }

    fn expected(&self) -> u64 {
        let values = self.main.iter().map(|(spec, _)| spec.value(&self.program));
        TaskSpec::good(0, 0).combine(values)
    }

    fn is_whole(&self, value: u64, with: Option<&Array>) -> bool {
        array(value).as_ref() == with
    }

    fn is_poison(&self, body: &Bytes) -> bool {
        body.few.first() == Some(&1)
    }
}

/// It computes before each row of children, and at its end.
struct TreeTask {
    spec: TaskSpec,
    program: Arc<Program>,
    rows: vec::IntoIter<Vec<(TaskSpec, SpawnMode)>>,
    /// How often it has computed.
    steps: usize,
    is_computed: bool,
}

impl Activity for TreeTask {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !std::mem::replace(&mut self.is_computed, true) {
            self.steps += 1;
            return Step::Compute(self.spec.compute_ns(&self.program, self.steps - 1));
        }
        self.is_computed = false;
        match self.rows.next() {
            _ if self.spec.is_poison => Step::Die,
            Some(row) => {
                row.into_iter().for_each(|(spec, mode)| cx.spawn(spec.encode(), mode));
                Step::Await
            }
            None => {
                let value = self.spec.combine(cx.values.iter().copied().flatten());
                Step::End(value, array(value))
            }
        }
    }
}

/// The radii that make a difference, but for 0, with which nothing leaves its PE.
pub(crate) fn radii(topology: &Topology) -> Vec<Distance> {
    let radii: Vec<_> = topology.radii().iter().copied().skip(1).collect();
    if radii.is_empty() { vec![Distance::ONE] } else { radii }
}
