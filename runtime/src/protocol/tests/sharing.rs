//! The tasks that a victim gives away and those that it keeps.

use super::world::{World, eight, fish_of, flat, need, settings};
use crate::protocol::{Fish, FishingSettings, Message, Parcel};
use ultramarine_topology::{Distance, Topology};

fn fish(thief: u32, starving: bool, queued: u64) -> Message {
    Message::Fish(Fish { need: need(starving), queued, ..fish_of(thief) })
}

/// A victim with this number of tasks of this length in bytes, and a thief.
fn victim(settings: &FishingSettings, queued: usize, bytes: usize) -> World {
    let mut world = World::new(Topology::flat(2), settings, 1);
    world.spawn_many(queued, 0, Distance::ONE, bytes);
    world
}

/// The tasks that the thief gets for this FISH.
fn given(world: &mut World, victim: u32, fish: Message) -> Vec<Parcel> {
    world.handle(victim, 1, fish);
    let letter = world.flying.pop().expect("an answer");
    match letter.message {
        Message::Schedule { tasks, .. } => {
            assert!(!tasks.is_empty(), "a SCHEDULE carries a task");
            tasks
        }
        Message::NoWork { .. } => Vec::new(),
        other => panic!("no answer: {other:?}"),
    }
}

#[test]
fn radii_are_obeyed() {
    let (half, quarter) = (Distance::ONE.half(), Distance::ONE.half().half());
    // PE 4 is in the other rack, 2 on another host of the rack, 1 on the same host.
    for (thief, may_have) in [
        (4, &[false, false, false, true]),
        (2, &[false, false, true, true]),
        (1, &[false, true, true, true]),
    ] {
        for (radius, may_have) in
            [Distance::ZERO, quarter, half, Distance::ONE].iter().zip(may_have)
        {
            let mut world = World::new(eight(), &settings(), 1);
            world.spawn_many(100, 0, *radius, 0);
            let got = given(&mut world, 0, fish(thief, true, 0));
            assert_eq!(!got.is_empty(), *may_have, "radius {radius}, thief {thief}");
        }
    }
}

#[test]
fn the_smallest_radius_that_reaches_goes_first_and_of_these_the_oldest() {
    let settings = FishingSettings { schedule_tasks_max: 1, ..settings() };
    let half = Distance::ONE.half();
    let mut world = World::new(eight(), &settings, 1);
    let far = world.spawn(0, Distance::ONE, 0);
    let old = world.spawn(0, half, 0);
    world.spawn(0, half, 0);
    world.spawn(0, Distance::ZERO, 0);
    world.spawn(0, Distance::ZERO, 0);
    assert_eq!(given(&mut world, 0, fish(2, true, 0))[0].task, old);
    assert_eq!(given(&mut world, 0, fish(4, true, 0))[0].task, far);
}

#[test]
fn a_victim_keeps_some_unless_the_thief_is_starving() {
    let settings = FishingSettings { min_sched: 4, ..settings() };
    for queued in 0..12 {
        let mut world = victim(&settings, queued, 0);
        let got = given(&mut world, 0, fish(1, false, 0)).len();
        assert!(got == 0 || world.queued(0) >= settings.min_sched, "{got} of {queued}");
        assert_eq!(got > 0, queued > settings.min_sched, "{got} of {queued}");
    }
    let mut world = victim(&settings, 1, 0);
    assert_eq!(given(&mut world, 0, fish(1, true, 0)).len(), 1, "its last one");
}

#[test]
fn a_thief_never_has_more_than_its_victim_afterwards() {
    let settings = FishingSettings { min_sched: 0, ..settings() };
    for starving in [false, true] {
        for queued in 0..40u64 {
            for thief_queued in 0..40u64 {
                let mut world = victim(&settings, queued as usize, 0);
                let got = given(&mut world, 0, fish(1, starving, thief_queued)).len() as u64;
                // A starving thief starts one of them at once.
                let afterwards = (thief_queued + got).saturating_sub(u64::from(starving));
                let kept = world.queued(0) as u64;
                assert!(got == 0 || afterwards <= kept, "{got} of {queued} to {thief_queued}");
            }
        }
    }
}

