//! Tasks whose PEs die are run again, or end with an error.

use super::world::{World, chooser, fish_of, flat, parcel, pe, settings};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Fish, Message, Need, Parcel, Phase, Version};
use std::time::Duration;
use ultramarine_topology::{Distance, LevelKind, Place, Topology};

fn fish(thief: u32, need: Need) -> Message {
    Message::Fish(Fish { need, ..fish_of(thief) })
}

/// Removes and returns the messages on their way to a PE.
fn towards(world: &mut World, to: u32) -> Vec<Message> {
    let (taken, left) = world.flying.drain(..).partition(|letter| letter.to == pe(to));
    world.flying = left;
    Vec::into_iter(taken).map(|letter: super::world::Letter| letter.message).collect()
}

/// The tasks that a thief gets from a victim. The SCHEDULE is removed from the network.
fn stolen(world: &mut World, victim: u32, thief: u32, need: Need) -> Vec<Parcel> {
    world.handle(victim, thief, fish(thief, need));
    let tasks = towards(world, thief).into_iter().filter_map(|message| match message {
        Message::Schedule { tasks, .. } => Some(tasks),
        _ => None,
    });
    tasks.flatten().collect()
}

/// The same, and the thief puts them into its pool.
fn steal(world: &mut World, victim: u32, thief: u32) -> Vec<Parcel> {
    let tasks = stolen(world, victim, thief, Need::Idle);
    let message = Message::Schedule { serial: 1, tasks: tasks.clone() };
    world.handle(thief, victim, message);
    tasks
}

fn version(replica: u32, age: u32) -> Version {
    Version { replica, age }
}

#[test]
fn only_steps_between_other_pes_are_reported_to_home() {
    let mut world = flat(3);
    let task = world.spawn_supervised(0, Distance::ONE);
    assert_eq!(steal(&mut world, 0, 1)[0].version, version(0, 1));
    assert!(world.flying.is_empty(), "home knows where it sent it: {:?}", world.flying);
    assert_eq!(steal(&mut world, 1, 2)[0].version, version(0, 2));
    let (future, to) = (task.future, pe(2));
    assert_eq!(
        towards(&mut world, 0),
        [
            Message::Notify { future, version: version(0, 2), to },
            Message::Ack { future, version: version(0, 3) }
        ]
    );
}

#[test]
fn a_supervised_task_is_run_again_when_its_thief_dies() {
    let mut world = flat(3);
    let task = world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    world.mark_dead(0, 1);
    assert!(world.seats[0].filled.is_empty());
    let again = stolen(&mut world, 0, 2, Need::Starving);
    assert_eq!((again[0].task, again[0].version), (task, version(1, 1)));
    assert!(stolen(&mut world, 0, 2, Need::Starving).is_empty(), "once");
    world.handle(0, 2, Message::Result { future: task.future, outcome: Ok(Bytes::from(vec![7])) });
    world.mark_dead(0, 2);
    assert_eq!(world.seats[0].filled.len(), 1, "a task that has ended cannot be lost");
    assert_eq!(world.nodes[0].statistics().replicas, 1);
}

#[test]
fn an_unsupervised_task_that_may_be_lost_ends_with_an_error() {
    let mut world = flat(4);
    let lost = world.spawn(0, Distance::ONE, 0);
    steal(&mut world, 0, 1);
    let kept = world.spawn(0, Distance::ONE, 0);
    steal(&mut world, 0, 2);
    world.mark_dead(0, 1);
    assert_eq!(world.seats[0].filled, [(lost.future, Err(TaskError::Lost { pe: pe(1) }))]);
    assert_eq!(world.nodes[0].statistics().lost, 1);
    world.mark_dead(0, 3);
    assert_eq!(world.seats[0].filled.len(), 1, "{kept:?} is on PE 2");
}

#[test]
fn a_task_between_two_others_is_lost_with_either() {
    for dies in [1, 2] {
        let mut world = flat(4);
        let task = world.spawn_supervised(0, Distance::ONE);
        steal(&mut world, 0, 1);
        stolen(&mut world, 1, 2, Need::Idle);
        world.deliver_only();
        world.mark_dead(0, dies);
        assert_eq!(stolen(&mut world, 0, 3, Need::Idle)[0].task, task, "with PE {dies}");
    }
}

#[test]
fn a_task_that_arrived_is_not_lost_with_the_pe_that_had_it_before() {
    let mut world = flat(4);
    world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    steal(&mut world, 1, 2);
    world.deliver_all(|_| 0);
    world.mark_dead(0, 1);
    assert!(stolen(&mut world, 0, 3, Need::Idle).is_empty());
}

