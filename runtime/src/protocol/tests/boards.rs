//! Stealing from boards: what is posted, who takes it, and what home knows.

use super::board_memory::LIMITS;
use super::world::{World, chooser, eight, fish_of, flat, parcel, pe, settings};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Host as _, Message, Need, Parcel, TaskId, Version};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use ultramarine_topology::Distance;

/// PEs of one host.
fn host_of(pes: u32) -> World {
    let mut world = flat(pes);
    world.share_boards_of_all();
    world
}

/// The thief asks, and the victim, whose workers are busy, posts something.
fn ask(world: &mut World, thief: u32, victim: u32) {
    world.act(thief, |_, seat| {
        let boards = seat.boards().expect("they share their boards");
        boards.look(Need::Starving);
        boards.ask(pe(victim));
    });
    world.tick(victim, false);
    world.flying.clear();
}

fn version(age: u32) -> Version {
    Version { replica: 0, age }
}

fn from_boards(world: &World, at: u32) -> u64 {
    let rows = &world.nodes[at as usize].statistics().by_distance;
    rows.iter().map(|row| row.from_boards).sum()
}

fn result(task: TaskId) -> Message {
    Message::Result { future: task.future, outcome: Ok(Bytes::from(vec![7])) }
}

#[test]
fn a_task_is_stolen_without_a_message() {
    let mut world = host_of(2);
    let tasks: Vec<_> = (0..6).map(|_| world.spawn(0, Distance::ONE, 8)).collect();
    world.tick(1, true);
    world.catch_fish();
    world.tick(0, false);
    assert_eq!((world.ready(0), world.queued(0)), (2, 4), "some are posted");
    world.tick(1, true);
    assert_eq!(world.flying.len(), 0, "{:?}", world.flying);
    assert_eq!((world.ready(0), world.queued(1), from_boards(&world, 1)), (0, 2, 2));
    let row = &world.nodes[1].statistics().by_distance[1];
    assert_eq!((row.steals, row.bytes, row.schedules), (2, 16, 0));
    assert_eq!(world.nodes[1].statistics().steal_latency.count(), 2);
    let first = world.seats[1].oldest();
    assert_eq!(first, Some((tasks[0], version(1))), "the oldest");
}

#[test]
fn nothing_is_posted_while_no_pe_asks_nor_without_a_board() {
    let mut world = host_of(2);
    world.spawn_many(6, 0, Distance::ONE, 8);
    world.tick(0, false);
    assert_eq!((world.ready(0), world.queued(0)), (0, 6));
    let mut world = flat(2);
    world.spawn_many(6, 0, Distance::ONE, 8);
    world.tick(1, true);
    let (victim, _) = world.catch_fish();
    assert_eq!(victim, pe(0));
}

/// PEs 0 and 1 share a host, PEs 0 to 3 a rack.
#[test]
fn radii_are_obeyed_and_other_hosts_get_messages() {
    let half = Distance::ONE.half();
    for (radius, is_posted) in [(Distance::ZERO, false), (half.half(), true), (half, true)] {
        let mut world = World::new(eight(), &settings(), 1);
        world.share_boards_of_hosts();
        world.spawn_many(6, 0, radius, 8);
        ask(&mut world, 1, 0);
        assert_eq!(world.ready(0) > 0, is_posted, "{radius}");
        world.tick(1, true);
        assert_eq!(world.queued(1) > 0, is_posted, "{radius}");
    }
}

/// A task for the nearer thief is not for the other.
#[test]
fn a_thief_takes_the_smallest_radius_that_reaches_it() {
    let mut world = World::new(eight(), &settings(), 1);
    world.share_boards_of_all();
    let half = Distance::ONE.half();
    let far = world.spawn(0, Distance::ONE, 8);
    let near = world.spawn(0, half, 8);
    world.spawn_many(6, 0, Distance::ZERO, 8);
    ask(&mut world, 1, 0);
    assert_eq!(world.ready(0), 2);
    world.tick(4, true);
    assert_eq!(world.run_one(4).map(|parcel| parcel.task), Some(far));
    world.tick(1, true);
    assert_eq!(world.run_one(1).map(|parcel| parcel.task), Some(near));
}

#[test]
fn a_pe_keeps_what_it_would_keep_from_a_fish() {
    for (is_busy, queued, posted) in [(true, 1, 1), (true, 2, 1), (false, 1, 0), (false, 3, 2)] {
        let mut world = host_of(2);
        world.spawn_many(queued, 0, Distance::ONE, 8);
        world.nodes[1].note_giver(pe(0));
        world.tick(1, true);
        world.tick(0, !is_busy);
        assert_eq!(world.ready(0), posted, "{queued} queued");
    }
}

