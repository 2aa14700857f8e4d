//! What the tasks of a simulated job do: a tree of tasks that follows from a seed, and so does its
//! value.

use super::dice::Dice;
use std::ops::RangeInclusive;
use ultramarine_runtime::array::Array;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::{Distance, Topology};

/// A task: all that it does follows from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskSpec {
    pub(super) kind: TaskKind,
    /// How many generations it has below it, at most.
    pub(super) depth: u8,
    pub(super) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TaskKind {
    /// It computes, has children, waits for them, and computes again.
    Good,
    /// It kills the PE that runs it.
    Poison,
}

/// How a child is spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpawnMode {
    pub(super) is_supervised: bool,
    pub(super) place: SpawnPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpawnPlace {
    /// Any PE within this radius may steal it.
    Within(Distance),
    /// On the PE with this number, counted round.
    At(u32),
}

/// What is alike for all tasks of a job.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// How long a task computes at a time, in nanoseconds.
    pub(super) compute_ns: RangeInclusive<u64>,
    /// How many children a task has at a time.
    pub(super) children: RangeInclusive<u64>,
    /// One child in this many is not supervised, if any; then its parent spawns it again.
    pub(super) unsupervised_one_in: Option<u64>,
    /// One child in this many is placed.
    pub(super) placed_one_in: u64,
    pub(super) radii: Vec<Distance>,
}

/// Arrays are shorter than this, in bytes.
const ARRAY_BYTES_MAX: u64 = 10_000;

/// The value of a poison task, as its parent sees it.
pub(super) const GAVE_UP: u64 = 0xdead;

impl TaskSpec {
    pub(super) fn good(seed: u64, depth: u8) -> TaskSpec {
        TaskSpec { kind: TaskKind::Good, depth, seed }
    }

    pub(super) fn encode(self) -> Bytes {
        let mut bytes = vec![u8::from(self.kind == TaskKind::Poison), self.depth];
        bytes.extend(self.seed.to_le_bytes());
        // Of different lengths.
        bytes.resize(bytes.len() + (self.seed % 50) as usize, 0);
        Bytes { few: bytes.into(), many: array(self.seed) }
    }

    /// `None`: these are not the bytes of any task.
    pub(super) fn decode(body: &Bytes) -> Option<TaskSpec> {
        let kind = if *body.few.first()? == 1 { TaskKind::Poison } else { TaskKind::Good };
        let seed = u64::from_le_bytes(body.few.get(2..10)?.try_into().ok()?);
        let spec = TaskSpec { kind, depth: body.few[1], seed };
        (spec.encode() == *body).then_some(spec)
    }

    /// Whether packing it takes a while.
    pub(super) fn is_long(self) -> bool {
        array(self.seed).is_some()
    }

    /// How long it computes before its children and after them, in nanoseconds.
    pub(super) fn compute_ns(self, program: &Program, stage: usize) -> u64 {
        Dice::new(self.seed ^ 0x5eed ^ stage as u64).skewed(program.compute_ns.clone())
    }

    /// Its children, those that it waits for together in one row.
    pub(super) fn stages(self, program: &Program) -> Vec<Vec<(TaskSpec, SpawnMode)>> {
        if self.depth == 0 || self.kind == TaskKind::Poison {
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
            SpawnPlace::At(dice.next() as u32)
        } else {
            let radius = dice.next() as usize % program.radii.len();
            // Mostly anywhere.
            let radius = if dice.one_in(3) { program.radii[radius] } else { Distance::ONE };
            SpawnPlace::Within(radius)
        };
        (TaskSpec::good(dice.next(), depth), SpawnMode { is_supervised, place })
    }

    /// Its value, without deaths.
    pub(super) fn value(self, program: &Program) -> u64 {
        let stages = self.stages(program);
        let values = stages.iter().flatten().map(|(child, _)| child.value(program));
        self.combine(values)
    }

    /// What it comes to with these values of its children.
    pub(super) fn combine(self, values: impl Iterator<Item = u64>) -> u64 {
        if self.kind == TaskKind::Poison {
            return GAVE_UP;
        }
        values.fold(self.seed, |sum, value| sum.rotate_left(7).wrapping_mul(31).wrapping_add(value))
    }

    /// How many tasks there are below it, itself included, and how long they compute, in
    /// nanoseconds.
    pub(super) fn extent(self, program: &Program) -> (u64, u64) {
        let stages = self.stages(program);
        let own: u64 = (0..=stages.len()).map(|stage| self.compute_ns(program, stage)).sum();
        let below = stages.iter().flatten().map(|(child, _)| child.extent(program));
        below.fold((1, own), |(tasks, ns), (more, longer)| (tasks + more, ns + longer))
    }
}

/// The bytes of a value.
pub(super) fn encode_value(value: u64) -> Bytes {
    Bytes { few: value.to_le_bytes().to_vec().into(), many: array(value) }
}

/// `None`: these are not the bytes of any value.
pub(super) fn decode_value(bytes: &Bytes) -> Option<u64> {
    let value = u64::from_le_bytes((*bytes.few).try_into().ok()?);
    (encode_value(value) == *bytes).then_some(value)
}

/// One in eight values and arguments has an array, which other messages may overtake.
fn array(number: u64) -> Option<Array> {
    let length = (number / 8 % ARRAY_BYTES_MAX) as usize;
    number.is_multiple_of(8).then(|| Array::from(vec![number as u8; length]))
}

/// The radii that make a difference, but for 0, with which nothing leaves its PE.
pub(super) fn radii(topology: &Topology) -> Vec<Distance> {
    let radii: Vec<_> = topology.radii().iter().copied().skip(1).collect();
    if radii.is_empty() { vec![Distance::ONE] } else { radii }
}
