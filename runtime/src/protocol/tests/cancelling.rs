//! Tasks that are cancelled on their way.

use super::world::{fish_of, flat};
use crate::protocol::{Message, Version};
use ultramarine_topology::Distance;

/// A task is stolen, comes home as stolen work, and is cancelled there while the next FISH has
/// arrived already.
#[test]
fn what_has_come_home_is_not_given_away_once_it_is_cancelled() {
    let mut world = flat(2);
    let task = world.spawn(0, Distance::ONE, 0);
    for (victim, thief) in [(0, 1), (1, 0)] {
        world.handle(victim, thief, Message::Fish(fish_of(thief)));
        while !world.flying.is_empty() {
            world.deliver(0);
        }
    }
    assert_eq!(world.queued(0), 1, "it is at home again");
    world.cancel(0, vec![task.future]);
    world.handle(0, 1, Message::Fish(fish_of(1)));
    let sent: Vec<_> = world.flying.iter().map(|letter| &letter.message).collect();
    assert_eq!(sent, [&Message::NoWork { serial: 1 }]);
    assert_eq!(world.queued(0), 0);
}

/// Home does not know where the task is: it is on its way between two others.
#[test]
fn a_task_that_is_cancelled_between_two_others_is_dropped_when_it_has_arrived() {
    let mut world = flat(3);
    let task = world.spawn(0, Distance::ONE, 0);
    world.handle(0, 1, Message::Fish(fish_of(1)));
    world.deliver_only();
    world.handle(1, 2, Message::Fish(fish_of(2)));
    // NOTIFY comes before SCHEDULE.
    world.deliver(0);
    world.cancel(0, vec![task.future]);
    assert_eq!(world.flying.len(), 1, "no PE is told yet: {:?}", world.flying);
    world.deliver_only();
    assert_eq!(world.queued(2), 1);
    world.deliver_only();
    assert_eq!(world.deliver_only().message, Message::Cancel { futures: vec![task.future] });
    assert_eq!(world.queued(2), 0);
}

/// The ACK of a task that is done already may come late.
#[test]
fn an_ack_has_an_answer_only_if_its_task_was_cancelled() {
    let mut world = flat(3);
    let [wanted, other] = [0, 0].map(|bytes| world.spawn(0, Distance::ONE, bytes).future);
    let ack = Message::Ack { future: wanted, version: Version { replica: 0, age: 3 } };
    world.handle(0, 2, ack.clone());
    assert!(world.flying.is_empty(), "none was cancelled: {:?}", world.flying);
    world.handle(0, 1, Message::Fish(fish_of(1)));
    world.flying.clear();
    world.cancel(0, vec![other]);
    world.flying.clear();
    world.handle(0, 2, ack);
    assert!(world.flying.is_empty(), "it is known: {:?}", world.flying);
}

/// A PE that has died, or that has ended, needs not be told.
#[test]
fn one_message_cancels_all_tasks_that_a_pe_has() {
    let mut world = flat(4);
    let futures: Vec<_> = (0..6).map(|_| world.spawn(0, Distance::ONE, 0)).collect();
    // A worker would run the youngest first.
    for (task, to) in futures.iter().zip([1, 2, 1, 2, 3, 3]).rev() {
        let parcel = world.run_one(0).expect("it waits");
        assert_eq!(parcel.task, *task);
        world.place(0, to, parcel);
    }
    world.flying.clear();
    world.mark_dead(0, 3);
    world.cancel(0, futures.iter().map(|task| task.future).collect());
    let sent: Vec<_> = world.flying.drain(..).map(|one| (one.to.number(), one.message)).collect();
    let cancel = |tasks: [usize; 2]| Message::Cancel {
        futures: tasks.map(|task| futures[task].future).to_vec(),
    };
    assert_eq!(sent, [(1, cancel([0, 2])), (2, cancel([1, 3]))]);
}
