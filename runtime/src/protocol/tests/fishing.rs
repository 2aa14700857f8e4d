//! Which victims a thief asks, and how often.

use super::world::{World, eight, flat, pe, settings};
use crate::protocol::{FishingSettings, Message, Need};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;
use ultramarine_topology::{Distance, LevelKind, Place, Topology};

#[test]
fn a_fish_is_answered_with_a_task() {
    let mut world = flat(2);
    let task = world.spawn(0, Distance::ONE, 5);
    assert!(world.tick(1, true).is_some());
    let fish = world.deliver_only();
    let Message::Fish(request) = fish.message else { panic!("{:?}", fish.message) };
    assert!(request.thief == pe(1) && request.need == Need::Starving);
    world.now += Duration::from_micros(3);
    let schedule = world.deliver_only();
    assert!(matches!(schedule.message, Message::Schedule { .. }));
    assert_eq!(world.run_one(1).map(|parcel| parcel.task), Some(task));
    assert_eq!(world.queued(0), 0);

    let thief = world.nodes[1].statistics();
    let row = thief.by_distance.last().expect("a row for distance 1");
    assert_eq!((row.fishes, row.schedules, row.steals, row.bytes, row.no_works), (1, 1, 1, 5, 0));
    assert_eq!(thief.steal_latency.count(), 1);
}

#[test]
fn a_pe_above_the_low_water_mark_does_not_fish() {
    let mut world = flat(2);
    world.spawn(1, Distance::ONE, 0);
    world.spawn(1, Distance::ONE, 0);
    assert_eq!(world.tick(1, true), None);
    assert!(world.flying.is_empty());
    world.run_one(1);
    world.tick(1, false);
    let (_, fish) = world.catch_fish();
    assert_eq!((fish.queued, fish.need), (1, Need::Ahead));
}

#[test]
fn one_fish_at_a_time() {
    let mut world = World::new(eight(), &settings(), 1);
    let due = world.tick(3, true);
    for _ in 0..5 {
        assert_eq!(world.tick(3, true), due);
    }
    world.catch_fish();
}

#[test]
fn a_pe_that_is_alone_never_fishes() {
    let mut world = flat(1);
    assert_eq!(world.tick(0, true), None);
    assert!(world.flying.is_empty());
}

#[test]
fn a_fish_wanders_outwards_until_its_hops_run_out() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut world = World::new(eight(), &settings(), seed);
        world.tick(0, true);
        let mut hops_left = settings().max_hops;
        let mut distance = Distance::ZERO;
        while !world.flying.is_empty() {
            let letter = world.deliver_only();
            let Message::Fish(fish) = letter.message else { panic!("{letter:?}") };
            let here = world.topology.distance(letter.to, fish.thief);
            assert!(here >= distance, "nearer to the thief again: {here} after {distance}");
            assert_eq!((fish.thief, fish.hops_left), (pe(0), hops_left));
            distance = here;
            hops_left = hops_left.wrapping_sub(1);
            seen.insert(letter.to.number());
        }
        assert_eq!(hops_left, u8::MAX, "all {} hops were used", settings().max_hops);
        let forwards: u64 = (world.nodes.iter())
            .flat_map(|node| &node.statistics().by_distance)
            .map(|row| row.forwards)
            .sum();
        assert_eq!(forwards, u64::from(settings().max_hops));
    }
    assert_eq!(seen, (1..8).collect(), "each other PE is asked now and then");
}

#[test]
fn the_next_fish_searches_a_wider_ball_and_after_a_success_asks_the_giver() {
    let mut asked = [const { BTreeSet::new() }; 6];
    for seed in 0..300 {
        let mut world = World::new(eight(), &settings(), seed);
        for victims in asked.iter_mut().take(4) {
            world.now += Duration::from_secs(1);
            world.tick(0, true);
            victims.insert(refuse(&mut world));
        }
        // The fifth goes to the rack; it succeeds.
        world.now += Duration::from_secs(1);
        world.tick(0, true);
        feed(&mut world, 7);
        world.tick(0, true);
        // It has nothing left, and the search begins anew.
        asked[4].insert(refuse(&mut world));
        world.now += Duration::from_secs(1);
        world.tick(0, true);
        asked[5].insert(world.catch_fish().0.number());
    }
    let sets = asked.map(|set| set.into_iter().collect::<Vec<_>>());
    let all: Vec<u32> = (1..8).collect();
    assert_eq!(sets, [vec![1], vec![1, 2, 3], all, vec![1], vec![7], vec![1]]);
}

const NANOSECOND: Duration = Duration::from_nanos(1);

/// PE 0 gets a task of this PE for its FISH, and runs it.
fn feed(world: &mut World, giver: u32) {
    let (_, fish) = world.catch_fish();
    world.spawn(giver, Distance::ONE, 0);
    world.handle(giver, 0, Message::Fish(fish));
    world.deliver_only();
    world.run_one(0);
}

/// The FISH of PE 0 finds nothing. Returns the PE that it asked.
fn refuse(world: &mut World) -> u32 {
    let (victim, fish) = world.catch_fish();
    world.handle(0, 1, Message::NoWork { serial: fish.serial });
    victim.number()
}