#[test]
fn two_busy_pes_do_not_bounce_a_task() {
    for min_sched in [0, 1] {
        let settings = FishingSettings { min_sched, ..settings() };
        let mut world = victim(&settings, 1, 0);
        for round in 0..1000 {
            world.now += settings.max_fish_delay;
            world.tick(round % 2, false);
            world.deliver_all(|_| 0);
        }
        let schedules = world.nodes.iter().map(|node| node.statistics().by_distance[1].schedules);
        assert_eq!(schedules.sum::<u64>(), 0);
        assert_eq!(world.queued(0), 1);
    }
}

#[test]
fn several_small_tasks_go_together() {
    let settings =
        FishingSettings { schedule_tasks_max: 10, schedule_bytes_max: 1000, ..settings() };
    let given = |bytes, queued| {
        let mut world = victim(&settings, queued, bytes);
        given(&mut world, 0, fish(1, true, 0)).len()
    };
    assert_eq!(given(8, 100), 10, "as many as may go in one SCHEDULE");
    assert_eq!(given(8, 6), 3, "the fair share");
    assert_eq!(given(5000, 100), 1, "a task over the limit goes alone");
}

#[test]
fn no_schedule_of_several_tasks_passes_the_limit_of_bytes() {
    let settings =
        FishingSettings { schedule_tasks_max: 10, schedule_bytes_max: 1000, ..settings() };
    for (sizes, expected) in [
        (&[100, 100, 100, 5000, 100, 100, 100, 100][..], &[3, 1][..]),
        (&[280; 20][..], &[3, 1][..]),
        (&[10; 20][..], &[10][..]),
    ] {
        let mut world = victim(&settings, 0, 0);
        sizes.iter().for_each(|bytes| world.spawn_many(1, 0, Distance::ONE, *bytes));
        world.handle(0, 1, fish(1, true, 0));
        let schedules = world.take_schedules();
        for tasks in &schedules {
            let bytes: usize = tasks.iter().map(Parcel::bytes).sum();
            assert!(tasks.len() == 1 || bytes <= 1000, "{bytes} bytes in {} tasks", tasks.len());
        }
        assert_eq!(schedules.iter().map(Vec::len).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_placed_task_and_a_result_reach_the_host() {
    let mut world = flat(2);
    let task = world.spawn(0, Distance::ZERO, 3);
    let parcel = world.run_one(0).expect("just spawned");
    world.handle(1, 0, Message::Place(parcel.clone()));
    assert_eq!(world.seats[1].placed, [parcel]);
    assert_eq!(world.nodes[1].statistics().placed, 1);
    let outcome = Ok(crate::protocol::message::Bytes::from(vec![9]));
    world.handle(0, 1, Message::Result { future: task.future, outcome: outcome.clone() });
    assert_eq!(world.seats[0].filled, [(task.future, outcome)]);
}

/// The limit of a SCHEDULE, and one byte less.
#[test]
fn tasks_that_just_fit_go_together() {
    for (missing, schedules) in [(0, 1), (1, 2)] {
        let mut world = World::new(eight(), &settings(), 1);
        world.spawn(0, Distance::ONE, 100);
        let bytes = world.run_one(0).map(|parcel| parcel.bytes()).expect("it waits");
        let schedule_bytes_max = 2 * bytes - missing;
        let settings = FishingSettings { schedule_bytes_max, ..settings() };
        let mut world = World::new(eight(), &settings, 1);
        world.spawn_many(4, 0, Distance::ONE, 100);
        world.handle(0, 1, fish(1, true, 0));
        let tasks = world.take_schedules();
        assert_eq!((tasks.len(), tasks.concat().len()), (schedules, 2), "{tasks:?}");
    }
}

/// The parts behind it are parts of parts.
#[test]
fn of_a_problem_that_is_divided_the_thief_gets_one_part() {
    for (has_forks, count) in [(false, 4), (true, 1)] {
        let mut world = World::new(eight(), &settings(), 1);
        world.seats[0].has_forks = has_forks;
        world.spawn_many(8, 0, Distance::ONE, 0);
        assert_eq!(given(&mut world, 0, fish(1, true, 0)).len(), count);
    }
}
