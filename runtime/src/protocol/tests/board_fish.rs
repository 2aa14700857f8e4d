//! Stealing from boards beside FISHes: no thief gets twice what it needs, and none is forgotten.

use super::board_memory::LIMITS;
use super::boards::{ask, from_boards, host_of};
use super::world::{World, fish_of, pe};
use crate::protocol::{Fish, Host as _, Message, Need};
use ultramarine_topology::Distance;

/// It would get twice what it needs.
#[test]
fn a_fish_gets_nothing_beside_what_is_posted_for_its_thief() {
    for comes_first in ["the bit", "the FISH"] {
        let mut world = host_of(3);
        world.spawn_many(8, 0, Distance::ONE, 8);
        world.nodes[1].note_giver(pe(0));
        world.tick(1, true);
        let (_, fish) = world.catch_fish();
        if comes_first == "the bit" {
            world.tick(0, false);
        }
        let shared = (world.ready(0), world.queued(0));
        world.handle(0, 1, Message::Fish(fish));
        assert_eq!((world.ready(0), world.queued(0)), (2, 6), "{comes_first}");
        assert!(comes_first == "the FISH" || shared == (2, 6));
        let answer = world.flying.pop().map(|letter| letter.message);
        assert!(matches!(answer, Some(Message::NoWork { .. })), "{comes_first}: {answer:?}");
        world.handle(1, 0, answer.expect("it is there"));
        world.tick(1, true);
        assert_eq!((from_boards(&world, 1), world.queued(1)), (2, 2), "{comes_first}");
        // Another thief is served as ever.
        world.handle(0, 2, Message::Fish(fish_of(2)));
        assert!(!world.take_schedules().is_empty());
    }
}

/// Two PEs that are busy would else steal one task from each other for ever.
#[test]
fn a_thief_never_has_more_than_its_victim() {
    for (queued, posted) in [(0, 1), (1, 0)] {
        let mut world = host_of(2);
        world.spawn_many(3, 0, Distance::ONE, 8);
        world.act(1, |_, seat| {
            let boards = seat.boards().expect("they share their boards");
            boards.set_need(Some((Need::Ahead, queued + 1)));
            boards.ask(pe(0));
        });
        world.tick(0, false);
        assert_eq!(world.ready(0), posted, "it has {} of its own", queued + 1);
    }
}

/// Its FISH is elsewhere by then.
#[test]
fn a_pe_whose_fish_found_nothing_is_posted_for_later() {
    let mut world = host_of(3);
    world.nodes[1].note_giver(pe(0));
    world.tick(1, true);
    let (_, fish) = world.catch_fish();
    world.handle(0, 1, Message::Fish(Fish { hops_left: 1, ..fish }));
    world.flying.clear();
    world.spawn_many(6, 0, Distance::ONE, 8);
    world.tick(0, false);
    assert_eq!(world.ready(0), 2);
}

/// Its FISH was answered before it had looked at the board, or after.
#[test]
fn a_thief_that_has_taken_a_task_does_not_back_off() {
    let mut world = host_of(3);
    world.spawn_many(8, 0, Distance::ONE, 8);
    world.nodes[1].note_giver(pe(0));
    world.tick(1, true);
    let (_, fish) = world.catch_fish();
    world.tick(0, false);
    world.tick(1, true);
    assert_eq!(from_boards(&world, 1), 2);
    world.handle(1, 0, Message::NoWork { serial: fish.serial });
    while world.run_one(1).is_some() {}
    world.tick(1, true);
    let (asked, again) = world.catch_fish();
    assert_eq!((asked, again.serial), (pe(0), fish.serial + 1), "at once, and the same");
}

/// A FISH that gets a task which is packed later gets none from the board as well.
#[test]
fn what_is_packed_later_is_not_mixed_with_what_is_posted() {
    let mut world = host_of(3);
    world.spawn_many(4, 0, Distance::ONE, 8);
    ask(&mut world, 1, 0);
    while world.run_one(0).is_some() {}
    world.seats[0].packed_at_once = 50;
    world.spawn_many(4, 0, Distance::ONE, 60);
    world.handle(0, 2, Message::Fish(fish_of(2)));
    let packing = std::mem::take(&mut world.seats[0].packing);
    assert_eq!((packing.len(), world.ready(0), world.queued(0)), (1, 2, 3));
    assert_eq!(packing[0].0.thief, pe(2));
    for (fish, parcel) in packing {
        world.act(0, |node, seat| node.hand_over(&fish, parcel, seat));
    }
    assert_eq!(world.take_schedules().concat().len(), 1);
}

/// Its FISH is on the way as well: if each got one, the thief would have more than it needs.
#[test]
fn only_fishes_get_tasks_while_they_are_long() {
    let mut world = host_of(2);
    world.spawn_many(4, 0, Distance::ONE, LIMITS.0 + 1);
    let left = |world: &World| (world.ready(0), world.queued(0));
    ask(&mut world, 1, 0);
    assert_eq!(left(&world), (0, 3), "the first goes in a message");
    ask(&mut world, 1, 0);
    assert_eq!(left(&world), (0, 3));
    world.handle(0, 1, Message::Fish(fish_of(1)));
    assert!(left(&world).1 < 3);
    while world.run_one(0).is_some() {}
    world.spawn_many(4, 0, Distance::ONE, 8);
    world.handle(0, 1, Message::Fish(fish_of(1)));
    ask(&mut world, 1, 0);
    assert!(left(&world).0 > 0, "they are short now");
}