/// The waits after the first NOWORKs in a row.
fn waits(world: &mut World, count: usize) -> Vec<Duration> {
    let mut waits = Vec::new();
    for _ in 0..count {
        if world.flying.is_empty() {
            world.tick(0, true);
        }
        refuse(world);
        let due = world.tick(0, true).expect("it waits");
        assert!(world.flying.is_empty(), "not before the wait is over");
        waits.push(due.saturating_sub(world.now));
        world.now = due.saturating_sub(NANOSECOND);
        world.tick(0, true);
        assert!(world.flying.is_empty(), "not a moment before the wait is over");
        world.now = due;
        world.tick(0, true);
    }
    waits
}

/// The number of jobs over which the means are taken.
const SEEDS: u32 = 400;

#[test]
fn waits_grow_between_their_limits_and_success_resets_them() {
    let settings = FishingSettings {
        min_fish_delay: Duration::from_micros(10),
        max_fish_delay: Duration::from_micros(640),
        ..settings()
    };
    let mut means = [Duration::ZERO; 10];
    for seed in 0..SEEDS {
        let mut world = World::new(Topology::flat(2), &settings, u64::from(seed));
        for (mean, wait) in means.iter_mut().zip(waits(&mut world, 10)) {
            assert!(
                (settings.min_fish_delay..=settings.max_fish_delay).contains(&wait),
                "{wait:?}"
            );
            *mean += wait / SEEDS;
        }
        feed(&mut world, 1);
        let after_success = waits(&mut world, 1)[0];
        assert!(after_success <= 2 * settings.min_fish_delay, "{after_success:?}");
    }
    assert!(means[0] <= 2 * settings.min_fish_delay, "{means:?}");
    for pair in means[1..6].windows(2) {
        assert!(pair[1] > pair[0] * 3 / 2, "the mean about doubles: {means:?}");
    }
    for mean in &means[7..] {
        let range = settings.max_fish_delay / 4..settings.max_fish_delay * 3 / 4;
        assert!(range.contains(mean), "at the limit the mean is about half of it: {means:?}");
    }
}

#[test]
fn a_pe_that_runs_dry_asks_anew_once_for_each_success() {
    let (min_fish_delay, max_fish_delay) = (Duration::from_micros(1), Duration::from_secs(1));
    let settings = FishingSettings { min_fish_delay, max_fish_delay, ..settings() };
    let mut world = World::new(Topology::flat(2), &settings, 1);
    // While it asks ahead of need it is refused, until the waits are long.
    let refused = |world: &mut World| {
        world.tick(0, false);
        refuse(world);
        let due = world.tick(0, false).expect("it waits");
        assert!(world.flying.is_empty());
        due
    };
    for _ in 0..40 {
        world.now = refused(&mut world);
    }
    assert!(refused(&mut world) > world.now + min_fish_delay);
    world.tick(0, true);
    refuse(&mut world);
    let due = world.tick(0, true).expect("it waits");
    assert!(due <= world.now + 2 * min_fish_delay, "the wait begins anew");
    // Another need within the same dry spell changes nothing.
    world.tick(0, false);
    world.tick(0, true);
    assert!(world.flying.is_empty(), "once");
    world.now = due;
    world.tick(0, true);
    feed(&mut world, 1);
    // It asks once more after a success, also if it runs dry before the answer comes.
    world.tick(0, false);
    let (_, fish) = world.catch_fish();
    world.tick(0, true);
    world.handle(0, 1, Message::NoWork { serial: fish.serial });
    world.tick(0, true);
    assert_eq!(world.catch_fish().0.number(), 1);
}

#[test]
fn a_dead_giver_is_not_asked() {
    let mut world = flat(3);
    world.tick(0, true);
    feed(&mut world, 2);
    world.mark_dead(0, 2);
    world.tick(0, true);
    assert_eq!(world.catch_fish().0, pe(1));
}

#[test]
fn a_pe_whose_neighbours_are_dead_asks_others_further_away() {
    let mut asked = BTreeSet::new();
    for seed in 0..30 {
        let mut world = World::new(eight(), &settings(), seed);
        world.mark_all_dead(0, &[1, 2, 3]);
        assert!(world.tick(0, true).is_some());
        asked.insert(world.catch_fish().0.number());
        world.mark_all_dead(0, &[4, 5, 6, 7]);
        assert_eq!(world.tick(0, true), None, "all are dead");
        assert!(world.flying.is_empty());
    }
    assert_eq!(asked, (4..8).collect());
}

#[test]
fn a_giver_that_does_not_answer_is_not_asked_again() {
    let mut asked = BTreeSet::new();
    for seed in 0..20 {
        let mut world = World::new(Topology::flat(9), &settings(), seed);
        world.tick(0, true);
        feed(&mut world, 5);
        world.now = world.tick(0, true).expect("it waits");
        assert_eq!(world.catch_fish().0, pe(5));
        world.tick(0, true);
        asked.insert(world.catch_fish().0);
    }
    assert!(asked.len() > 3, "{asked:?}");
}

