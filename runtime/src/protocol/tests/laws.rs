//! Laws that hold for all events, in any order.

use super::world::{Letter, World, eight, fish_of, parcel, pe, settings};
use crate::protocol::fish_state::{DEADLINE_GROWTH_MAX, WaitingFish};
use crate::protocol::{FishingSettings, Message, Node, TaskId};
use proptest::prelude::*;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

/// An event in a job. Numbers are taken modulo the number of choices.
#[derive(Clone, Copy, Debug)]
enum Step {
    Spawn {
        at: u32,
        exponent: u8,
        bytes: usize,
    },
    Tick {
        at: u32,
        starving: bool,
    },
    Deliver(usize),
    /// The message is lost, if it is one that may be lost: a FISH or its NOWORK.
    Lose(usize),
    Run {
        at: u32,
    },
    Wait {
        micros: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..8u32;
    prop_oneof![
        2 => (at(), 0..5u8, 0..2000usize)
            .prop_map(|(at, exponent, bytes)| Step::Spawn { at, exponent, bytes }),
        4 => (at(), any::<bool>()).prop_map(|(at, starving)| Step::Tick { at, starving }),
        6 => any::<usize>().prop_map(Step::Deliver),
        1 => any::<usize>().prop_map(Step::Lose),
        2 => at().prop_map(|at| Step::Run { at }),
        2 => (0..400u64).prop_map(|micros| Step::Wait { micros }),
    ]
}

/// The job, and the PE that ran each task.
struct Run {
    world: World,
    spawned: HashMap<TaskId, Distance>,
    executed: HashMap<TaskId, Pe>,
    deadline: Duration,
}

impl Run {
    fn execute(&mut self, at: u32) -> Result<bool, TestCaseError> {
        let Some(parcel) = self.world.run_one(at) else { return Ok(false) };
        let radius = self.spawned[&parcel.task];
        let way = self.world.topology.distance(parcel.task.home, pe(at));
        prop_assert!(way <= radius, "{parcel:?} ran on PE {at}, {way} from its home");
        let before = self.executed.insert(parcel.task, pe(at));
        prop_assert_eq!(before, None, "{:?} ran twice", parcel.task);
        Ok(true)
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let flying = self.world.flying.len();
        match step {
            Step::Spawn { at, exponent, bytes } => {
                let radius =
                    if exponent == 4 { Distance::ZERO } else { Distance::from_exponent(exponent) };
                let task = self.world.spawn(at, radius, bytes);
                self.spawned.insert(task, radius);
            }
            Step::Tick { at, starving } => self.tick(at, starving)?,
            Step::Deliver(index) if flying > 0 => drop(self.world.deliver(index % flying)),
            Step::Lose(index) if flying > 0 => {
                let index = index % flying;
                let losable = |letter: &Letter| {
                    matches!(letter.message, Message::Fish(_) | Message::NoWork { .. })
                };
                if losable(&self.world.flying[index]) {
                    self.world.flying.remove(index);
                }
            }
            Step::Deliver(_) | Step::Lose(_) => {}
            Step::Run { at } => drop(self.execute(at)?),
            Step::Wait { micros } => self.world.now += Duration::from_micros(micros),
        }
        Ok(())
    }

    /// A PE that could use work is never without a FISH for longer than the longest deadline: it is
    /// due again by then.
    fn tick(&mut self, at: u32, starving: bool) -> Result<(), TestCaseError> {
        let wants = self.world.queued(at) <= settings().max_fish;
        let due = self.world.tick(at, starving);
        prop_assert!(!wants || due.is_some(), "PE {at} would wait for ever");
        prop_assert!(due.is_none_or(|due| due > self.world.now), "a due moment that is past");
        prop_assert!(due.is_none_or(|due| due <= self.world.now + self.deadline));
        Ok(())
    }

    /// Lets the job run on until all tasks have been executed.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..2000 {
            for at in 0..8 {
                self.execute(at)?;
                self.tick(at, self.world.queued(at) == 0)?;
            }
            self.world.deliver_all(|flying| flying - 1);
            self.world.now += Duration::from_micros(500);
            if self.executed.len() == self.spawned.len() {
                return Ok(());
            }
        }
        Err(TestCaseError::fail("tasks are lost"))
    }
}

proptest! {
    #[test]
    fn every_task_runs_once_and_within_its_radius(
        steps in prop::collection::vec(step(), 0..400),
        seed in any::<u64>(),
    ) {
        let settings = FishingSettings { fish_deadline: Duration::from_millis(1), ..settings() };
        let deadline = settings.fish_deadline * DEADLINE_GROWTH_MAX;
        let deadline = deadline.max(settings.max_fish_delay);
        let world = World::new(eight(), &settings, seed);
        let (spawned, executed) = (HashMap::new(), HashMap::new());
        let mut run = Run { world, spawned, executed, deadline };
        for step in steps {
            run.take(step)?;
        }
        run.finish()?;
        // The job can end now as at any other moment.
        run.world.end();
        run.world.deliver_all(|flying| flying / 2);
        let phases = run.world.phases();
        prop_assert!(phases.iter().all(|phase| *phase == crate::protocol::Phase::Released));
    }
}

fn hash_of(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    node.hash(&mut hasher);
    hasher.finish()
}

/// The proofs would take two states for one.
#[test]
fn nodes_that_differ_in_anything_that_counts_are_different() {
    let world = World::new(eight(), &settings(), 1);
    let node = &world.nodes[0];
    let waiting = || WaitingFish { fish: fish_of(1), until: Duration::ZERO };
    let changes: [&dyn Fn(&mut Node); 8] = [
        &|node| node.me = pe(1),
        &|node| node.ending.said_farewell = true,
        &|node| node.fishing.serial += 1,
        &|node| node.waiting.push(waiting()),
        &|node| node.supervision.record_waiting(parcel(0, 1, true)),
        &|node| node.losses.left += 1,
        &|node| node.living.remove(&[pe(2)]),
        &|node| node.has_cancelled = true,
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut other = node.clone();
        assert!(*node == other && hash_of(node) == hash_of(&other));
        change(&mut other);
        assert!(*node != other && hash_of(node) != hash_of(&other), "change {index}");
    }
    let mut other = node.clone();
    other.statistics.orphans += 1;
    assert!(*node == other, "counters make no difference");
}
