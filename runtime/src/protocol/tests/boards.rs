//! Stealing from boards: what is posted, who takes it, and what home knows.

use super::board_memory::LIMITS;
use super::world::{World, eight, fish_of, flat, parcel, pe, settings};
use crate::protocol::message::Bytes;
use crate::protocol::{Host as _, Message, Need, Parcel, TaskId, Version};
use ultramarine_topology::Distance;

/// PEs of one host.
pub(super) fn host_of(pes: u32) -> World {
    let mut world = flat(pes);
    world.share_boards_of_all();
    world
}

/// The thief asks, and the victim, whose workers are busy, posts something.
pub(super) fn ask(world: &mut World, thief: u32, victim: u32) {
    world.act(thief, |_, seat| {
        let boards = seat.boards().expect("they share their boards");
        boards.set_need(Some((Need::Starving, 0)));
        boards.ask(pe(victim));
    });
    world.tick(victim, false);
    world.flying.clear();
}

fn version(age: u32) -> Version {
    Version { replica: 0, age }
}

/// The number of tasks that this PE has taken from boards.
pub(super) fn from_boards(world: &World, at: u32) -> u64 {
    let rows = &world.nodes[at as usize].statistics().by_distance;
    rows.iter().map(|row| row.from_boards).sum()
}

/// The result of a task.
pub(super) fn result(task: TaskId) -> Message {
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
    assert_eq!(world.nodes[1].statistics().steal_latency.count(), 1);
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
