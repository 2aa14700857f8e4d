//! Deaths that cost many tasks.

use super::world::{Letter, World, fish_of, flat, parcel, pe};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::settings::LOSSES_PER_TURN;
use crate::protocol::{Fish, Message, Need, Parcel, Version};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Tasks of PE 0, numbered from 1, that are on PE 1.
fn away(pes: u32, tasks: u64, supervised: bool) -> World {
    let mut world = flat(pes);
    for future in 1..=tasks {
        world.place(0, 1, parcel(0, future, supervised));
        world.flying.clear();
    }
    world
}

/// Lets PE 0 take turns until it has no losses to work off. Returns the number of tasks that each
/// turn lost, ended or took back.
fn turns(world: &mut World, count: impl Fn(&World) -> usize) -> Vec<usize> {
    let (mut counts, mut last) = (vec![count(world)], count(world));
    while world.tick(0, true) == Some(world.now) {
        counts.push(count(world) - last);
        last = count(world);
    }
    counts.push(count(world) - last);
    counts
}

#[test]
fn a_turn_loses_a_limited_number_of_tasks() {
    let tasks = 3 * LOSSES_PER_TURN + 7;
    for supervised in [true, false] {
        let mut world = away(4, tasks as u64, supervised);
        world.mark_dead(0, 1);
        let counts = turns(&mut world, |world| {
            let statistics = world.nodes[0].statistics();
            assert_eq!(statistics.lost as usize, world.seats[0].filled.len());
            (statistics.replicas + statistics.lost) as usize
        });
        assert_eq!(counts.iter().sum::<usize>(), tasks, "all, and each once");
        assert!(counts.iter().all(|count| *count <= LOSSES_PER_TURN), "{counts:?}");
    }
}

#[test]
fn a_turn_takes_back_a_limited_number_of_tasks() {
    let tasks = 3 * LOSSES_PER_TURN + 7;
    let mut world = away(2, tasks as u64, true);
    world.mark_dead(0, 1);
    let counts = turns(&mut world, |world| world.queued(0));
    assert_eq!(counts.iter().sum::<usize>(), tasks);
    assert!(counts.iter().all(|count| *count <= LOSSES_PER_TURN), "{counts:?}");
}

#[test]
fn a_second_death_waits_for_the_losses_of_the_first() {
    let tasks = 2 * LOSSES_PER_TURN as u64;
    let mut world = away(4, tasks, false);
    world.place(0, 2, parcel(0, tasks + 1, false));
    world.mark_dead(0, 1);
    world.mark_dead(0, 2);
    assert_eq!(world.seats[0].filled.len(), LOSSES_PER_TURN);
    turns(&mut world, |_| 0);
    assert_eq!(world.seats[0].filled.len() as u64, tasks + 1);
    let last = world.seats[0].filled.last();
    assert_eq!(last, Some(&(tasks + 1, Err(TaskError::Lost { pe: pe(2) }))));
}

/// While a task waits to be marked as lost, news may say that it is elsewhere or has ended.
#[test]
fn news_of_a_task_that_waits_to_be_lost_is_believed() {
    let tasks = LOSSES_PER_TURN as u64 + 3;
    let mut world = away(4, tasks, true);
    world.mark_dead(0, 1);
    let [at_another, home_again, ended] = [tasks - 2, tasks - 1, tasks];
    // PE 1 had handed them on, and its NOTIFYs were lost with it.
    let version = Version { replica: 0, age: 3 };
    world.handle(0, 2, Message::Ack { future: at_another, version });
    let version = Version { replica: 0, age: 2 };
    let home_again = Parcel { version, ..parcel(0, home_again, true) };
    world.handle(0, 2, Message::Schedule { serial: 1, tasks: vec![home_again.clone()] });
    world.handle(0, 2, Message::Result { future: ended, outcome: Ok(Bytes::default()) });
    turns(&mut world, |_| 0);
    assert_eq!(world.nodes[0].statistics().replicas, LOSSES_PER_TURN as u64);
    assert_eq!(world.run_one(0).map(|parcel| parcel.task), Some(home_again.task));
    // The one that is at PE 2 is lost with PE 2.
    world.mark_dead(0, 2);
    turns(&mut world, |_| 0);
    assert_eq!(world.nodes[0].statistics().replicas, LOSSES_PER_TURN as u64 + 1);
}