#[test]
fn more_are_posted_when_all_were_taken_and_few_again_when_not() {
    let mut world = host_of(2);
    world.spawn_many(100, 0, Distance::ONE, 8);
    ask(&mut world, 1, 0);
    let mut posted = vec![world.ready(0)];
    for _ in 0..2 {
        while world.ready(0) > 0 {
            world.tick(1, true);
            while world.run_one(1).is_some() {}
        }
        world.tick(0, false);
        posted.push(world.ready(0));
    }
    assert_eq!(posted, [2, 4, 4], "there are {} slots", LIMITS.1);
    while world.run_one(0).is_some() {}
    world.tick(0, true);
    assert_eq!((world.ready(0), world.queued(0)), (3, 1), "it takes one back");
    while world.run_one(0).is_some() {
        world.tick(0, true);
    }
    world.spawn_many(100, 0, Distance::ONE, 8);
    ask(&mut world, 1, 0);
    assert_eq!(world.ready(0), 2);
}

#[test]
fn one_fork_is_posted_for_each_pe_that_asks() {
    let mut world = host_of(2);
    world.seats[0].has_forks = true;
    world.spawn_many(8, 0, Distance::ONE, 8);
    for _ in 0..3 {
        ask(&mut world, 1, 0);
        assert_eq!(world.ready(0), 1);
        world.seats[0].forget_sent();
    }
}

#[test]
fn a_task_that_is_on_no_board_goes_in_a_message() {
    let mut world = host_of(2);
    world.spawn_many(4, 0, Distance::ONE, LIMITS.0 + 1);
    world.nodes[1].note_giver(pe(0));
    world.tick(1, true);
    world.flying.clear();
    world.tick(0, false);
    assert_eq!(world.ready(0), 0);
    let given = world.take_schedules().concat();
    assert!(!given.is_empty() && given.iter().all(|parcel| parcel.version == version(1)));
    assert_eq!(world.queued(0) + given.len(), 4);
}

/// Such tasks are given only to some PEs.
#[test]
fn a_task_that_was_lost_before_is_on_no_board() {
    let mut world = host_of(2);
    let version = Version { replica: 1, age: 1 };
    world.seats[0].put(Parcel { version, ..parcel(0, 1, true) });
    ask(&mut world, 1, 0);
    assert_eq!((world.ready(0), world.queued(0)), (0, 1));
}

#[test]
fn what_no_pe_takes_is_taken_back_the_youngest_first() {
    let mut world = host_of(3);
    let tasks: Vec<_> = (0..4).map(|_| world.spawn(0, Distance::ONE, 8)).collect();
    ask(&mut world, 1, 0);
    let kept: Vec<_> = std::iter::from_fn(|| world.run_one(0)).map(|parcel| parcel.task).collect();
    assert_eq!(kept, [tasks[3], tasks[2]]);
    world.tick(0, false);
    assert_eq!(world.ready(0), 2, "its workers are busy");
    for task in [tasks[1], tasks[0]] {
        world.tick(0, true);
        let parcel = world.run_one(0).expect("one is taken back");
        assert_eq!(parcel.task, task);
        assert_eq!(parcel.version, version(1), "its next step is news to all");
    }
    world.tick(0, true);
    assert!(world.run_one(0).is_none() && world.ready(0) == 0);
}

#[test]
fn a_fish_gets_what_is_on_the_board_when_the_pool_is_empty() {
    let mut world = World::new(eight(), &settings(), 1);
    world.share_boards_of_hosts();
    let tasks: Vec<_> = (0..4).map(|_| world.spawn(0, Distance::ONE, 8)).collect();
    ask(&mut world, 1, 0);
    while world.run_one(0).is_some() {}
    world.handle(0, 5, Message::Fish(fish_of(5)));
    let given = world.take_schedules().concat();
    assert_eq!(given.iter().map(|parcel| parcel.task).collect::<Vec<_>>(), [tasks[0]]);
    assert_eq!((given[0].version, world.ready(0)), (version(2), 1));
}

#[test]
fn home_is_told_when_the_victim_notices_and_only_then_is_the_slot_free() {
    let mut world = host_of(3);
    let task = world.spawn_supervised(0, Distance::ONE);
    ask(&mut world, 1, 0);
    world.tick(1, true);
    let parcel = world.run_one(1).expect("stolen");
    assert_eq!(parcel.version, version(1));
    world.seats[1].put(parcel);
    world.tick(0, false);
    world.flying.clear();
    // From PE 1 it goes to PE 2.
    world.spawn(1, Distance::ZERO, 0);
    ask(&mut world, 2, 1);
    world.tick(2, true);
    let ack = Message::Ack { future: task.future, version: version(3) };
    let sent: Vec<_> = world.flying.drain(..).map(|letter| letter.message).collect();
    assert_eq!(sent, [ack]);
    assert_eq!(world.taken(1), 1);
    world.tick(1, false);
    let notify = Message::Notify { future: task.future, version: version(2), to: pe(2) };
    let sent = world.flying.drain(..).map(|letter| letter.message);
    assert!(sent.into_iter().any(|message| message == notify));
    assert_eq!(world.taken(1), 0);
}