/// The race of HdpH-RS §4.6: the death is known before it is known that the task went there.
#[test]
fn news_of_a_task_with_a_pe_known_to_be_dead_is_a_loss() {
    let mut world = flat(4);
    let task = world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    stolen(&mut world, 1, 2, Need::Idle);
    world.mark_dead(0, 2);
    assert!(stolen(&mut world, 0, 3, Need::Idle).is_empty(), "nothing is known of it yet");
    let notify = towards(&mut world, 0).remove(0);
    world.handle(0, 1, notify);
    assert_eq!(stolen(&mut world, 0, 3, Need::Idle)[0].task, task);
}

/// PE 1 does not know yet that PE 2 is dead, and answers its last FISHes.
#[test]
fn a_pe_that_is_dead_counts_once() {
    let mut world = flat(4);
    let task = world.spawn_supervised(0, Distance::ONE);
    world.mark_dead(0, 2);
    for replica in 0..20 {
        let again = steal(&mut world, 0, 1);
        assert_eq!((again[0].task, again[0].version.replica), (task, replica));
        stolen(&mut world, 1, 2, Need::Idle);
        world.deliver_only();
    }
    assert!(world.seats[0].filled.is_empty(), "{:?}", world.seats[0].filled);
}

#[test]
fn outdated_news_is_not_believed() {
    let mut world = flat(4);
    let task = world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    steal(&mut world, 1, 2);
    let [notify, ack] = <[Message; 2]>::try_from(towards(&mut world, 0)).expect("both");
    world.handle(0, 2, ack.clone());
    // Overtaken: it would put the task back on its way from PE 1.
    world.handle(0, 1, notify);
    // Nor is other news of the same age.
    world.handle(0, 1, ack.clone());
    world.mark_dead(0, 1);
    assert!(stolen(&mut world, 0, 3, Need::Idle).is_empty());
    // News of a copy that does not count any more.
    world.mark_dead(0, 2);
    assert_eq!(stolen(&mut world, 0, 3, Need::Idle)[0].version, version(1, 1));
    world.handle(0, 3, Message::Ack { future: task.future, version: version(0, 9) });
    // Nor does it make the task lost again, though it names a dead PE.
    let old = Message::Notify { future: task.future, version: version(0, 9), to: pe(2) };
    world.handle(0, 3, old);
    assert_eq!(world.nodes[0].statistics().replicas, 1);
    world.mark_dead(0, 3);
    assert_eq!(world.nodes[0].statistics().replicas, 2, "the second was lost with PE 3");
}

/// PE 2 does not know that PE 1 is dead, and has got the task from it.
#[test]
fn a_copy_that_does_not_count_any_more_is_not_taken_back() {
    let mut world = flat(4);
    let task = world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    steal(&mut world, 1, 2);
    let notify = towards(&mut world, 0).remove(0);
    world.handle(0, 1, notify);
    world.mark_dead(0, 1);
    assert_eq!(steal(&mut world, 2, 0)[0].version.replica, 0);
    assert_eq!(world.queued(0), 0, "another copy waits for a thief");
    let again = stolen(&mut world, 0, 3, Need::Idle);
    assert_eq!((again[0].task, again[0].version), (task, version(1, 1)));
}

#[test]
fn a_task_that_was_packed_for_a_thief_that_has_died_stays() {
    for is_dead in [false, true] {
        let mut world = flat(3);
        world.spawn(0, Distance::ONE, 0);
        let parcel = world.run_one(0).expect("it waits");
        if is_dead {
            world.mark_dead(0, 1);
        }
        world.act(0, |node, seat| node.hand_over(&fish_of(1), parcel, seat));
        let expected = if is_dead { (1, 0) } else { (0, 1) };
        assert_eq!((world.queued(0), world.flying.len()), expected);
    }
}

#[test]
fn a_task_that_is_lost_too_often_is_given_up_by_name() {
    let replicas = crate::protocol::settings::MAX_REPLICAS;
    let mut world = flat(replicas + 3);
    let task = world.spawn_supervised(0, Distance::ONE);
    let innocent = world.spawn_supervised(0, Distance::ONE);
    for thief in 1..=replicas + 1 {
        let got = stolen(&mut world, 0, thief, Need::Idle);
        assert!(got.iter().any(|parcel| parcel.task == task), "{got:?}");
        if thief > 2 {
            assert_eq!(got.len(), 1, "a task lost twice goes alone");
        }
        if let Some(other) = got.iter().find(|parcel| parcel.task == innocent) {
            let future = other.task.future;
            world.handle(0, thief, Message::Result { future, outcome: Ok(Bytes::default()) });
        }
        world.mark_dead(0, thief);
    }
    let with: Vec<_> = (1..=replicas + 1).map(pe).collect();
    let error = TaskError::GaveUp { task: format!("task {}", task.future), with };
    assert_eq!(world.seats[0].filled.last(), Some(&(task.future, Err(error))));
    assert!(stolen(&mut world, 0, replicas + 2, Need::Idle).iter().all(|p| p.task != task));
}

