//! FISHes that find nothing wait for work at the last PE that they asked.

use super::world::{World, fish_of, flat, parcel, settings};
use crate::protocol::{Fish, FishingSettings, Message, Parcel, Version};
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// A job in which the FISH of PE 0 waits at PE 1, and until when.
fn waiting_fish(settings: &FishingSettings) -> (World, Duration) {
    let mut world = World::new(Topology::flat(2), settings, 1);
    // PE 1 has cast a FISH of its own, which is lost.
    world.tick(1, false);
    world.flying.clear();
    world.tick(0, true);
    world.deliver_only();
    let until = world.tick(1, false).expect("it must answer then");
    assert!(world.flying.is_empty(), "no NOWORK yet");
    (world, until)
}

#[test]
fn a_fish_waits_at_the_last_pe_and_gets_what_comes() {
    let (mut world, until) = waiting_fish(&settings());
    assert!(until > world.now && until <= world.now + 2 * settings().min_fish_delay);
    let task = world.spawn(1, Distance::ONE, 0);
    world.spawn(1, Distance::ONE, 0);
    world.tick(1, false);
    let letter = world.deliver_only();
    assert!(matches!(letter.message, Message::Schedule { serial: 1, .. }), "{letter:?}");
    assert_eq!(world.run_one(0).map(|parcel| parcel.task), Some(task));
    // It has been answered.
    world.now = until;
    world.tick(1, false);
    assert!(world.flying.iter().all(|letter| !matches!(letter.message, Message::NoWork { .. })));
}

#[test]
fn a_fish_that_waits_gets_the_only_task_of_a_pe_that_has_enough_to_do() {
    let (mut world, _) = waiting_fish(&settings());
    let task = world.spawn(1, Distance::ONE, 0);
    world.tick(1, false);
    world.deliver_only();
    assert_eq!(world.run_one(0).map(|parcel| parcel.task), Some(task));
}

#[test]
fn a_fish_that_has_waited_for_long_enough_is_answered_with_nowork() {
    let (mut world, until) = waiting_fish(&settings());
    world.now = until.saturating_sub(NANOSECOND);
    world.tick(1, false);
    assert!(world.flying.is_empty(), "not a moment before");
    world.now = until;
    world.tick(1, false);
    let letter = world.deliver_only();
    assert_eq!(letter.message, Message::NoWork { serial: 1 });
    // The thief has paused for as long already.
    world.tick(0, true);
    assert_eq!(world.catch_fish().1.serial, 2);
}

#[test]
fn a_fish_that_gets_work_at_the_last_moment_gets_one_answer() {
    let (mut world, until) = waiting_fish(&settings());
    world.spawn_many(4, 1, Distance::ONE, 0);
    world.now = until;
    world.tick(1, false);
    let answers = world.flying.iter().filter(|letter| letter.to == Pe::ROOT);
    let answers: Vec<&Message> = answers.map(|letter| &letter.message).collect();
    assert!(matches!(answers[..], [Message::Schedule { serial: 1, .. }]), "{answers:?}");
}

#[test]
fn the_fish_of_a_dead_thief_gets_nothing() {
    let (mut world, until) = waiting_fish(&settings());
    world.mark_dead(1, 0);
    world.spawn_many(4, 1, Distance::ONE, 0);
    world.now = until;
    world.tick(1, false);
    assert!(world.flying.is_empty() && world.queued(1) == 4);
}

#[test]
fn a_fish_that_may_not_have_the_next_task_does_not_wait_for_it() {
    let mut world = flat(3);
    world.tick(1, false);
    world.flying.clear();
    let fish = Fish { serial: 7, patience: Duration::from_millis(20), ..fish_of(0) };
    world.handle(1, 0, Message::Fish(fish));
    assert!(world.flying.is_empty());
    // A task that was lost once is for neither the root nor its own home.
    let version = Version { replica: 1, age: 0 };
    let parcel = Parcel { version, ..parcel(2, 1, true) };
    for serial in [1, 2] {
        let tasks = vec![parcel.clone()];
        world.handle(1, 2, Message::Schedule { serial, tasks });
    }
    world.flying.clear();
    world.tick(1, false);
    let letter = world.deliver_only();
    assert_eq!((letter.to, letter.message), (Pe::ROOT, Message::NoWork { serial: 7 }));
    assert_eq!(world.queued(1), 2);
}

#[test]
fn a_patience_without_limit_is_cut_short() {
    let mut world = flat(2);
    world.tick(1, false);
    world.flying.clear();
    world.now = Duration::from_secs(1);
    world.handle(1, 0, Message::Fish(Fish { patience: Duration::MAX, ..fish_of(0) }));
    assert!(world.tick(1, false).is_some_and(|due| due <= world.now + settings().fish_deadline));
}

#[test]
fn a_fish_does_not_wait_for_longer_than_its_answer_is_awaited() {
    let long = Duration::from_secs(10);
    let settings = FishingSettings { min_fish_delay: long, max_fish_delay: long, ..settings() };
    let (world, until) = waiting_fish(&settings);
    assert!(until < world.now + settings.fish_deadline);
}

#[test]
fn only_some_fishes_wait_at_a_pe() {
    let mut world = flat(100);
    for thief in 1..100 {
        let fish = Fish { patience: Duration::from_secs(1), ..fish_of(thief) };
        world.handle(0, thief, Message::Fish(fish));
    }
    assert!((1..50).contains(&world.flying.len()), "the others hear at once that there is nothing");
}
