//! How a job ends.

use super::world::{World, chooser, flat, pe, settings};
use crate::protocol::{Leaving, Message, Phase};
use std::time::Duration;
use ultramarine_topology::{Distance, Topology};

/// A busy job: each PE has sent a FISH, and some answers are on their way.
fn busy(pes: u32, seed: u64) -> World {
    let mut choose = chooser(seed);
    let mut world = World::new(Topology::flat(pes), &settings(), seed);
    for _ in 0..choose(60) {
        let at = choose(pes as usize) as u32;
        world.now += Duration::from_micros(100);
        match choose(4) {
            0 => drop(world.spawn(at, Distance::ONE, 0)),
            1 if !world.flying.is_empty() => {
                let index = choose(world.flying.len());
                world.deliver(index);
            }
            _ => drop(world.tick(at, choose(2) == 0)),
        }
    }
    world
}

/// `World` checks that a PE that took leave sends nothing but a RELEASE that it passes on.
#[test]
fn all_are_released_once_and_send_nothing_after_taking_leave() {
    for pes in 1..=20 {
        for seed in 0..50 {
            let mut world = busy(pes, seed);
            world.end();
            world.deliver_all(chooser(seed));
            assert_eq!(world.phases(), vec![Phase::Released; pes as usize], "seed {seed}");
            assert!(world.seats.iter().all(|seat| seat.shut_down == 1), "{pes} PEs, seed {seed}");
            assert_eq!(world.farewells.len() as u32, pes - 1, "all but the root, once");
        }
    }
}

#[test]
fn no_pe_is_released_before_all_have_taken_leave() {
    for seed in 0..200 {
        let mut world = busy(13, seed);
        let mut choose = chooser(seed);
        world.end();
        for _ in 0..2000 {
            if let Some(last) = world.flying.len().checked_sub(1) {
                world.deliver(choose(last + 1));
            }
            world.take_leave(choose(13) as u32);
            let released = world.phases().contains(&Phase::Released);
            assert!(!released || world.farewells.len() == 12, "seed {seed}");
        }
        assert_eq!(world.phases(), [Phase::Released; 13], "seed {seed}");
    }
}

/// Some tasks are stolen, and cancelled before their home knows where they are. `World` checks that
/// no PE sends a CANCEL after taking leave.
#[test]
fn tasks_are_cancelled_where_they_are_until_their_home_takes_leave() {
    const PES: u32 = 5;
    let mut cancels = [0, 0];
    for seed in 0..1000 {
        let mut choose = chooser(seed);
        let mut world = World::new(Topology::flat(PES), &settings(), seed);
        let mut tasks: Vec<_> =
            (0..40).map(|n| world.spawn_supervised(n % 2, Distance::ONE)).collect();
        let ends_at = 30 + choose(200);
        for step in 0..400 {
            if step == ends_at {
                world.end();
            }
            world.now += Duration::from_micros(100);
            match choose(6) {
                0 => drop(world.tick(choose(PES as usize) as u32, true)),
                1 if !tasks.is_empty() => {
                    let task = tasks.swap_remove(choose(tasks.len()));
                    let before = world.flying.len();
                    world.cancel(task.home.number(), vec![task.future]);
                    cancels[usize::from(step > ends_at)] += world.flying.len() - before;
                }
                2 => world.take_leave(choose(PES as usize) as u32),
                _ if !world.flying.is_empty() => {
                    world.deliver(choose(world.flying.len()));
                }
                _ => {}
            }
        }
        world.deliver_all(&mut choose);
        assert_eq!(world.phases(), [Phase::Released; PES as usize], "seed {seed}");
    }
    assert!(cancels[0] > 100, "{cancels:?}");
}

#[test]
fn a_release_out_of_turn_ends_the_job_here() {
    let mut world = flat(3);
    world.handle(1, 2, Message::Release);
    assert_eq!(world.phases()[1], Phase::Released);
    assert_eq!(world.seats[1].shut_down, 1, "no task goes on");
}

#[test]
fn a_pe_that_is_ending_neither_fishes_nor_gives() {
    let mut world = flat(3);
    world.spawn_many(10, 1, Distance::ONE, 0);
    world.tick(2, true);
    world.end();
    world.deliver_all(chooser(3));
    assert_eq!(world.queued(1) + world.queued(2), 10);
    let fishes = |world: &World| world.nodes[2].statistics().by_distance[1].fishes;
    let before = fishes(&world);
    world.now += Duration::from_secs(9);
    assert_eq!(world.tick(2, true), None);
    assert_eq!(fishes(&world), before);
}

#[test]
fn ending_twice_is_ending_once() {
    let mut world = flat(4);
    world.end();
    world.end();
    assert_eq!(world.flying.len(), 2, "SHUTDOWN to each child, once");
    world.deliver_all(|_| 0);
    world.end();
    assert!(world.flying.is_empty());
}

#[test]
fn a_failure_reaches_the_root() {
    let mut world = flat(5);
    let failed = |reason: &str| Message::Failed { reason: reason.to_owned() };
    world.handle(0, 3, failed("no room"));
    assert_eq!(world.seats[0].failures, [(pe(3), "no room".to_owned())]);
    world.end();
    world.handle(0, 4, failed("the job is ending, it says"));
    assert_eq!(world.seats[0].failures.len(), 1, "the job is ending already");
}

/// The time after which a PE may leave, in milliseconds since the job ended there. The PE is never
/// idle: others acknowledge nothing, except SHUTDOWN if `has_reached`.
fn leaves_after(goodbye_at: Option<u64>, has_failures: bool, has_reached: bool) -> Option<u64> {
    let mut world = flat(4);
    if has_failures {
        world.mark_dead(1, 3);
    }
    let (node, seat, mut leaving) = (&mut world.nodes[1], &mut world.seats[1], Leaving::default());
    node.end(seat);
    (0..10_000).find(|ms| {
        let now = Duration::from_millis(*ms);
        if goodbye_at == Some(*ms) {
            leaving.hear_goodbye(now);
        }
        leaving.try_take_leave(node, now, false, |_| has_reached, seat);
        leaving.may_leave(node, false)
    })
}

#[test]
fn a_pe_waits_for_others_until_one_has_died_or_left() {
    assert_eq!(leaves_after(None, false, true), None, "all may still answer");
    assert_eq!(leaves_after(None, true, true), Some(50), "SHUTDOWN has arrived");
    assert_eq!(leaves_after(None, true, false), Some(500));
    assert_eq!(leaves_after(Some(700), false, false), Some(1200), "after a goodbye");
    assert_eq!(leaves_after(Some(700), true, false), Some(500), "a death is enough");
}

#[test]
fn deaths_that_are_heard_of_together_cost_one_new_shutdown_for_each_child() {
    let mut world = flat(9);
    world.end();
    world.flying.clear();
    world.mark_all_dead(0, &[1, 2, 3, 2]);
    let told: Vec<u32> = world.flying.iter().map(|letter| letter.to.number()).collect();
    assert_eq!(told, [4, 5], "the row is 0 4 5 6 7 8");
    world.mark_all_dead(0, &[3, 1]);
    assert_eq!(world.flying.len(), 2, "known already");
}

#[test]
fn after_a_death_a_pe_leaves_without_taking_leave() {
    let mut world = flat(3);
    world.handle(2, 0, Message::Shutdown);
    world.mark_dead(2, 1);
    world.flying.clear();
    world.take_leave(2);
    assert_eq!(world.phases()[2], Phase::Released);
    assert!(world.flying.is_empty(), "{:?}", world.flying);
}