/// A hundred thousand tasks that this thief may not have wait before a hundred thousand that it
/// may have. A victim that looked at each of them for each FISH would take for ever.
#[test]
fn the_choice_for_a_thief_does_not_look_at_all_lost_tasks() {
    const TASKS: u64 = 100_000;
    let mut world = away(4, TASKS, true);
    for dead in [1, 2] {
        world.mark_dead(0, dead);
        turns(&mut world, |_| 0);
        // All are lost twice, and each goes alone, only to a PE that has nothing else to do.
        give(&mut world, fish_of(2), TASKS * u64::from(dead == 1));
    }
    for future in TASKS + 1..=2 * TASKS {
        world.place(0, 2, parcel(0, future, true));
    }
    let busy = Fish { need: Need::Ahead, ..fish_of(3) };
    give(&mut world, busy, TASKS);
    assert_eq!(world.nodes[0].statistics().replicas, 2 * TASKS);
}

/// Gives a thief this number of tasks, for as many FISHes as that takes.
fn give(world: &mut World, fish: Fish, tasks: u64) {
    world.flying.clear();
    let mut given = 0;
    while given < tasks {
        world.handle(0, fish.thief.number(), Message::Fish(fish));
        given += world.take_schedules().concat().len() as u64;
    }
}

/// The CPU time of this thread. (Other programs on the machine do not change it.)
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Run by hand: `cargo test -p ultramarine-runtime --lib -- --ignored --nocapture longest_turn`.
#[test]
#[ignore = "it measures, and says nothing about right or wrong"]
fn longest_turn() {
    for (tasks, supervised) in [100_000, 1_000_000].map(|n| [(n, true), (n, false)]).concat() {
        let mut world = away(4, tasks, supervised);
        let (node, host) = (&mut world.nodes[0], &mut world.seats[0]);
        let (mut losing, mut giving, mut ending) = (Vec::new(), Vec::new(), Vec::new());
        let turn = |turns: &mut Vec<Duration>, act: &mut dyn FnMut()| {
            let begin = computed();
            act();
            turns.push(computed().saturating_sub(begin));
        };
        host.filled.reserve(tasks as usize);
        turn(&mut losing, &mut || node.mark_dead(&[pe(1)], host));
        while node.statistics().replicas + node.statistics().lost < tasks {
            turn(&mut losing, &mut || _ = node.tick(Duration::ZERO, Need::Ahead, host));
        }
        for future in 1..=if supervised { tasks } else { 0 } {
            if future % 32 == 0 {
                let thief = 2 + (future / 32 % 2) as u32;
                turn(&mut giving, &mut || {
                    node.handle(Duration::ZERO, pe(thief), Message::Fish(fish_of(thief)), host);
                });
                host.forget_sent();
            }
            if future % 2 == 0 {
                let message = || Message::Result { future, outcome: Ok(Bytes::default()) };
                turn(&mut ending, &mut || node.handle(Duration::ZERO, pe(2), message(), host));
            }
        }
        println!("{tasks} tasks, supervised: {supervised}");
        for (what, mut turns) in [("lost", losing), ("given out", giving), ("ended", ending)] {
            turns.sort();
            let at = |share: usize| turns.get(turns.len() * share / 1000);
            if let (Some(half), Some(most), Some(last)) = (at(500), at(999), turns.last()) {
                let (sum, count) = (turns.iter().sum::<Duration>(), turns.len());
                println!(
                    "  {what} in {count} turns: {sum:.1?} in all, half below {half:.1?}, 99.9 % \
                     below {most:.1?}, longest {last:.1?}"
                );
            }
        }
    }
}

/// In a job in which all PEs have enough work, no PE is ever idle.
#[test]
fn what_was_lost_twice_does_not_wait_for_an_idle_pe_for_ever() {
    const WAIT: Duration = Duration::from_secs(2);
    let mut world = away(5, 2, true);
    let busy = |thief| Message::Fish(Fish { need: Need::Starving, ..fish_of(thief) });
    world.mark_dead(0, 1);
    world.handle(0, 2, busy(2));
    world.handle(0, 3, busy(3));
    world.mark_dead(0, 2);
    world.mark_dead(0, 3);
    world.flying.clear();
    world.handle(0, 4, busy(4));
    assert!(matches!(world.flying[..], [Letter { message: Message::NoWork { .. }, .. }]));
    world.flying.clear();
    let placed = |world: &mut World, after: Duration| {
        world.now += after;
        world.tick(0, false);
        let is_one = |letter: &Letter| {
            letter.to == pe(4)
                && matches!(&letter.message, Message::Place(parcel) if parcel.version.replica == 2)
        };
        world.flying.drain(..).filter(is_one).count()
    };
    assert_eq!(placed(&mut world, Duration::ZERO), 0);
    for expected in [1, 1, 0] {
        assert_eq!(placed(&mut world, WAIT / 2), 0);
        assert_eq!(placed(&mut world, WAIT / 2), expected, "one at a time");
    }
}