#[test]
fn a_lost_fish_is_given_up_at_its_deadline() {
    let mut world = flat(2);
    let deadline = settings().fish_deadline;
    assert_eq!(world.tick(0, true), Some(deadline));
    world.catch_fish();
    world.now = deadline.saturating_sub(NANOSECOND);
    assert_eq!(world.tick(0, true), Some(deadline));
    assert!(world.flying.is_empty());
    assert_eq!(world.nodes[0].statistics().fishes_lost, 0);
    world.now = deadline;
    world.tick(0, true);
    let (_, fish) = world.catch_fish();
    assert_eq!(fish.serial, 2);
    assert_eq!(world.nodes[0].statistics().fishes_lost, 1);
}

#[test]
fn a_fish_that_is_not_answered_makes_the_pe_wait_longer_for_the_next_answer() {
    let mut world = flat(2);
    let cast = |world: &mut World| {
        let due = world.tick(0, true).expect("it waits");
        let (_, fish) = world.catch_fish();
        (fish, due.saturating_sub(std::mem::replace(&mut world.now, due)))
    };
    let deadline = settings().fish_deadline;
    for factor in [1, 2, 4, 8, 16, 16] {
        assert_eq!(cast(&mut world).1, factor * deadline);
    }
    let (fish, _) = cast(&mut world);
    // The pause before the next FISH is over.
    world.handle(0, 1, Message::NoWork { serial: fish.serial });
    assert_eq!(cast(&mut world).1, 8 * deadline, "there was an answer");
}

#[test]
fn after_a_death_the_next_answer_is_awaited_no_longer_than_the_first() {
    let mut world = flat(3);
    for _ in 0..3 {
        world.now = world.tick(0, true).expect("it waits");
        world.catch_fish();
    }
    world.mark_dead(0, 2);
    world.tick(0, true);
    world.catch_fish();
    let due = world.tick(0, true);
    assert_eq!(due, Some(world.now + settings().fish_deadline));
}

#[test]
fn a_pe_that_never_answers_is_not_the_only_one_asked() {
    let mut world = World::new(eight(), &settings(), 1);
    let mut asked = HashSet::new();
    for _ in 0..20 {
        world.now = world.tick(0, true).expect("it waits");
        asked.insert(world.catch_fish().0);
    }
    assert!(asked.len() > 3, "{asked:?}");
}

#[test]
fn a_pe_that_lacks_work_keeps_its_only_task() {
    let settings = FishingSettings { min_sched: 0, ..settings() };
    for (starving, given) in [(true, 0), (false, 1)] {
        let mut world = World::new(Topology::flat(2), &settings, 1);
        world.spawn(1, Distance::ONE, 0);
        world.tick(1, starving);
        world.flying.clear();
        world.tick(0, true);
        let (_, fish) = world.catch_fish();
        world.handle(1, 0, Message::Fish(fish));
        world.deliver_all(|flying| flying - 1);
        assert_eq!(world.queued(0), given, "starving: {starving}");
    }
}

#[test]
fn a_late_schedule_is_still_taken_and_ends_no_other_fish() {
    let mut world = flat(2);
    let task = world.spawn(1, Distance::ONE, 0);
    world.tick(0, true);
    world.deliver_only();
    let late = world.flying.pop().expect("the SCHEDULE");
    world.now = settings().fish_deadline;
    world.tick(0, true);
    let (_, second) = world.catch_fish();
    world.handle(0, 1, late.message);
    assert_eq!(world.run_one(0).map(|parcel| parcel.task), Some(task));
    assert_eq!(world.nodes[0].statistics().steal_latency.count(), 0, "not the latency of any");

    let due = world.tick(0, true);
    assert_eq!(due, Some(3 * settings().fish_deadline), "the second FISH is still waited for");
    world.handle(0, 1, Message::NoWork { serial: second.serial });
    assert!(world.tick(0, true) < due);
}

#[test]
fn a_no_work_that_is_late_or_comes_twice_changes_nothing() {
    let mut world = flat(2);
    world.tick(0, true);
    let (_, first) = world.catch_fish();
    world.handle(0, 1, Message::NoWork { serial: first.serial });
    let due = world.tick(0, true);
    for _ in 0..10 {
        world.handle(0, 1, Message::NoWork { serial: first.serial });
        assert_eq!(world.tick(0, true), due, "the wait is as it was");
    }
    world.now = due.expect("it waits");
    let due = world.tick(0, true);
    let (_, second) = world.catch_fish();
    world.handle(0, 1, Message::NoWork { serial: first.serial });
    world.handle(0, 1, Message::NoWork { serial: second.serial + 7 });
    assert_eq!(world.tick(0, true), due, "the second FISH is still waited for");
}

#[test]
fn a_fish_reaches_a_ring_of_one() {
    let racks = ["a", "a", "b"].map(|rack| Place::from_pairs([(LevelKind::Switch, rack)]));
    let topology = Topology::new(&racks, &[1; 3]).expect("consistent");
    let mut world = World::new(topology, &settings(), 1);
    world.tick(0, true);
    assert_eq!(world.deliver_only().to, pe(1));
    assert_eq!(world.deliver_only().to, pe(2));
    assert!(world.flying.is_empty());
}