#[test]
fn a_task_lost_twice_goes_only_to_an_idle_pe() {
    let mut world = flat(6);
    world.spawn_supervised(0, Distance::ONE);
    for thief in [1, 2] {
        steal(&mut world, 0, thief);
        world.mark_dead(0, thief);
    }
    assert!(stolen(&mut world, 0, 3, Need::Ahead).is_empty());
    assert!(stolen(&mut world, 0, 3, Need::Starving).is_empty());
    assert_eq!(steal(&mut world, 0, 3).len(), 1);
    assert!(stolen(&mut world, 3, 4, Need::Starving).is_empty());
    assert_eq!(stolen(&mut world, 3, 4, Need::Idle).len(), 1);
}

#[test]
fn a_pe_gets_no_second_task_that_was_lost_twice_before_the_first_has_ended() {
    let mut world = flat(6);
    for _ in 0..2 {
        world.spawn_supervised(0, Distance::ONE);
    }
    for thief in [1, 2] {
        let both = stolen(&mut world, 0, thief, Need::Idle).len()
            + stolen(&mut world, 0, thief, Need::Idle).len();
        assert_eq!(both, 2);
        world.mark_dead(0, thief);
    }
    let first = stolen(&mut world, 0, 3, Need::Idle);
    assert_eq!(first.len(), 1);
    assert!(stolen(&mut world, 0, 3, Need::Idle).is_empty());
    let future = first[0].task.future;
    world.handle(0, 3, Message::Result { future, outcome: Ok(Bytes::default()) });
    assert_eq!(stolen(&mut world, 0, 3, Need::Idle).len(), 1);
}

#[test]
fn a_fish_that_waits_gets_a_task_that_was_lost_once_but_not_twice() {
    for losses in [1, 2] {
        let mut world = flat(6);
        world.spawn_supervised(0, Distance::ONE);
        for thief in 1..=losses {
            steal(&mut world, 0, thief);
            if thief < losses {
                world.mark_dead(0, thief);
            }
        }
        let patience = Duration::from_millis(20);
        world.handle(0, 3, Message::Fish(Fish { patience, ..fish_of(3) }));
        assert!(towards(&mut world, 3).is_empty(), "it waits");
        world.mark_dead(0, losses);
        world.tick(0, false);
        assert_eq!(towards(&mut world, 3).len(), usize::from(losses == 1), "lost {losses} times");
    }
}

#[test]
fn a_lost_task_goes_neither_to_the_root_nor_to_its_supervisor() {
    let mut world = flat(5);
    let task = world.spawn_supervised(2, Distance::ONE);
    steal(&mut world, 2, 1);
    world.mark_dead(2, 1);
    world.tick(2, true);
    world.flying.clear();
    assert_eq!(world.queued(2), 0, "others could do it");
    assert!(stolen(&mut world, 2, 0, Need::Idle).is_empty(), "the root is spared");
    assert_eq!(steal(&mut world, 2, 3)[0].task, task);
    for spared in [0, 2] {
        assert!(stolen(&mut world, 3, spared, Need::Idle).is_empty());
    }
    assert_eq!(world.queued(3), 1);
}

#[test]
fn the_last_living_pe_runs_lost_tasks() {
    let mut world = flat(3);
    let task = world.spawn_supervised(0, Distance::ONE);
    steal(&mut world, 0, 1);
    world.mark_dead(0, 1);
    world.mark_dead(0, 2);
    world.tick(0, true);
    assert_eq!(world.run_one(0).map(|parcel| parcel.task), Some(task));
}

#[test]
fn a_task_lost_with_four_pes_is_not_run_by_the_last() {
    let mut world = flat(6);
    let wild = world.spawn_supervised(0, Distance::ONE);
    for thief in [1, 2, 3, 4] {
        assert_eq!(steal(&mut world, 0, thief)[0].task, wild);
        world.mark_dead(0, thief);
    }
    world.mark_dead(0, 5);
    world.tick(0, true);
    let with = [1, 2, 3, 4].map(pe).to_vec();
    let error = TaskError::GaveUp { task: format!("task {}", wild.future), with };
    assert_eq!(world.seats[0].filled, [(wild.future, Err(error))]);
    assert_eq!(world.run_one(0), None);
}

