//! Stealing from boards in random schedules, with deaths of thieves and of those whose boards these
//! are.

use super::board_memory::LIMITS;
use super::boards::{from_boards, result};
use super::world::{World, chooser, eight, pe, settings};
use crate::error::TaskError;
use crate::protocol::{Parcel, TaskId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// A job in a random schedule, with deaths.
struct Run {
    world: World,
    choose: Box<dyn FnMut(usize) -> usize>,
    alive: Vec<u32>,
    /// Who is to hear of whose death.
    news: Vec<(u32, u32)>,
    supervised: HashSet<TaskId>,
    spawned: Vec<TaskId>,
    /// How often each copy of a task was run.
    runs: HashMap<(TaskId, u32), u32>,
    has_deaths: bool,
}

impl Run {
    fn new(seed: u64, pes: u32, has_deaths: bool) -> Self {
        let topology = if pes == 8 { eight() } else { ultramarine_topology::Topology::flat(pes) };
        let mut world = World::new(topology, &settings(), seed);
        let mut choose = chooser(seed);
        if choose(2) == 0 {
            world.share_boards_of_hosts();
        } else {
            world.share_boards_of_all();
        }
        Run {
            world,
            choose: Box::new(choose),
            alive: (0..pes).collect(),
            news: Vec::new(),
            supervised: HashSet::new(),
            spawned: Vec::new(),
            runs: HashMap::new(),
            has_deaths,
        }
    }

    fn some_pe(&mut self) -> u32 {
        self.alive[(self.choose)(self.alive.len())]
    }

    fn step(&mut self) {
        let at = self.some_pe();
        match (self.choose)(20) {
            0..=2 => self.spawn(at),
            3..=9 => {
                self.world.now += Duration::from_micros((self.choose)(40) as u64);
                let is_starving = self.world.queued(at) == 0 || (self.choose)(3) == 0;
                self.world.tick(at, is_starving);
            }
            10..=12 => self.run_one(at),
            13..=18 => self.deliver(),
            _ if self.has_deaths && (self.choose)(8) == 0 => self.kill(at),
            _ => self.hear(),
        }
    }

    fn spawn(&mut self, at: u32) {
        let radii = self.world.topology.radii().to_vec();
        let radius = radii[(self.choose)(radii.len())];
        if (self.choose)(4) == 0 {
            let bytes = (self.choose)(2) * (LIMITS.0 + 1);
            self.spawned.push(self.world.spawn(at, radius, bytes));
        } else {
            let task = self.world.spawn_supervised(at, radius);
            self.supervised.insert(task);
            self.spawned.push(task);
        }
    }

    fn run_one(&mut self, at: u32) {
        let placed = self.world.seats[at as usize].placed.pop();
        let Some(next) = placed.or_else(|| self.world.run_one(at)) else { return };
        let Parcel { task, radius, version, .. } = next;
        let runs = self.runs.entry((task, version.replica)).or_default();
        *runs += 1;
        assert_eq!(*runs, 1, "{task:?}, copy {} has run twice", version.replica);
        let distance = self.world.topology.distance(task.home, pe(at));
        assert!(version.replica > 0 || distance <= radius, "{task:?} is at {at}");
        if task.home == pe(at) {
            self.world.handle(at, at, result(task));
        } else if self.alive.contains(&task.home.number()) {
            self.world.send(at, task.home.number(), result(task));
        }
    }

    fn deliver(&mut self) {
        if self.world.flying.is_empty() {
            return;
        }
        let index = (self.choose)(self.world.flying.len());
        let to = self.world.flying[index].to.number();
        if self.alive.contains(&to) {
            self.world.deliver(index);
        } else {
            self.world.flying.remove(index);
        }
    }

    /// A PE dies, and with it the last of what it has sent to each other. One is left.
    fn kill(&mut self, at: u32) {
        if self.alive.len() <= 3 {
            return;
        }
        self.alive.retain(|pe| *pe != at);
        let arrives: Vec<usize> =
            (0..self.world.topology.pes()).map(|_| (self.choose)(4)).collect();
        let mut seen = BTreeMap::new();
        self.world.flying.retain(|letter| {
            let count = seen.entry(letter.to).or_insert(0);
            *count += usize::from(letter.from == pe(at));
            letter.from != pe(at) || *count <= arrives[letter.to.index()]
        });
        self.news.extend(self.alive.iter().map(|other| (*other, at)));
    }

    fn hear(&mut self) {
        if !self.news.is_empty() {
            let index = (self.choose)(self.news.len());
            let (at, dead) = self.news.swap_remove(index);
            if self.alive.contains(&at) {
                self.world.mark_dead(at, dead);
            }
        }
    }

    /// Lets the job go on to its end, and looks whether all tasks have ended.
    fn finish(&mut self, seed: u64) {
        for _ in 0..3000 {
            while !self.news.is_empty() {
                self.hear();
            }
            self.world.now += Duration::from_millis(5);
            for at in self.alive.clone() {
                self.run_one(at);
                self.world.tick(at, self.world.queued(at) == 0);
            }
            (0..4 * self.world.flying.len()).for_each(|_| self.deliver());
            if self.is_done() {
                break;
            }
        }
        let alive = self.alive.clone();
        for task in self.spawned.iter().filter(|task| alive.contains(&task.home.number())) {
            let filled = &self.world.seats[task.home.index()].filled;
            let ends: Vec<_> = filled.iter().filter(|end| end.0 == task.future).collect();
            let is_supervised = self.supervised.contains(task);
            match ends.first() {
                None => panic!(
                    "seed {seed}: {task:?} has no end (supervised: {is_supervised}); alive: {:?}",
                    self.alive
                ),
                Some((_, Ok(_))) => {}
                Some((_, Err(TaskError::Lost { .. }))) if !is_supervised && self.has_deaths => {}
                Some((_, end)) => panic!("seed {seed}: {task:?} ended with {end:?}"),
            }
            assert!(self.has_deaths || ends.len() == 1, "seed {seed}: {ends:?}");
        }
        for at in alive {
            let left = (self.world.ready(at), self.world.taken(at));
            assert_eq!(left, (0, 0), "seed {seed}: on the board of {at}");
        }
    }

    fn is_done(&self) -> bool {
        let has_ended = |task: &TaskId| {
            let filled = &self.world.seats[task.home.index()].filled;
            filled.iter().any(|end| end.0 == task.future)
        };
        let is_alive = |task: &TaskId| self.alive.contains(&task.home.number());
        self.spawned.iter().all(|task| !is_alive(task) || has_ended(task))
            && self.alive.iter().all(|at| {
                self.world.queued(*at) == 0 && self.world.ready(*at) + self.world.taken(*at) == 0
            })
    }
}

/// Runs jobs with these seeds. Returns the number of tasks that were stolen from boards.
fn run(seeds: std::ops::Range<u64>, has_deaths: bool) -> u64 {
    let mut stolen = 0;
    for seed in seeds {
        let pes = [2, 3, 5, 8][seed as usize % 4];
        let mut run = Run::new(seed, pes, has_deaths);
        (0..400).for_each(|_| run.step());
        run.finish(seed);
        stolen += (0..pes).map(|at| from_boards(&run.world, at)).sum::<u64>();
    }
    stolen
}

#[test]
fn without_deaths_each_task_is_run_once() {
    assert!(run(0..300, false) > 1000);
}

#[test]
fn with_deaths_each_supervised_task_has_a_result_and_no_copy_is_run_twice() {
    assert!(run(0..2000, true) > 1000);
}