/// A supervised task that PE 0 posts and PE 1 takes.
fn taken() -> (World, TaskId) {
    let mut world = host_of(4);
    let task = world.spawn_supervised(0, Distance::ONE);
    ask(&mut world, 1, 0);
    world.tick(1, true);
    world.flying.clear();
    assert_eq!((world.taken(0), world.queued(1)), (1, 1));
    (world, task)
}

#[test]
fn a_result_that_comes_before_home_has_noticed_counts() {
    let (mut world, task) = taken();
    world.handle(0, 1, result(task));
    world.tick(0, false);
    world.mark_dead(0, 1);
    assert_eq!(world.seats[0].filled.len(), 1);
    assert_eq!((world.nodes[0].statistics().replicas, world.taken(0)), (0, 0));
}

#[test]
fn a_thief_that_is_dead_when_home_notices_makes_the_task_lost() {
    for notices_first in [false, true] {
        let (mut world, task) = taken();
        if notices_first {
            world.tick(0, false);
        }
        world.mark_dead(0, 1);
        world.tick(0, false);
        world.flying.clear();
        assert_eq!(world.nodes[0].statistics().replicas, 1, "{notices_first}");
        world.handle(0, 2, Message::Fish(fish_of(2)));
        let again = world.take_schedules().concat();
        assert_eq!((again[0].task, again[0].version.replica), (task, 1));
    }
}

#[test]
fn later_news_counts_more_than_what_home_notices() {
    let (mut world, task) = taken();
    let version = version(2);
    world.handle(0, 1, Message::Notify { future: task.future, version, to: pe(2) });
    world.tick(0, false);
    world.flying.clear();
    world.mark_dead(0, 2);
    assert_eq!(world.nodes[0].statistics().replicas, 1, "it was with PE 2");
}

#[test]
fn a_dead_pe_is_not_stolen_from() {
    let mut world = host_of(3);
    world.spawn_many(4, 0, Distance::ONE, 8);
    ask(&mut world, 1, 0);
    world.mark_dead(1, 0);
    world.tick(1, true);
    assert_eq!((world.queued(1), world.ready(0)), (0, 2));
}

#[test]
fn a_cancelled_task_is_taken_back_or_followed() {
    for is_taken in [false, true] {
        let mut world = host_of(2);
        let task = world.spawn_supervised(0, Distance::ONE);
        ask(&mut world, 1, 0);
        if is_taken {
            world.tick(1, true);
            world.flying.clear();
        }
        world.cancel(0, vec![task.future]);
        assert_eq!((world.ready(0), world.taken(0), world.queued(0)), (0, 0, 0));
        let cancel = Message::Cancel { futures: vec![task.future] };
        let sent: Vec<_> = world.flying.iter().map(|letter| &letter.message).collect();
        assert_eq!(sent, if is_taken { vec![&cancel] } else { vec![] });
        if is_taken {
            world.deliver_only();
        }
        assert_eq!(world.queued(1), 0);
    }
}

#[test]
fn a_guest_that_its_home_cancels_is_taken_back_as_well() {
    let mut world = host_of(3);
    let task = world.spawn_supervised(0, Distance::ONE);
    ask(&mut world, 1, 0);
    world.tick(1, true);
    world.spawn(1, Distance::ZERO, 0);
    world.tick(1, true);
    ask(&mut world, 2, 1);
    assert_eq!(world.ready(1), 1);
    world.handle(1, 0, Message::Cancel { futures: vec![task.future] });
    assert_eq!((world.ready(1), world.queued(1)), (0, 1));
}

#[test]
fn the_board_is_cleared_when_the_job_ends() {
    let (mut world, _) = taken();
    world.spawn_many(4, 0, Distance::ONE, 8);
    ask(&mut world, 2, 0);
    assert!(world.ready(0) > 0);
    world.end();
    assert_eq!((world.ready(0), world.taken(0)), (0, 0));
    world.flying.clear();
    world.tick(0, false);
    assert_eq!(world.flying.len(), 0);
}

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

/// A thief that has enough is not posted for.
#[test]
fn a_pe_that_has_enough_by_now_gets_nothing_posted() {
    let mut world = host_of(2);
    world.spawn_many(6, 0, Distance::ONE, 8);
    world.nodes[1].note_giver(pe(0));
    world.tick(1, true);
    world.spawn_many(6, 1, Distance::ONE, 8);
    world.tick(1, false);
    world.tick(0, false);
    assert_eq!(world.ready(0), 0);
    assert_eq!(world.act(0, |node, _| node.kept(Need::Starving)), 0);
}