#[test]
fn a_task_may_leave_its_radius_before_it_is_given_up() {
    let racks = ["a", "a", "b", "b", "b", "b", "b"];
    let places = racks.map(|rack| Place::from_pairs([(LevelKind::Switch, rack)]));
    let topology = Topology::new(&places, &[1; 7]).expect("consistent");
    let mut world = World::new(topology, &settings(), 1);
    let task = world.spawn_supervised(2, Distance::ONE.half());
    for thief in [3, 4, 5, 6] {
        assert_eq!(steal(&mut world, 2, thief)[0].task, task);
        world.mark_dead(2, thief);
    }
    assert!(stolen(&mut world, 2, 1, Need::Idle).is_empty(), "not within the radius");
    world.tick(2, true);
    assert_eq!(steal(&mut world, 2, 1)[0].task, task);
    world.mark_dead(2, 1);
    world.tick(2, true);
    assert_eq!(world.run_one(2), None);
    assert!(matches!(world.seats[2].filled[..], [(_, Err(TaskError::GaveUp { .. }))]));
}

#[test]
fn tasks_of_the_dead_are_dropped_and_their_fishes_too() {
    let mut world = flat(4);
    world.spawn_supervised(1, Distance::ONE);
    let tasks = stolen(&mut world, 1, 2, Need::Idle);
    world.mark_dead(2, 1);
    world.handle(2, 3, Message::Schedule { serial: 1, tasks });
    assert_eq!((world.queued(2), world.nodes[2].statistics().orphans), (0, 1));
    world.spawn(2, Distance::ONE, 0);
    world.handle(2, 3, fish(1, Need::Idle));
    assert!(world.flying.is_empty(), "{:?}", world.flying);
    world.handle(2, 1, fish(3, Need::Idle));
    assert!(world.flying.is_empty(), "messages from the dead are dropped");
}

#[test]
fn a_fish_that_may_be_with_the_dead_is_cast_anew() {
    let mut world = flat(3);
    world.tick(0, true);
    let (victim, _) = world.catch_fish();
    world.mark_dead(0, victim.number());
    assert_eq!(world.nodes[0].statistics().fishes_lost, 1);
    world.tick(0, true);
    let (next, fish) = world.catch_fish();
    assert_ne!(next, victim);
    world.handle(0, next.number(), Message::NoWork { serial: fish.serial });
    world.mark_dead(0, next.number());
    assert_eq!(world.nodes[0].statistics().fishes_lost, 1, "the second was answered");
}

#[test]
fn a_task_placed_on_the_dead_is_run_by_others_or_ends_with_an_error() {
    let mut world = flat(4);
    world.mark_dead(0, 1);
    let place = |world: &mut World, supervised, future| {
        let placed = Parcel { radius: Distance::ZERO, ..parcel(0, future, supervised) };
        world.place(0, 1, placed.clone());
        placed.task
    };
    place(&mut world, false, 1);
    assert_eq!(world.seats[0].filled, [(1, Err(TaskError::Lost { pe: pe(1) }))]);
    let supervised = place(&mut world, true, 2);
    assert!(world.flying.is_empty());
    assert_eq!(stolen(&mut world, 0, 2, Need::Starving)[0].task, supervised);
}

#[test]
fn a_placed_task_that_is_lost_may_run_on_any_pe() {
    let mut world = flat(3);
    let placed = Parcel { radius: Distance::ZERO, ..parcel(0, 1, true) };
    world.place(0, 1, placed.clone());
    world.mark_dead(0, 1);
    assert_eq!(stolen(&mut world, 0, 2, Need::Idle)[0].task, placed.task);
}

#[test]
fn a_job_after_a_death_ends_for_all_living_pes() {
    for seed in 0..200 {
        let mut choose = chooser(seed);
        let pes = 2 + choose(12) as u32;
        let mut world = flat(pes);
        let dead: Vec<u32> = (1..pes).filter(|_| choose(3) == 0).collect();
        // Some hear of it before the end begins, others later.
        let mut news: Vec<(u32, u32)> = (0..pes)
            .filter(|at| !dead.contains(at))
            .flat_map(|at| dead.iter().map(move |dead| (at, *dead)))
            .collect();
        world.end();
        while !news.is_empty() || !world.flying.is_empty() {
            let turn = choose(news.len() + world.flying.len());
            if turn < news.len() {
                let (at, dead) = news.swap_remove(turn);
                world.mark_dead(at, dead);
            } else {
                let index = turn - news.len();
                if dead.contains(&world.flying[index].to.number()) {
                    world.flying.remove(index);
                } else {
                    world.deliver(index);
                }
            }
        }
        (0..pes).filter(|at| !dead.contains(at)).for_each(|at| world.take_leave(at));
        if !dead.is_empty() {
            let phases = world.phases();
            let alive = (0..pes).filter(|at| !dead.contains(at));
            assert!(alive.map(|at| phases[at as usize]).all(|p| p == Phase::Released), "{seed}");
        }
    }
}
